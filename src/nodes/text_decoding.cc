// SPDX-License-Identifier: Apache-2.0
#include "nodes/text_decoding.h"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "base/utf8.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many bytes at the start of `text`, which begins no valid character, are the beginning of one;
// at least 1.
std::size_t MalformedLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  unsigned low = 0x80;
  unsigned high = 0xbf;
  std::size_t size = 1;
  if (lead >= 0xc2 && lead <= 0xdf) size = 2;
  if (lead >= 0xe0 && lead <= 0xef) size = 3;
  if (lead >= 0xf0 && lead <= 0xf4) size = 4;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  std::size_t length = 1;
  for (; length < size && length < text.size(); ++length) {
    if (byte(length) < low || byte(length) > high) break;
    low = 0x80;
    high = 0xbf;
  }
  return length;
}

// The value of the charset parameter, in lower case; empty when there is none.
std::string CharsetOf(std::string_view content_type) {
  const std::string lower = Lower(content_type);
  for (std::size_t at = lower.find(';'); at != std::string::npos; at = lower.find(';', at)) {
    at = lower.find_first_not_of(" \t;", at);
    if (at == std::string::npos) break;
    if (lower.compare(at, 8, "charset=") != 0) continue;
    std::string_view value = std::string_view(lower).substr(at + 8);
    if (value.starts_with('"')) {
      value.remove_prefix(1);
      value = value.substr(0, value.find('"'));
    } else {
      value = value.substr(0, value.find_first_of("; \t"));
    }
    return std::string(value);
  }
  return "";
}

std::string FromLatin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) AppendCharacter(text, static_cast<unsigned char>(c));
  return text;
}

std::string FromAscii(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (static_cast<unsigned char>(c) < 0x80) {
      text += c;
    } else {
      text += kReplacement;
    }
  }
  return text;
}

class Converter {
 public:
  explicit Converter(const std::string& charset) : handle_(iconv_open("UTF-8", charset.c_str())) {}
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  ~Converter() {
    if (known()) iconv_close(handle_);
  }
  bool known() const { return reinterpret_cast<std::intptr_t>(handle_) != -1; }

  std::string Convert(std::string_view bytes) {
    std::string text;
    char* from = const_cast<char*>(bytes.data());  // iconv's signature; it does not write
    std::size_t left = bytes.size();
    while (left > 0) {
      std::array<char, 4096> piece;
      char* into = piece.data();
      std::size_t room = piece.size();
      const std::size_t result = iconv(handle_, &from, &left, &into, &room);
      const int error = errno;
      text.append(piece.data(), piece.size() - room);
      if (result != static_cast<std::size_t>(-1) || error == E2BIG) continue;
      text += kReplacement;
      if (error == EINVAL) break;  // the input ends within a character
      ++from;
      --left;
    }
    return text;
  }

 private:
  iconv_t handle_;
};

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::string ReplaceMalformed(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = CharacterLength(bytes);
    if (length != 0) {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    } else {
      text += kReplacement;
      bytes.remove_prefix(MalformedLength(bytes));
    }
  }
  return text;
}

std::string DecodeBody(std::string_view bytes, std::string_view content_type) {
  const std::string charset = CharsetOf(content_type);
  if (IsOneOf(charset, {"iso-8859-1", "latin-1", "latin1", "l1", "iso8859-1", "8859"})) {
    return FromLatin1(bytes);
  }
  if (IsOneOf(charset, {"ascii", "us-ascii", "646"})) return FromAscii(bytes);
  // A name and no more: iconv takes options behind slashes.
  const bool is_name =
      !charset.empty() && charset.size() <= 40 && std::ranges::all_of(charset, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      });
  if (!is_name || IsOneOf(charset, {"utf-8", "utf8", "utf_8"})) return ReplaceMalformed(bytes);
  Converter converter(charset);
  return converter.known() ? converter.Convert(bytes) : ReplaceMalformed(bytes);
}

}  // namespace caisson::nodes
