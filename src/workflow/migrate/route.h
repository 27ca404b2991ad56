// SPDX-License-Identifier: Apache-2.0
// What a conditional edge reads and where it leads, of a router function. Reads only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workflow/migrate/body.h"

namespace caisson::workflow::migrate {

// The path in the state of a router that only reads one value; nothing for any other.
std::optional<std::string> PlainPath(const Subject& subject, const Branch& branch,
                                     const Place& place);

// The values that the router may give, and where they lead: as mapped, as annotated, as it returns
// constants, or else any node.
std::vector<std::pair<std::string, std::string>> MappingOf(const Subject& subject,
                                                           const GraphModel& graph,
                                                           const Branch& branch);

}  // namespace caisson::workflow::migrate
