// SPDX-License-Identifier: Apache-2.0
// What two texts differ in, line by line, and the unified form of it. Stateless; bounded in time:
// texts that differ too much count as replaced wholly.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::workflow::migrate {

// Lines [before, before + removed) of the one are lines [after, after + added) of the other; lines
// count from 0.
struct Change {
  std::size_t before, removed;
  std::size_t after, added;
};
std::vector<Change> Changes(const std::vector<std::string_view>& before,
                            const std::vector<std::string_view>& after);

std::vector<std::string_view> SplitLines(std::string_view text);
// Empty when the texts are the same.
std::string UnifiedDiff(std::string_view before, std::string_view after, std::string_view name,
                        bool color);

}  // namespace caisson::workflow::migrate
