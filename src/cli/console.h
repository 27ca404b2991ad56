// SPDX-License-Identifier: Apache-2.0
// Where the command talks: results to standard output, everything else to standard error. Decides
// about colours. All members are thread-safe. Owns no descriptor.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"
#include "errors/exit_codes.h"

namespace caisson::cli {

class Console {
 public:
  Console();

  // Writes all of `text`; fails with cli.file_unwritable when the reader has gone or the disk is
  // full.
  Result<void> Print(std::string_view text);
  // To standard error as it is; what cannot be written is lost. Whatever is foreign in it must have
  // gone through base/foreign_text.h.
  void Say(std::string_view text);

  void Info(std::string_view message);
  void Warn(std::string_view message);
  // Prints code and message, and gives the exit code that the catalogue has for it. Like Info and
  // Warn it takes text with foreign parts.
  ExitCode Complain(const Status& status);

  // While it is held, nobody else's text comes between what its holder writes to standard error.
  std::unique_lock<std::mutex> Hold() { return std::unique_lock(mutex_); }

  void set_quiet(bool quiet) { quiet_ = quiet; }  // drops Info and Warn
  bool color() const { return color_; }           // of standard error

 private:
  void Line(std::string_view label, std::string_view color, std::string_view message);

  std::mutex mutex_;
  bool quiet_ = false;
  bool color_ = false;
};

ExitCode ExitCodeOf(ErrorCode code);

}  // namespace caisson::cli
