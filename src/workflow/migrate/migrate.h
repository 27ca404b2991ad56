// SPDX-License-Identifier: Apache-2.0
// From an unrestricted workflow file to one of the restricted grammar, as far as rules go that keep
// its meaning. What no rule covers is a decision for a person. The result is compiled as the last
// step: what the compiler refuses becomes a decision too. Nothing of the file is run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workflow/compiler.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow::migrate {

struct Migration {
  std::string text;   // the result; the source itself when there is nothing to do or no way
  bool done = false;  // the compiler accepts `text` and nothing is left to decide
  bool changed = false;
  // Errors: what a person must decide. Warnings: where results may differ. Places are those of the
  // source.
  std::vector<Diagnostic> findings;
};

// `source` is the text of the file; never fails other than by findings.
Migration Migrate(std::string_view source, const CompileOptions& options = {});

}  // namespace caisson::workflow::migrate
