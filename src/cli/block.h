// SPDX-License-Identifier: Apache-2.0
// The actions of `caisson block`, one file each; see commands.h for what they have in common.
#pragma once

#include "cli/block_arguments.h"
#include "cli/console.h"
#include "errors/exit_codes.h"

namespace caisson::cli {

ExitCode Block(const BlockArguments& arguments, Console& console);

ExitCode BlockRun(const BlockRunArguments& arguments, Console& console);
ExitCode BlockServe(const BlockServeArguments& arguments, Console& console);
ExitCode BlockCheck(const BlockCheckArguments& arguments, Console& console);
ExitCode BlockLibraries(const BlockLibrariesArguments& arguments, Console& console);

}  // namespace caisson::cli
