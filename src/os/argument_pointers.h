// SPDX-License-Identifier: Apache-2.0
// Words as execve(2) and posix_spawn(3) take them.
#pragma once

#include <string>
#include <vector>

namespace caisson::os {

// Points into `words`, which must outlive it unchanged; ends with a null pointer.
inline std::vector<char*> ArgumentPointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace caisson::os
