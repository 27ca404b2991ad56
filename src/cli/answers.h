// SPDX-License-Identifier: Apache-2.0
// Collects the diagnostics of several files into one machine-readable document: an array of one
// document per file, or one SARIF log with all runs.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "workflow/diagnostic.h"

namespace caisson::cli {

class Answers {
 public:
  explicit Answers(workflow::DiagnosticFormat format) : format_(format) {}  // not kText

  Result<void> Add(const std::vector<workflow::Diagnostic>& diagnostics, std::string_view file,
                   std::string_view source);
  json::Value Finish();

 private:
  workflow::DiagnosticFormat format_;
  json::Array files_;
  json::Value log_;
};

// "2 files checked: 1 error, 0 warnings", and what another runtime of code nodes would do without.
class Tally {
 public:
  void Count(const std::vector<workflow::Diagnostic>& diagnostics);
  std::string ToText() const;

 private:
  std::size_t files_ = 0;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
  std::size_t of_micropython_ = 0;
};

}  // namespace caisson::cli
