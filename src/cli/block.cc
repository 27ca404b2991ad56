// SPDX-License-Identifier: Apache-2.0
#include "cli/block.h"

#include <type_traits>

namespace caisson::cli {
namespace {

struct Dispatch {
  Console& console;
  ExitCode operator()(const BlockRunArguments& wish) { return BlockRun(wish, console); }
  ExitCode operator()(const BlockServeArguments& wish) { return BlockServe(wish, console); }
  ExitCode operator()(const BlockCheckArguments& wish) { return BlockCheck(wish, console); }
  ExitCode operator()(const BlockLibrariesArguments& wish) { return BlockLibraries(wish, console); }
};

}  // namespace

ExitCode Block(const BlockArguments& arguments, Console& console) {
  return std::visit(Dispatch{console}, arguments);
}

}  // namespace caisson::cli
