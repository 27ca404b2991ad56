// SPDX-License-Identifier: Apache-2.0
// A script as a command reads it, and how findings and errors about it are shown.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "block/check.h"
#include "block/outcome.h"
#include "cli/console.h"
#include "workflow/diagnostic.h"

namespace caisson::cli {

struct BlockScript {
  std::string name;  // as messages show it
  std::string text;
};

// "-": standard input. Fails with cli.file_unreadable.
Result<BlockScript> ReadBlockScript(const std::string& file);

std::vector<workflow::Diagnostic> ToDiagnostics(const std::vector<block::Finding>& findings,
                                                bool strict);

// What a run ended with, for people: the place in the script, the calls that led there. `late`: it
// came after the final done.
std::string RenderBlockError(const block::BlockError& error, const BlockScript& script, bool late,
                             bool color);

}  // namespace caisson::cli
