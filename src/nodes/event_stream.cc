// SPDX-License-Identifier: Apache-2.0
#include "nodes/event_stream.h"

#include <algorithm>
#include <utility>

#include "errors/model.h"

namespace caisson::nodes {

Result<void> EventStream::Feed(std::string_view piece, const Take& take) {
  while (!piece.empty()) {
    if (std::exchange(after_return_, false) && piece[0] == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(piece.find_first_of("\r\n"), piece.size());
    if (line_.size() + data_.size() + end > most_bytes_) {
      return Fail(errors::kModelTooLarge,
                  "an event of its stream has more than " + std::to_string(most_bytes_) + " bytes");
    }
    line_ += piece.substr(0, end);
    if (end == piece.size()) return {};
    after_return_ = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    CAISSON_TRY(Line(line, take));
  }
  return {};
}

Result<void> EventStream::Line(std::string_view line, const Take& take) {
  if (line.empty()) {
    if (!std::exchange(has_data_, false)) return {};
    const std::string data = std::exchange(data_, {});
    return take(data);
  }
  if (!line.starts_with("data")) return {};
  line.remove_prefix(4);
  if (!line.empty() && line[0] != ':') return {};
  if (!line.empty()) line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += line;
  return {};
}

}  // namespace caisson::nodes
