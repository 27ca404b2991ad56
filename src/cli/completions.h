// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells, made from the description of the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace caisson::cli {

std::string BashCompletions(const std::vector<CommandInfo>& commands);
std::string ZshCompletions(const std::vector<CommandInfo>& commands);
std::string FishCompletions(const std::vector<CommandInfo>& commands);

}  // namespace caisson::cli
