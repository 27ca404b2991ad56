// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "python/literals.h"
#include "python/unicode.h"

namespace caisson::python {
namespace {

constexpr char32_t kMaxCodePoint = 0x10FFFF;
// CPython decodes escapes in a copy of the body in which each other character than ASCII stands as
// \UXXXXXXXX and a backslash before one as \u005c; the positions in its messages count in that.
constexpr std::size_t kEscapedCharacter = 10;
constexpr std::size_t kEscapedBackslash = 6;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that `\c` stands for, or 0 when `\c` is no escape of one character.
char SimpleEscape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    default:
      return 0;
  }
}

// Up to three octal digits at `at`, which it moves past.
unsigned TakeOctal(std::string_view body, std::size_t& at) {
  unsigned value = 0;
  for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i) {
    value = value * 8 + static_cast<unsigned>(body[at++] - '0');
  }
  return value;
}

std::size_t FindNonAscii(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) return i;
  }
  return std::string_view::npos;
}

class StringDecoder {
 public:
  explicit StringDecoder(std::string_view body) : body_(body) { out_.reserve(body.size()); }

  EscapeError Run() {
    while (at_ < body_.size()) {
      const std::size_t backslash = std::min(body_.find('\\', at_), body_.size());
      CopyPlain(backslash);
      if (at_ == body_.size()) break;
      if (EscapeError error = Escape()) return error;
    }
    return std::nullopt;
  }

  const std::string& out() const { return out_; }

 private:
  void CopyPlain(std::size_t end) {
    const std::string_view plain = body_.substr(at_, end - at_);
    out_ += plain;
    for (const char c : plain) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        ++position_;
      } else if (byte >= 0xC0) {
        position_ += kEscapedCharacter;
      }
    }
    at_ = end;
  }

  EscapeError Escape() {
    const std::size_t start = at_++;
    if (at_ == body_.size() || static_cast<unsigned char>(body_[at_]) >= 0x80) {
      out_.push_back('\\');
      position_ += kEscapedBackslash;
      return std::nullopt;
    }
    const char c = body_[at_++];
    if (const char simple = SimpleEscape(c)) {
      out_.push_back(simple);
    } else if (c >= '0' && c <= '7') {
      --at_;
      AppendUtf8(out_, TakeOctal(body_, at_));
    } else if (c == 'x') {
      if (EscapeError error = Hex(start, 2, "truncated \\xXX escape")) return error;
    } else if (c == 'u') {
      if (EscapeError error = Hex(start, 4, "truncated \\uXXXX escape")) return error;
    } else if (c == 'U') {
      if (EscapeError error = Hex(start, 8, "truncated \\UXXXXXXXX escape")) return error;
    } else if (c == 'N') {
      if (EscapeError error = Named(start)) return error;
    } else if (c != '\n') {
      out_.push_back('\\');
      out_.push_back(c);
    }
    position_ += at_ - start;
    return std::nullopt;
  }

  EscapeError Hex(std::size_t start, int digits, const char* truncated) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const int digit = at_ < body_.size() ? HexValue(body_[at_]) : -1;
      if (digit < 0) return Error(start, truncated);
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > kMaxCodePoint) return Error(start, "illegal Unicode character");
    AppendUtf8(out_, value);
    return std::nullopt;
  }

  EscapeError Named(std::size_t start) {
    constexpr const char* kMalformed = "malformed \\N character escape";
    if (at_ == body_.size() || body_[at_] != '{') return Error(start, kMalformed);
    const std::size_t name_start = ++at_;
    const std::size_t brace = body_.find('}', name_start);
    at_ = std::min(brace, body_.size());
    if (brace == std::string_view::npos || brace == name_start) return Error(start, kMalformed);
    ++at_;
    const auto c = CharacterByName(body_.substr(name_start, brace - name_start));
    if (!c) return Error(start, "unknown Unicode character name");
    AppendUtf8(out_, *c);
    return std::nullopt;
  }

  EscapeError Error(std::size_t start, const char* reason) const {
    std::size_t end = position_;
    for (std::size_t i = start; i < at_; ++i) {
      const auto byte = static_cast<unsigned char>(body_[i]);
      end += byte < 0x80 ? 1 : byte >= 0xC0 ? kEscapedCharacter : 0;
    }
    return fmt::format(
        "(unicode error) 'unicodeescape' codec can't decode bytes in position {}-{}: {}", position_,
        end - 1, reason);
  }

  std::string_view body_;
  std::size_t at_ = 0;
  std::size_t position_ = 0;  // of at_ in CPython's copy
  std::string out_;
};

EscapeError DecodeByteEscape(std::string_view body, std::size_t& at, std::string& out) {
  const std::size_t start = at++;
  const char c = body[at++];  // a literal never ends in a lone backslash
  if (const char simple = SimpleEscape(c)) {
    out.push_back(simple);
  } else if (c >= '0' && c <= '7') {
    --at;
    out.push_back(static_cast<char>(TakeOctal(body, at)));
  } else if (c == 'x') {
    const int high = at < body.size() ? HexValue(body[at]) : -1;
    const int low = at + 1 < body.size() ? HexValue(body[at + 1]) : -1;
    if (high < 0 || low < 0) {
      return fmt::format("(value error) invalid \\x escape at position {}", start);
    }
    out.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  } else if (c != '\n') {
    out.push_back('\\');
    out.push_back(c);
  }
  return std::nullopt;
}

}  // namespace

StringSpelling SplitString(std::string_view token) {
  StringSpelling out;
  std::size_t quotes = 0;
  for (; token[quotes] != '"' && token[quotes] != '\''; ++quotes) {
    const char letter = static_cast<char>(token[quotes] | 32);
    out.raw |= letter == 'r';
    out.bytes |= letter == 'b';
    out.unicode |= token[quotes] == 'u';  // CPython's kind ignores U
  }
  token.remove_prefix(quotes);
  const std::size_t size =
      token.size() >= 6 && token[1] == token[0] && token[2] == token[0] ? 3 : 1;
  out.body = token.substr(size, token.size() - 2 * size);
  return out;
}

std::string BadConversion(std::string_view name) {
  return fmt::format("f-string: invalid conversion character '{}': expected 's', 'r', or 'a'",
                     name);
}

EscapeError DecodeString(const StringSpelling& spelling, Arena& arena, std::string_view& out) {
  if (spelling.bytes && FindNonAscii(spelling.body) != std::string_view::npos) {
    return kBytesNotAscii;
  }
  out = spelling.body;
  if (spelling.raw) return std::nullopt;
  return spelling.bytes ? DecodeBytesBody(spelling.body, arena, out)
                        : DecodeStringBody(spelling.body, arena, out);
}

EscapeError DecodeStringBody(std::string_view body, Arena& arena, std::string_view& out) {
  if (body.find('\\') == std::string_view::npos) {
    out = body;
    return std::nullopt;
  }
  StringDecoder decoder(body);
  if (EscapeError error = decoder.Run()) return error;
  out = arena.Copy(decoder.out());
  return std::nullopt;
}

EscapeError DecodeBytesBody(std::string_view body, Arena& arena, std::string_view& out) {
  if (body.find('\\') == std::string_view::npos) {
    out = body;
    return std::nullopt;
  }
  std::string decoded;
  decoded.reserve(body.size());
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      decoded.push_back(body[at++]);
    } else if (EscapeError error = DecodeByteEscape(body, at, decoded)) {
      return error;
    }
  }
  out = arena.Copy(decoded);
  return std::nullopt;
}

}  // namespace caisson::python
