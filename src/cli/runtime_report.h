// SPDX-License-Identifier: Apache-2.0
// Which runtimes of logic blocks work on this host, for doctor and `runtimes list`.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "json/value.h"

namespace caisson::cli {

struct RuntimeReport {
  std::string name;
  // It has run a script (cpython: its worker has tested itself).
  bool ready = false;
  std::string reason;      // why not
  std::string what_to_do;  // a command, where there is one
};

// Prepares nothing. Takes about a second.
std::vector<RuntimeReport> ExamineRuntimes(Console& console);

json::Value ToJson(const std::vector<RuntimeReport>& reports);
std::string ToTable(const std::vector<RuntimeReport>& reports);

}  // namespace caisson::cli
