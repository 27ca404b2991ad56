// SPDX-License-Identifier: Apache-2.0
// Server-sent events out of a body that comes in pieces, cut anywhere. Of each event only its data
// counts; names, ids and comments are read over. What it is fed was written by a stranger, so an
// event has a largest size.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::nodes {

class EventStream {
 public:
  using Take = std::function<Result<void>(std::string_view data)>;

  explicit EventStream(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Calls `take` for every event that `piece` completes, and hands on its failure. Fails with
  // model.too_large when an event does not end.
  Result<void> Feed(std::string_view piece, const Take& take);

 private:
  Result<void> Line(std::string_view line, const Take& take);

  const std::size_t most_bytes_;
  std::string line_;  // what has come of it
  std::string data_;
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed that follows belongs to it
};

}  // namespace caisson::nodes
