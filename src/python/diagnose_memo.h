// SPDX-License-Identifier: Apache-2.0
// The rules whose results diagnose_core.h remembers. Not part of the interface.
#pragma once

#include "python/diagnose_core.h"

namespace caisson::python {

enum class Diagnoser::Memo : std::uint8_t {
  kSimpleStatement,
  kBlock,
  kExpression,
  kStarExpression,
  kDisjunction,
  kConjunction,
  kInversion,
  kBitwiseOr,
  kBitwiseXor,
  kBitwiseAnd,
  kShift,
  kSum,
  kTerm,
  kFactor,
  kAwaitPrimary,
  kPrimary,
  kInvalidNamedExpression,
  kArguments,
  kStrings,
  kStarTarget,
  kTargetWithStarAtom,
  kTargetPrimary,
  kDeleteTarget,
  kTypeParam,
  kClosedPattern,
  kStarPattern,
};

}  // namespace caisson::python
