// SPDX-License-Identifier: Apache-2.0
#include "http/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "errors/http.h"
#include "http/headers.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostMethod = 32;
constexpr std::size_t kMostLengthDigits = 18;
constexpr std::size_t kMostSizeDigits = 15;
constexpr std::size_t kMostChunkLine = 1024;
constexpr std::size_t kMostTrailers = 8192;

std::unexpected<Status> Bad(std::string message) {
  return Fail(errors::kHttpBadRequest, std::move(message));
}

// Takes one line off `rest`, which ends with CRLF.
Result<std::string_view> TakeLine(std::string_view& rest) {
  const std::size_t end = rest.find_first_of(std::string_view("\r\n\0", 3));
  if (end == std::string_view::npos || rest.substr(end, 2) != "\r\n") {
    return Bad("the header has a CR, LF or NUL that does not end a line");
  }
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

std::string_view TrimSpace(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool IsVisible(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<void> CheckVersion(std::string_view text) {
  if (text == "HTTP/1.1" || text == "HTTP/1.0") return {};
  if (text.starts_with("HTTP/") && IsToken(text.substr(5))) {
    return Fail(errors::kHttpVersion, "the HTTP version is not supported; use 1.1");
  }
  return Bad("the first line does not name an HTTP version");
}

// How often the fields came that say where the message ends, and whom it is for.
struct Marks {
  std::size_t hosts = 0, lengths = 0, codings = 0;
  std::string_view length, coding;
};

void Note(std::string_view name, std::string_view value, Marks& marks) {
  if (EqualsIgnoringCase(name, "Host")) ++marks.hosts;
  if (EqualsIgnoringCase(name, "Content-Length")) {
    ++marks.lengths;
    marks.length = value;
  }
  if (EqualsIgnoringCase(name, "Transfer-Encoding")) {
    ++marks.codings;
    marks.coding = value;
  }
}

Result<Marks> CheckFields(std::string_view rest, std::size_t most_fields) {
  Marks marks;
  for (std::size_t count = 0;; ++count) {
    CAISSON_ASSIGN(const std::string_view line, TakeLine(rest));
    if (line.empty()) return marks;
    if (count == most_fields) {
      return Fail(errors::kHttpHeaderTooLarge,
                  fmt::format("the header has more than {} fields", most_fields));
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return Bad("a field of the header is folded over two lines");
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Bad("a line of the header does not begin with a field name and a colon");
    }
    const std::string_view value = TrimSpace(line.substr(colon + 1));
    if (!IsFieldValue(value)) return Bad("a field of the header holds a control character");
    Note(line.substr(0, colon), value, marks);
  }
}

Result<void> CheckLength(const Marks& marks) {
  if (marks.lengths > 1) return Bad("the header has more than one Content-Length");
  if (!IsDigits(marks.length) || marks.length.size() > kMostLengthDigits ||
      (marks.length.size() > 1 && marks.length.front() == '0')) {
    return Bad("the Content-Length is no plain number of bytes");
  }
  return {};
}

Result<void> CheckFraming(const Marks& marks, bool is_http_1_0) {
  if (marks.codings == 0) return marks.lengths == 0 ? Result<void>() : CheckLength(marks);
  if (marks.lengths > 0) {
    return Bad("the header has both a Content-Length and a Transfer-Encoding");
  }
  if (is_http_1_0) return Bad("HTTP/1.0 has no Transfer-Encoding");
  if (marks.codings > 1 || !EqualsIgnoringCase(marks.coding, "chunked")) {
    return Fail(errors::kHttpTransferCoding, "the Transfer-Encoding is not exactly \"chunked\"");
  }
  return {};
}

// A line of `bytes` from `begin` on: its end, behind the CRLF; nullopt when it is not whole.
Result<std::optional<std::size_t>> ChunkLineEnd(std::string_view bytes, std::size_t begin) {
  const std::size_t end = bytes.find_first_of("\r\n", begin);
  if (std::min(end, bytes.size()) - begin > kMostChunkLine) {
    return Bad("a chunk of the body has a line too long");
  }
  if (end == std::string_view::npos || (bytes[end] == '\r' && end + 1 == bytes.size())) {
    return std::nullopt;
  }
  if (bytes.substr(end, 2) != "\r\n") return Bad("a line between chunks does not end with CRLF");
  return end + 2;
}

// True for the size of the last chunk.
Result<bool> CheckSize(std::string_view line) {
  const std::size_t digits =
      static_cast<std::size_t>(std::ranges::find_if_not(line, IsHexDigit) - line.begin());
  if (digits > kMostSizeDigits) return Bad("the size of a chunk is too large");
  const std::string_view rest = line.substr(digits);
  if (digits == 0 || (!rest.empty() && (rest.front() != ';' || !IsFieldValue(rest)))) {
    return Bad("the size of a chunk is malformed");
  }
  return line.substr(0, digits).find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

Result<void> CheckRequestForm(std::string_view head, std::size_t most_fields) {
  CAISSON_ASSIGN(const std::string_view line, TakeLine(head));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Bad("the first line is no \"METHOD target HTTP/1.1\"");
  }
  CAISSON_TRY(CheckVersion(line.substr(last + 1)));
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!IsToken(line.substr(0, first)) || first > kMostMethod) {
    return Bad("the method is malformed");
  }
  if (!IsVisible(target) || target.find('#') != std::string_view::npos) {
    return Bad("the request target holds a character that must be percent-encoded");
  }
  CAISSON_ASSIGN(const Marks marks, CheckFields(head, most_fields));
  const bool is_http_1_0 = line.ends_with('0');
  if (marks.hosts > 1) return Bad("the header has more than one Host");
  if (marks.hosts == 0 && !is_http_1_0) return Bad("the header has no Host");
  return CheckFraming(marks, is_http_1_0);
}

Result<void> CheckResponseForm(std::string_view head, std::size_t most_fields) {
  CAISSON_ASSIGN(const std::string_view line, TakeLine(head));
  CAISSON_TRY(CheckVersion(line.substr(0, line.find(' '))));
  const std::string_view status = line.size() >= 12 ? line.substr(9, 3) : std::string_view();
  if (!IsDigits(status) || status.front() == '0' || (line.size() > 12 && line[12] != ' ')) {
    return Bad("the first line has no status of three digits");
  }
  CAISSON_ASSIGN(const Marks marks, CheckFields(head, most_fields));
  return CheckFraming(marks, line.substr(7, 1) == "0");
}

Result<std::size_t> ChunkForm::Check(std::string_view bytes) {
  if (at_ == At::kDataEnd) {
    if (!std::string_view("\r\n").starts_with(bytes.substr(0, 2))) {
      return Bad("a chunk of the body does not end where its size says");
    }
    if (bytes.size() < 2) return std::size_t{0};
    begin_ = 2;
    at_ = At::kSize;
  }
  if (at_ == At::kTrailer) return CheckTrailers(bytes);
  CAISSON_ASSIGN(const auto end, ChunkLineEnd(bytes, begin_));
  if (!end) return std::size_t{0};
  CAISSON_ASSIGN(const bool is_last, CheckSize(bytes.substr(begin_, *end - 2 - begin_)));
  if (!is_last) {
    at_ = At::kDataEnd;
    begin_ = 0;
    return *end;
  }
  at_ = At::kTrailer;
  begin_ = *end;
  return CheckTrailers(bytes);
}

Result<std::size_t> ChunkForm::CheckTrailers(std::string_view bytes) {
  while (true) {
    CAISSON_ASSIGN(const auto end, ChunkLineEnd(bytes, begin_));
    if (!end) return std::size_t{0};
    const std::string_view line = bytes.substr(begin_, *end - 2 - begin_);
    trailers_ += *end - begin_;
    begin_ = *end;
    if (trailers_ > kMostTrailers) return Bad("the trailers of the body are too large");
    if (line.empty()) return begin_;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)) ||
        !IsFieldValue(TrimSpace(line.substr(colon + 1)))) {
      return Bad("a trailer of the body is malformed");
    }
  }
}

}  // namespace caisson::http
