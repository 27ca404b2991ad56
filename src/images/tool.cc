// SPDX-License-Identifier: Apache-2.0
#include "images/tool.h"

#include "errors/images.h"

namespace caisson::images {
namespace {
constexpr int kShownLines = 15;
}

std::string LastLines(std::string_view text, int count) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t from = text.size();
  while (count-- > 0 && from != std::string_view::npos && from != 0) {
    from = text.rfind('\n', from - 1);
  }
  return std::string(from == std::string_view::npos || from == 0 ? text : text.substr(from + 1));
}

Result<std::string> RunTool(const os::Program& program, const std::string& package,
                            const std::stop_token& stop) {
  const std::string& name = program.arguments.at(0);
  if (os::FindProgram(name).empty()) {
    return Fail(errors::kImagesToolMissing,
                name + " is missing; install the Debian package " + package);
  }
  CAISSON_ASSIGN(os::ProgramEnd end, os::RunProgram(program, stop));
  if (stop.stop_requested())
    return Fail(errors::kImagesInterrupted, "stopped while " + name + " ran");
  if (end.succeeded()) return std::move(end.output);
  auto failure = Fail(errors::kImagesToolFailed, name + " " + os::ToText(end.status));
  failure.error().details =
      LastLines(end.messages.empty() ? end.output : end.messages, kShownLines);
  return failure;
}

}  // namespace caisson::images
