// SPDX-License-Identifier: Apache-2.0
// Drawings of an IR as text for other tools. Ids and labels are escaped: nothing in an IR can
// become syntax of the drawing.
#pragma once

#include <string>

#include "workflow/ir.h"

namespace caisson::cli {

std::string DrawMermaid(const workflow::Graph& graph);
std::string DrawDot(const workflow::Graph& graph);

}  // namespace caisson::cli
