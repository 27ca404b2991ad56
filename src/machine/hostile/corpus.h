// SPDX-License-Identifier: Apache-2.0
// The attacks of tests/corpora/attacks, whose README says what each oracle wants.
#pragma once

#include <span>
#include <string_view>

namespace caisson::machine::hostile {

struct Attack {
  std::string_view name;    // "proc_fork_bomb"
  std::string_view source;  // Python; its first line names class and oracle

  std::string_view oracle() const;  // "no-escape", "limit", "no-forge", "host-alive"
};

// All of them, by name.
std::span<const Attack> Corpus();

}  // namespace caisson::machine::hostile
