// SPDX-License-Identifier: Apache-2.0
// Heads, targets and chunks. What passes the check of the form must mean the same to Beast as to
// the plainest reader there is, which splits at line ends and colons: else a request could be
// smuggled past one of the two. Chunks decode to the same body, however they are cut, and to the
// one that the plain reader finds.
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

using caisson::http::ChunkDecoder;
using caisson::http::Framing;
using caisson::http::Headers;
using caisson::http::Request;

[[noreturn]] void Disagree(const char* what, std::string_view head) {
  std::fprintf(stderr, "%s:\n%.*s\n", what, static_cast<int>(head.size()), head.data());
  std::abort();
}

// Takes what stands before `mark` off `rest`, and the mark.
std::string_view Cut(std::string_view& rest, std::string_view mark) {
  const std::size_t end = rest.find(mark);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + mark.size());
  return part;
}

void CompareFields(std::string_view head, std::string_view rest, const Headers& headers,
                   const Framing& framing, bool may_have_body) {
  std::size_t length = 0;
  bool chunked = false;
  for (const auto& field : headers) {
    std::string_view line = Cut(rest, "\r\n");
    const std::string_view name = Cut(line, ":");
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (field.name != name || field.value != line) Disagree("another field", head);
    if (caisson::http::EqualsIgnoringCase(name, "Content-Length")) {
      length = std::strtoull(std::string(line).c_str(), nullptr, 10);
    }
    if (caisson::http::EqualsIgnoringCase(name, "Transfer-Encoding")) chunked = true;
  }
  if (rest != "\r\n") Disagree("another number of fields", head);
  if (framing.length != length) Disagree("another length", head);
  if (!may_have_body) return;
  if ((framing.body == Framing::Body::kChunked) != chunked) Disagree("chunked", head);
  if ((framing.body == Framing::Body::kLength) != (length > 0)) Disagree("a length", head);
}

void CheckRequest(std::string_view head) {
  Request request;
  const auto framing = caisson::http::ParseRequestHead(head, 64, request);
  if (!framing) return;
  std::string_view rest = head;
  std::string_view line = Cut(rest, "\r\n");
  if (request.method != Cut(line, " ")) Disagree("another method", head);
  const std::string_view target = Cut(line, " ");
  if (target != request.target && !target.starts_with("http")) Disagree("another target", head);
  if (line != (request.version == 11 ? "HTTP/1.1" : "HTTP/1.0")) Disagree("a version", head);
  CompareFields(head, rest, request.headers, *framing, true);
  (void)caisson::http::ParseTarget(request);
  for (const std::string& segment : request.segments) {
    if (segment == "." || segment == ".." || segment.find('\0') != std::string::npos) {
      Disagree("a path trick got through", head);
    }
  }
}

void CheckResponse(std::string_view head, bool of_head_request) {
  const auto response = caisson::http::ParseResponseHead(head, 64, of_head_request);
  if (!response) return;
  std::string_view rest = head;
  std::string_view line = Cut(rest, "\r\n");
  (void)Cut(line, " ");
  if (Cut(line, " ") != std::to_string(response->status)) Disagree("another status", head);
  const bool may_have_body = !of_head_request && response->status >= 200 &&
                             response->status != 204 && response->status != 304;
  if (!may_have_body && response->framing.body != Framing::Body::kNone) Disagree("a body", head);
  CompareFields(head, rest, response->headers, response->framing, may_have_body);
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

std::string DecodePlainly(std::string_view rest) {
  std::string body;
  while (!rest.empty()) {
    const std::string line(Cut(rest, "\r\n"));
    const std::size_t size = std::strtoull(line.c_str(), nullptr, 16);
    if (size == 0) break;
    body += rest.substr(0, size);
    rest.remove_prefix(std::min(size + 2, rest.size()));
  }
  return body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = caisson::http::FindHeadEnd(bytes);
  if (end > 0) {
    CheckRequest(bytes.substr(0, end));
    CheckResponse(bytes.substr(0, end), false);
    CheckResponse(bytes.substr(0, end), true);
  }
  const std::string_view coded = bytes.substr(end);
  const auto whole = Decode(coded, bytes.size() + 1, 1 << 20);
  if (whole && *whole != DecodePlainly(coded)) Disagree("another body", bytes);
  for (const std::size_t window : {1u, 7u}) {
    const auto cut = Decode(coded, window, 3);
    if (whole && (!cut || *cut != *whole)) Disagree("chunks depend on how they are cut", bytes);
    if (!whole && cut) Disagree("chunks depend on how they are cut", bytes);
  }
  return 0;
}
