// SPDX-License-Identifier: Apache-2.0
// Writes the lines of the block protocol (docs/block-protocol.md). Without line ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "block/outcome.h"
#include "block/receiver.h"
#include "block/request.h"

namespace caisson::block {

// One line in three pieces, so that a long text of a guest is not copied into it.
struct Line {
  std::string head;
  std::string_view body;  // of the delivery; may be empty
  std::string_view tail;  // static
  std::size_t size() const { return head.size() + body.size() + tail.size(); }
};

Line EncodeDelivery(std::string_view id, const Delivery& delivery);
std::string EncodeAccepted(std::string_view id, std::string_view runtime);
std::string EncodeEnd(std::string_view id, const BlockOutcome& outcome);
// `line`: the number of the input line, from 1.
std::string EncodeRefusal(const RequestError& error, std::uint64_t line);

}  // namespace caisson::block
