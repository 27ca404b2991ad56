// SPDX-License-Identifier: Apache-2.0
// What the harness returns from `load` and `call`, read from the guest's memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isolate/micropython/guest_memory.h"
#include "isolate/runtime.h"

namespace caisson::isolate {

struct Report {
  bool ok = false;
  std::uint32_t value = 0;  // ok: the object that came back
  // Not told by the guest's word alone: whether its heap was full is for the host to say.
  bool claims_no_memory = false;
  Fault fault = Fault::kNone;  // when the claim is wrong, too
  std::string error_type;
  std::string message;
  std::vector<TracebackFrame> traceback;
};

// An object of no known form gives kArtifact.
Report ReadReport(const GuestMemory& memory, std::uint32_t object);

// The frames of the author's source in the interpreter's text of a traceback; of very deep ones
// the outermost and the innermost.
std::vector<TracebackFrame> ParseTraceback(std::string_view text);

}  // namespace caisson::isolate
