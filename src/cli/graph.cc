// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/source.h"

namespace caisson::cli {

ExitCode DrawGraph(const GraphArguments& arguments, Console& console) {
  auto source = OpenSource(arguments.source, console);
  if (!source) return source.error();
  return PrintText(arguments.dot ? DrawDot(*source->graph) : DrawMermaid(*source->graph), console);
}

}  // namespace caisson::cli
