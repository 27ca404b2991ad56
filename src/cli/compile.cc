// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/source.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

Result<std::string> Document(const LoadedSource& source, bool with_index) {
  if (!with_index) return workflow::CanonicalBytes(*source.graph);
  CAISSON_ASSIGN(std::string id, workflow::ContentId(*source.graph));
  return json::Write(json::Object{{"content_id", std::move(id)},
                                  {"ir", workflow::ToJson(*source.graph)},
                                  {"index", source.index}});
}

}  // namespace

ExitCode Compile(const CompileArguments& arguments, Console& console) {
  auto source = OpenSource(arguments.source, console);
  if (!source) return source.error();
  auto text = Document(*source, arguments.index);
  if (!text) return console.Complain(text.error());
  // A file gets the canonical bytes and nothing more, so that its SHA-256 is the content id.
  if (!arguments.output || *arguments.output == "-") {
    const bool shown = isatty(STDOUT_FILENO) == 1;
    return PrintText((shown ? SafeJson(*text) : *text) + "\n", console);
  }
  auto written = WriteFile(*arguments.output, *text);
  return written ? ExitCode::kOk : console.Complain(written.error());
}

}  // namespace caisson::cli
