// SPDX-License-Identifier: Apache-2.0
// Runs the tools that images are built with; their failures become ours, last lines included.
#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "os/run_program.h"

namespace caisson::images {

// Standard output of a program that succeeded. Fails with images.tool_missing (it is not in PATH;
// the message says which Debian package has it), images.interrupted, and images.tool_failed, whose
// details are the last lines that it printed.
Result<std::string> RunTool(const os::Program& program, const std::string& package,
                            const std::stop_token& stop);

// The last `count` lines of `text`.
std::string LastLines(std::string_view text, int count);

}  // namespace caisson::images
