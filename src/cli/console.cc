// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error_catalogue.h"
#include "base/foreign_text.h"
#include "errors/cli.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kPlain = "\x1b[0m";

bool WantsColor() {
  const char* refusal = std::getenv("NO_COLOR");
  if (refusal != nullptr && *refusal != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return false;
  return isatty(STDERR_FILENO) == 1;
}

}  // namespace

Console::Console() : color_(WantsColor()) {}

Result<void> Console::Print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const int error = os::WriteAll(STDOUT_FILENO, text);
  if (error == 0) return {};
  return Fail(errors::kCliFileUnwritable,
              std::string("standard output cannot be written: ") + std::strerror(error));
}

void Console::Say(std::string_view text) {
  const std::lock_guard lock(mutex_);
  (void)os::WriteAll(STDERR_FILENO, text);
}

void Console::Info(std::string_view message) {
  if (!quiet_) Line("info", kBold, message);
}

void Console::Warn(std::string_view message) {
  if (!quiet_) Line("warning", kYellow, message);
}

ExitCode Console::Complain(const Status& status) {
  Line("error[" + std::string(status.code.name) + "]", kRed, status.message);
  if (!status.details.empty()) Say("  | " + ShowForeign(status.details) + "\n");
  return ExitCodeOf(status.code);
}

void Console::Line(std::string_view label, std::string_view color, std::string_view message) {
  std::string line = "caisson: ";
  if (color_) line += color;
  line.append(label).append(":");
  if (color_) line += kPlain;
  Say(line + " " + ShowForeign(message) + "\n");
}

ExitCode ExitCodeOf(ErrorCode code) { return static_cast<ExitCode>(FindError(code).exit_code); }

}  // namespace caisson::cli
