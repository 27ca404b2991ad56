// SPDX-License-Identifier: Apache-2.0
// For tests: what a program inside a jail may try, by name. Each tries one thing and returns 0 when
// that worked, else an errno. None does harm where it works.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace caisson::jail {

const std::map<std::string, std::function<int()>>& Attacks();

}  // namespace caisson::jail
