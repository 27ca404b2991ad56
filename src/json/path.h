// SPDX-License-Identifier: Apache-2.0
// JSON paths for error messages ("$.nodes[3].id"), built from the inside out while a failed
// recursion unwinds, so that success costs nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::json {

class PathBuilder {
 public:
  // Each puts one step in front of what is there. Long keys are cut, long paths lose their middle.
  void PrependKey(std::string_view key);
  void PrependIndex(std::size_t index);
  std::string Finish() const;

 private:
  std::vector<std::string> steps_;  // innermost first
};

}  // namespace caisson::json
