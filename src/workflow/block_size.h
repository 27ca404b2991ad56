// SPDX-License-Identifier: Apache-2.0
// Blocks that the pinned MicroPython artifact cannot compile because a jump would have to cross too
// much bytecode ("bytecode overflow"). Sizes are lower bounds, from the shortest form of each
// instruction: what is found here must fail, and what is not found may still do so.
#pragma once

#include <cstdint>
#include <vector>

#include "python/ast.h"

namespace caisson::workflow {

// What a jump can cross: those of loops and branches, and those into handlers.
inline constexpr std::uint64_t kMaxJumpBytes = 16'384;
inline constexpr std::uint64_t kMaxHandlerJumpBytes = 32'768;

// The statements of `run`, nested functions included, whose blocks are too long; of nested ones the
// innermost only. In source order.
std::vector<const python::Stmt*> FindLongBlocks(const python::FunctionDef& run);

}  // namespace caisson::workflow
