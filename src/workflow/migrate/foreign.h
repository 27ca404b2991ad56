// SPDX-License-Identifier: Apache-2.0
// What a person has to decide about code that reaches for a module: by the module's dotted name.
#pragma once

#include <string>
#include <string_view>

namespace caisson::workflow::migrate {

struct ForeignUse {
  std::string message;
  std::string hint;
};
ForeignUse DescribeForeign(std::string_view dotted);

}  // namespace caisson::workflow::migrate
