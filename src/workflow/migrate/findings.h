// SPDX-License-Identifier: Apache-2.0
// What a migration has to say: decisions (errors), which a person must take, and notes (warnings),
// where the result may differ in what its author is told. One place is told one thing once.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workflow/diagnostic.h"

namespace caisson::workflow::migrate {

class Findings {
 public:
  void Decide(ErrorCode code, SourceSpan span, std::string message, std::string hint) {
    Add(Severity::kError, code, span, std::move(message), std::move(hint));
  }
  void Note(ErrorCode code, SourceSpan span, std::string message, std::string hint) {
    Add(Severity::kWarning, code, span, std::move(message), std::move(hint));
  }
  void Add(Severity severity, ErrorCode code, SourceSpan span, std::string message,
           std::string hint);

  // A name of the module that undecided code uses: its definition stays.
  void Keep(std::string_view name) { kept_.insert(name); }
  bool IsKept(std::string_view name) const { return kept_.contains(name); }

  bool decisions_left() const { return decisions_; }
  std::vector<Diagnostic> Take();  // in the order of the source

 private:
  std::vector<Diagnostic> found_;
  std::set<std::string_view> kept_;
  bool decisions_ = false;
};

}  // namespace caisson::workflow::migrate
