// SPDX-License-Identifier: Apache-2.0
// CodeNode used as it is, without a class of the author's: accepted, and fails when it is reached.
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

Result<json::Value> RunCode(const Visit&) {
  return NodeFailed("CodeNode subclass 'CodeNode' must implement run()");
}

}  // namespace

extern constexpr NodeType kCodeNode{"CodeNode", {}, RunCode};

}  // namespace caisson::nodes
