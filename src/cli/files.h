// SPDX-License-Identifier: Apache-2.0
// Reads and writes the files that a command line names. "-" is standard input or output. Reading is
// bounded, so that a device without end does no harm; writing is atomic.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace caisson::cli {

inline constexpr std::size_t kMaxInputBytes = 256u << 20;

// Fails with cli.file_unreadable, also when there are more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, std::size_t limit = kMaxInputBytes);

// Replaces `path` in one step; fails with cli.file_unwritable.
Result<void> WriteFile(const std::string& path, std::string_view text);

// The data that come with the program: CAISSON_RUNTIMES_DIR, else where it was built.
std::string RuntimesDirectory();

// Where this program stands, and our others beside it; empty when that cannot be known.
std::string ProgramDirectory();

// A JSON argument: the text itself, "@file", or "-". `what` ("--input") opens messages.
Result<json::Value> ReadJsonArgument(const std::string& argument, std::string_view what);

}  // namespace caisson::cli
