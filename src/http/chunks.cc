// SPDX-License-Identifier: Apache-2.0
#include "http/chunks.h"

#include <algorithm>

#include "errors/http.h"
#include "http/beast_parser.h"

namespace caisson::http {

class ChunkDecoder::Parser final : public BeastParser<true> {
 public:
  Parser() { (void)Take("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"); }

  // What is left of the data of a chunk that has begun.
  std::uint64_t left() const { return left_; }

 private:
  void on_chunk_header_impl(std::uint64_t size, Text, Error&) override { left_ = size; }
  std::size_t on_chunk_body_impl(std::uint64_t, Text bytes, Error&) override {
    left_ -= bytes.size();
    return bytes.size();
  }

  std::uint64_t left_ = 0;
};

ChunkDecoder::ChunkDecoder() = default;
ChunkDecoder::ChunkDecoder(ChunkDecoder&&) noexcept = default;
ChunkDecoder& ChunkDecoder::operator=(ChunkDecoder&&) noexcept = default;
ChunkDecoder::~ChunkDecoder() = default;

bool ChunkDecoder::done() const { return parser_ && parser_->is_done(); }

Result<ChunkDecoder::Step> ChunkDecoder::Next(std::string_view bytes, std::size_t most) {
  if (bytes.empty()) return Step{};
  if (!parser_) parser_ = std::make_unique<Parser>();
  const bool is_data = parser_->left() > 0;
  std::size_t size = 0;
  if (is_data) {
    size = std::min<std::uint64_t>({parser_->left(), bytes.size(), most});
  } else {
    CAISSON_ASSIGN(size, form_.Check(bytes));
  }
  if (size == 0) return Step{};
  const std::string_view piece = bytes.substr(0, size);
  if (!parser_->Take(piece)) {
    return Fail(errors::kHttpBadRequest, "a chunk of the body is malformed");
  }
  return Step{size, is_data ? piece : std::string_view()};
}

}  // namespace caisson::http
