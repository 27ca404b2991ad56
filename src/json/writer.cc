// SPDX-License-Identifier: Apache-2.0
#include "json/writer.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "errors/json.h"
#include "json/path.h"

namespace caisson::json {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void AppendUnit(std::string& out, unsigned unit) {
  const char text[] = {
      '\\',           'u', kHex[unit >> 12 & 15], kHex[unit >> 8 & 15], kHex[unit >> 4 & 15],
      kHex[unit & 15]};
  out.append(text, sizeof text);
}

void AppendEscaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    default:
      AppendUnit(out, c);
  }
}

// The first byte at or after `at` that needs care: a quote, a backslash, a control or (when `wide`)
// anything beyond printable ASCII. Eight bytes a step.
std::size_t PlainRun(std::string_view text, std::size_t at, bool wide) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  auto zero_bytes = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    std::uint64_t care = zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\') |
                         ((word - kOnes * 0x20) & ~word & kHighs);
    if (wide) care |= (word & kHighs) | zero_bytes(word ^ kOnes * 0x7f);
    if (care != 0) break;
  }
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == '"' || c == '\\' || (wide && c >= 0x7f)) break;
  }
  return at;
}

// Decodes the sequence at `at` of valid UTF-8 and moves past it.
char32_t NextCodePoint(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  char32_t point = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i) point = point << 6 | (static_cast<unsigned char>(text[at++]) & 63);
  return point;
}

// Appends the text from `at` on, up to the first character that needed an escape, and that.
void AppendSome(std::string& out, std::string_view text, std::size_t& at, bool ensure_ascii) {
  const std::size_t stop = PlainRun(text, at, ensure_ascii);
  out.append(text, at, stop - at);
  at = stop;
  if (at == text.size()) return;
  const auto c = static_cast<unsigned char>(text[at]);
  if (c < 0x80) {
    AppendEscaped(out, c);
    ++at;
    return;
  }
  const char32_t point = NextCodePoint(text, at);
  if (point < 0x10000) {
    AppendUnit(out, point);
  } else {
    AppendUnit(out, 0xd800 + ((point - 0x10000) >> 10));
    AppendUnit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
  }
}

void AppendString(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) AppendSome(out, text, at, ensure_ascii);
  out += '"';
}

constexpr std::size_t kPieceBytes = 64u << 10;

// Without a `take` the whole text is kept for Finish.
class Writer {
 public:
  explicit Writer(const WriteOptions& options, const TakePiece* take = nullptr)
      : options_(options), colon_(options.indent > 0 || options.spaced ? ": " : ":"), take_(take) {}

  Result<void> Write(const Value& value) {
    if (!WriteValue(value, 0)) {
      return Fail(code_, "the value at " + path_.Finish() + " has no JSON form: " + problem_);
    }
    if (take_ != nullptr) HandOver();
    return {};
  }
  std::string Finish() { return std::move(out_); }

  // Instead of Write and Finish.
  bool Append(std::string& out, const Value& value, std::size_t most) {
    const std::size_t before = out.size();
    out_ = std::move(out);
    most_ = before + most;
    const bool written = WriteValue(value, 0) && out_.size() <= most_;
    out = std::move(out_);
    if (!written) out.resize(before);
    return written;
  }

 private:
  void HandOver() {
    if (wanted_) wanted_ = (*take_)(out_);
    out_.clear();
  }
  void HandOverWhenFull() {
    if (take_ != nullptr && out_.size() >= kPieceBytes) HandOver();
  }

  bool Refuse(ErrorCode code, const char* problem) {
    code_ = code;
    problem_ = problem;
    return false;
  }

  bool WriteValue(const Value& value, std::size_t depth) {
    if (out_.size() > most_) return Refuse(errors::kJsonTooLarge, "it is too long");
    switch (value.kind()) {
      case Value::Kind::kNull:
        out_ += "null";
        return true;
      case Value::Kind::kBool:
        out_ += value.as_bool() ? "true" : "false";
        return true;
      case Value::Kind::kInt:
        WriteInt(value.as_int());
        return true;
      case Value::Kind::kBigInt:
        out_ += value.as_bigint();
        return true;
      case Value::Kind::kDouble:
        return WriteDouble(value.as_double());
      case Value::Kind::kString:
        return WriteString(value.as_string());
      case Value::Kind::kArray:
        return WriteArray(value.as_array(), depth);
      case Value::Kind::kObject:
        return WriteObject(value.as_object(), depth);
    }
    return false;
  }

  void WriteInt(std::int64_t number) {
    char buffer[24];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }

  bool WriteDouble(double number) {
    if (std::isnan(number)) return Refuse(errors::kJsonNotRepresentable, "it is not a number");
    if (std::isinf(number)) return Refuse(errors::kJsonNotRepresentable, "it is infinite");
    out_ += FormatDouble(number);
    return true;
  }

  static std::size_t EndOfPiece(std::string_view text, std::size_t at) {
    if (text.size() - at <= kPieceBytes) return text.size();
    std::size_t end = at + kPieceBytes;
    while ((text[end] & 0xc0) == 0x80) --end;
    return end;
  }

  bool WriteString(std::string_view text) {
    if (!simdjson::validate_utf8(text.data(), text.size())) {
      return Refuse(errors::kJsonNotRepresentable,
                    "its text is not valid UTF-8 (a lone surrogate, or bytes of another encoding)");
    }
    if (text.size() > most_) return Refuse(errors::kJsonTooLarge, "it is too long");
    if (take_ == nullptr) {
      AppendString(out_, text, options_.ensure_ascii);
      return true;
    }
    out_ += '"';
    // Pieces end between characters.
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = EndOfPiece(text, at);
      const std::string_view piece = text.substr(0, end);
      while (at < end) AppendSome(out_, piece, at, options_.ensure_ascii);
      HandOverWhenFull();
    }
    out_ += '"';
    return true;
  }

  void NewLine(std::size_t depth) {
    if (options_.indent <= 0) return;
    out_ += '\n';
    out_.append(depth * static_cast<std::size_t>(options_.indent), ' ');
  }

  void Separate(bool first, std::size_t depth) {
    HandOverWhenFull();
    if (!first) out_ += options_.indent <= 0 && options_.spaced ? ", " : ",";
    NewLine(depth);
  }

  bool WriteArray(const Array& array, std::size_t depth) {
    if (depth >= kMaxWriteDepth) return TooDeep();
    out_ += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      Separate(i == 0, depth + 1);
      if (WriteValue(array[i], depth + 1)) continue;
      path_.PrependIndex(i);
      return false;
    }
    if (!array.empty()) NewLine(depth);
    out_ += ']';
    return true;
  }

  bool WriteObject(const Object& object, std::size_t depth) {
    if (depth >= kMaxWriteDepth) return TooDeep();
    out_ += '{';
    if (!(options_.sort_keys ? WriteSorted(object, depth) : WriteInOrder(object, depth))) {
      return false;
    }
    if (!object.empty()) NewLine(depth);
    out_ += '}';
    return true;
  }

  bool WriteInOrder(const Object& object, std::size_t depth) {
    bool first = true;
    for (const Object::Member& member : object) {
      if (!WriteMember(member, std::exchange(first, false), depth)) return false;
    }
    return true;
  }

  bool WriteSorted(const Object& object, std::size_t depth) {
    std::vector<const Object::Member*> members;
    members.reserve(object.size());
    for (const Object::Member& member : object) members.push_back(&member);
    // The order of UTF-8 bytes is that of code points.
    std::ranges::sort(members, {}, [](const Object::Member* member) -> const std::string& {
      return member->first;
    });
    bool first = true;
    for (const Object::Member* member : members) {
      if (!WriteMember(*member, std::exchange(first, false), depth)) return false;
    }
    return true;
  }

  bool WriteMember(const Object::Member& member, bool first, std::size_t depth) {
    Separate(first, depth + 1);
    if (WriteString(member.first)) {
      out_ += colon_;
      if (WriteValue(member.second, depth + 1)) return true;
    }
    path_.PrependKey(member.first);
    return false;
  }

  bool TooDeep() { return Refuse(errors::kJsonTooDeep, "it is nested too deeply"); }

  const WriteOptions options_;
  const std::string_view colon_;
  const TakePiece* take_;
  bool wanted_ = true;
  std::size_t most_ = std::string::npos;
  std::string out_;
  PathBuilder path_;
  ErrorCode code_ = errors::kJsonNotRepresentable;
  const char* problem_ = "";
};

// Length of the valid sequence at `at`, 0 when there is none.
std::size_t ValidSequence(std::string_view text, std::size_t at) {
  for (std::size_t length = 1; length <= 4 && at + length <= text.size(); ++length) {
    if (simdjson::validate_utf8(text.data() + at, length)) return length;
  }
  return 0;
}

}  // namespace

Result<std::string> Write(const Value& value, const WriteOptions& options) {
  Writer writer(options);
  CAISSON_TRY(writer.Write(value));
  return writer.Finish();
}

Result<void> WritePieces(const Value& value, const TakePiece& take, const WriteOptions& options) {
  const TakePiece drop = [](std::string_view) { return false; };
  CAISSON_TRY(Writer(options, &drop).Write(value));
  return Writer(options, &take).Write(value);
}

bool AppendText(std::string& out, const Value& value, std::size_t most) {
  return Writer({}).Append(out, value, most);
}

bool AppendQuoted(std::string& out, std::string_view text, std::size_t most) {
  if (text.size() > most || !simdjson::validate_utf8(text.data(), text.size())) return false;
  AppendString(out, text, false);
  return true;
}

Result<std::string> WriteCanonical(const Value& value) {
  return Write(value, {.indent = 0, .spaced = false, .ensure_ascii = false, .sort_keys = true});
}

std::string Quote(std::string_view text) {
  std::string out;
  if (simdjson::validate_utf8(text.data(), text.size())) {
    AppendString(out, text, false);
    return out;
  }
  std::string repaired;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = ValidSequence(text, at);
    repaired += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  AppendString(out, repaired, false);
  return out;
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const char* end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const char* mark = std::find(static_cast<const char*>(buffer), end, 'e');
  int exponent = 0;
  std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, end, exponent);

  std::string out = buffer[0] == '-' ? "-" : "";
  std::string digits;
  for (const char* c = buffer; c != mark; ++c) {
    if (*c >= '0' && *c <= '9') digits += *c;
  }
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(1, '.').append(digits, 1);
    const int size = std::abs(exponent);
    out.append(exponent < 0 ? "e-" : "e+")
        .append(size < 10 ? "0" : "")
        .append(std::to_string(size));
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  } else if (count <= point) {
    const int zeros = point - count;
    out.append(digits).append(static_cast<std::size_t>(zeros), '0').append(".0");
  } else {
    const auto split = static_cast<std::size_t>(point);
    out.append(digits, 0, split).append(1, '.').append(digits, split);
  }
  return out;
}

}  // namespace caisson::json
