// SPDX-License-Identifier: Apache-2.0
// A node as the peer's messages show it: `BuiltinNodeSpec(kind='builtin', id='', ...)`. For error
// texts only.
#pragma once

#include <string>

#include "workflow/ir.h"

namespace caisson::workflow {

std::string SpecRepr(const Node& node);

}  // namespace caisson::workflow
