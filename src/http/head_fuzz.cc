// SPDX-License-Identifier: Apache-2.0
// The parsers of heads, targets and chunks. What they take must mean the same to Beast, another
// reader of the same bytes: else a request could be smuggled past one of the two. Chunks decode to
// the same body, however they are cut.
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "http/chunks.h"
#include "http/head.h"
#include "http/router.h"

namespace {

namespace beast = boost::beast;
using caisson::http::ChunkDecoder;
using caisson::http::Framing;
using caisson::http::Request;

[[noreturn]] void Disagree(const char* what, std::string_view head) {
  std::fprintf(stderr, "%s:\n%.*s\n", what, static_cast<int>(head.size()), head.data());
  std::abort();
}

void CompareWithBeast(std::string_view head, const Request& request, const Framing& framing) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.header_limit(1 << 20);
  parser.skip(false);
  beast::error_code error;
  parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error && error != beast::http::error::need_more &&
      error != beast::http::error::unexpected_body) {
    return;  // it is stricter: nothing can be smuggled past it
  }
  if (!parser.is_header_done()) Disagree("another end of the head", head);
  if (parser.get().method_string() != request.method) Disagree("another method", head);
  if (parser.chunked() != (framing.body == Framing::Body::kChunked)) Disagree("chunked", head);
  const auto length = parser.content_length();
  if (framing.body == Framing::Body::kLength && (!length || *length != framing.length)) {
    Disagree("another length", head);
  }
  if (framing.body == Framing::Body::kNone && length && *length != 0) Disagree("a length", head);
  const auto& fields = parser.get().base();
  std::size_t count = 0;
  for (auto field = fields.begin(); field != fields.end(); ++field) ++count;
  if (count != request.headers.size()) Disagree("another number of fields", head);
}

std::optional<std::string> Decode(std::string_view bytes, std::size_t window, std::size_t most) {
  ChunkDecoder chunks;
  std::string body;
  std::size_t begin = 0, end = std::min(window, bytes.size());
  while (!chunks.done()) {
    const auto step = chunks.Next(bytes.substr(begin, end - begin), most);
    if (!step) return std::nullopt;
    body += step->data;
    begin += step->consumed;
    if (step->consumed > 0) continue;
    if (end == bytes.size()) return std::nullopt;
    end = std::min(end + window, bytes.size());
  }
  return body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = caisson::http::FindHeadEnd(bytes);
  if (end > 0) {
    const std::string_view head = bytes.substr(0, end);
    Request request;
    if (caisson::http::ParseRequestHead(head, 64, request)) {
      (void)caisson::http::ParseTarget(request);
      for (const std::string& segment : request.segments) {
        if (segment == "." || segment == ".." || segment.find('\0') != std::string::npos) {
          Disagree("a path trick got through", head);
        }
      }
      if (const auto framing = caisson::http::RequestFraming(request)) {
        CompareWithBeast(head, request, *framing);
      }
    }
    if (const auto response = caisson::http::ParseResponseHead(head, 64)) {
      (void)caisson::http::ResponseFraming(*response, false);
    }
  }
  const auto whole = Decode(bytes.substr(end), bytes.size() + 1, 1 << 20);
  for (const std::size_t window : {1u, 7u}) {
    const auto cut = Decode(bytes.substr(end), window, 3);
    if (whole && (!cut || *cut != *whole)) Disagree("chunks depend on how they are cut", bytes);
    if (!whole && cut) Disagree("chunks depend on how they are cut", bytes);
  }
  return 0;
}
