// SPDX-License-Identifier: Apache-2.0
// timeout(1) as GNU coreutils has it, but for one thing: whenever its own deadline has fired it
// exits with 124, also where the signal was KILL (there GNU's ends with 137, which programs read as
// "out of memory"). --preserve-status still tells the command's status.
#pragma once

namespace caisson::agent::guest {

int TimeoutMain(int argc, char** argv);

}  // namespace caisson::agent::guest
