// SPDX-License-Identifier: Apache-2.0
#include "json/reader.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "errors/json.h"
#include "json/path.h"

namespace caisson::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Show(unsigned char c) {
  if (c > 0x20 && c < 0x7f) return std::string("'") + static_cast<char>(c) + "'";
  if (c == ' ') return "a space";
  if (c == '\n') return "the end of the line";
  if (c >= 0x80) return "a character that is not ASCII";
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("the control character 0x") + kHex[c >> 4] + kHex[c & 15];
}

void AppendUtf8(std::string& out, char32_t point) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

// Whether a decimal that is out of the range of doubles is so because it is large.
bool IsHuge(std::string_view number) {
  const std::size_t mark = number.find_first_of("eE");
  std::int64_t exponent = 0;
  bool negative = false;
  if (mark != std::string_view::npos) {
    std::string_view text = number.substr(mark + 1);
    negative = text.starts_with('-');
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    for (const char c : text) {
      exponent = std::min<std::int64_t>(exponent * 10 + (c - '0'), std::int64_t{1} << 50);
    }
    if (negative) exponent = -exponent;
  }
  const std::string_view mantissa = number.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t lead = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  return exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(lead) > 0;
}

class Reader {
 public:
  Reader(std::string_view text, const ReadOptions& options)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), options_(options) {}

  Result<Value> Read() {
    Value value;
    if (!CheckEncoding() || !ReadDocument(value)) return Error();
    return value;
  }

 private:
  bool CheckEncoding() {
    if (!simdjson::validate_utf8(begin_, static_cast<std::size_t>(end_ - begin_))) {
      at_ = begin_ + FirstInvalidByte();
      return Refuse("the text is not valid UTF-8");
    }
    if (std::string_view(begin_, end_).starts_with("\xef\xbb\xbf")) {
      return Refuse("the text begins with a byte order mark; save it as UTF-8 without one");
    }
    return true;
  }

  // Block by block, then sequence by sequence: only on the way to an error.
  std::size_t FirstInvalidByte() const {
    const auto size = static_cast<std::size_t>(end_ - begin_);
    auto valid = [&](std::size_t from, std::size_t to) {
      return simdjson::validate_utf8(begin_ + from, to - from);
    };
    std::size_t good = 0;
    for (std::size_t next = 4096; next < size; next = good + 4096) {
      while ((static_cast<unsigned char>(begin_[next]) & 0xc0) == 0x80 && next > good) --next;
      if (next == good || !valid(good, next)) break;
      good = next;
    }
    while (good < size) {
      std::size_t stop = good + 1;
      while (stop < std::min(good + 4, size) && !valid(good, stop)) ++stop;
      if (!valid(good, stop)) break;
      good = stop;
    }
    return good;
  }

  bool ReadDocument(Value& value) {
    SkipSpace();
    if (at_ == end_) return Refuse("the text is empty; a JSON value was expected");
    if (!ReadValue(value, 0)) return false;
    SkipSpace();
    if (at_ != end_) return Refuse("there is text after the end of the JSON value: " + Next());
    return true;
  }

  bool ReadValue(Value& value, std::size_t depth) {
    if (at_ == end_) return Refuse("the text ends where a value was expected");
    switch (*at_) {
      case '{':
        return ReadObject(value, depth);
      case '[':
        return ReadArray(value, depth);
      case '"': {
        std::string text;
        if (!ReadString(text)) return false;
        value = Value(std::move(text));
        return true;
      }
      case 't':
        return ReadWord("true", true, value);
      case 'f':
        return ReadWord("false", false, value);
      case 'n':
        return ReadWord("null", nullptr, value);
      default:
        break;
    }
    if (*at_ == '-' || IsDigit(*at_)) return ReadNumber(value);
    return Refuse("expected a value, found " + Next() + HintAt());
  }

  // Children gather on a stack that all levels share, so that each container is allocated once, in
  // its final size.
  bool ReadArray(Value& value, std::size_t depth) {
    if (!Enter(depth)) return false;
    const std::size_t base = items_.size();
    SkipSpace();
    if (!Accept(']')) {
      while (true) {
        const std::size_t index = items_.size() - base;
        Value item;
        if (!ReadValue(item, depth + 1)) {
          path_.PrependIndex(index);
          return false;
        }
        items_.push_back(std::move(item));
        SkipSpace();
        if (Accept(']')) break;
        if (!Accept(',')) return Refuse("expected ',' or ']' in an array, found " + Next());
        SkipSpace();
        if (at_ != end_ && *at_ == ']') return Refuse("there is a ',' before ']'; remove it");
      }
    }
    const auto first = items_.begin() + static_cast<std::ptrdiff_t>(base);
    value = Value(Array(std::move_iterator(first), std::move_iterator(items_.end())));
    items_.erase(first, items_.end());
    return true;
  }

  bool ReadObject(Value& value, std::size_t depth) {
    if (!Enter(depth)) return false;
    const std::size_t base = members_.size();
    SkipSpace();
    if (!Accept('}')) {
      while (true) {
        if (!ReadMember(depth)) return false;
        SkipSpace();
        if (Accept('}')) break;
        if (!Accept(',')) return Refuse("expected ',' or '}' in an object, found " + Next());
        SkipSpace();
        if (at_ != end_ && *at_ == '}') return Refuse("there is a ',' before '}'; remove it");
      }
    }
    return CloseObject(value, base);
  }

  bool ReadMember(std::size_t depth) {
    const char* key_at = at_;
    if (at_ == end_ || *at_ != '"') {
      return Refuse("expected a key in double quotes, found " + Next());
    }
    std::string key;
    if (!ReadString(key)) return false;
    SkipSpace();
    if (!Accept(':')) return Refuse("expected ':' after a key, found " + Next());
    SkipSpace();
    Value value;
    if (!ReadValue(value, depth + 1)) {
      path_.PrependKey(key);
      return false;
    }
    members_.push_back({key_at, {std::move(key), std::move(value)}});
    return true;
  }

  bool CloseObject(Value& value, std::size_t base) {
    Object object;
    object.Reserve(members_.size() - base);
    for (std::size_t i = base; i < members_.size(); ++i) {
      auto& [key, member] = members_[i].member;
      if (options_.reject_duplicate_keys && object.Contains(key)) {
        at_ = members_[i].place;
        path_.PrependKey(key);
        return Refuse("the key occurs twice in one object; keep one of them",
                      errors::kJsonDuplicateKey);
      }
      object.Set(std::move(key), std::move(member));
    }
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(base), members_.end());
    value = Value(std::move(object));
    return true;
  }

  bool Enter(std::size_t depth) {
    if (depth >= options_.max_depth) {
      return Refuse("arrays and objects are nested more than " +
                        std::to_string(options_.max_depth) + " levels deep",
                    errors::kJsonTooDeep);
    }
    ++at_;
    return true;
  }

  // at_ stands on the opening quote. The text is valid UTF-8, so that only escapes, controls and
  // the closing quote need a look.
  bool ReadString(std::string& out) {
    const char* opening = at_++;
    while (true) {
      const char* stop = PlainRun();
      out.append(at_, stop);
      at_ = stop;
      if (at_ == end_) {
        at_ = opening;
        return Refuse("the string that begins here has no closing quote");
      }
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ != '\\') {
        return Refuse("a string may not contain " + Next() + "; write it as an escape");
      }
      if (!ReadEscape(out)) return false;
    }
  }

  const char* PlainRun() const {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHighs = 0x8080808080808080;
    auto zero_bytes = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
    const char* at = at_;
    for (; end_ - at >= 8; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      if ((zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\') |
           ((word - kOnes * 0x20) & ~word & kHighs)) != 0) {
        break;
      }
    }
    while (at != end_ && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
    return at;
  }

  bool ReadEscape(std::string& out) {
    const char* escape = at_++;
    const char c = at_ == end_ ? '\0' : *at_++;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return true;
      case 'n':
        out += '\n';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'u':
        return ReadUnicode(escape, out);
      default:
        break;
    }
    at_ = escape;
    return Refuse("a backslash must be followed by one of \" \\ / b f n r t u");
  }

  bool ReadUnicode(const char* escape, std::string& out) {
    unsigned unit = 0;
    if (!ReadHex(unit)) return RefuseAt(escape, "\\u must be followed by four hexadecimal digits");
    char32_t point = unit;
    if (unit >= 0xdc00 && unit < 0xe000) {
      return RefuseAt(escape, "a low surrogate escape stands without its high one");
    }
    if (unit >= 0xd800 && unit < 0xdc00) {
      unsigned low = 0;
      if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u' || (at_ += 2, !ReadHex(low)) ||
          low < 0xdc00 || low > 0xdfff) {
        return RefuseAt(escape, "a high surrogate escape stands without its low one");
      }
      point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(out, point);
    return true;
  }

  bool ReadHex(unsigned& unit) {
    if (end_ - at_ < 4) return false;
    const auto [stop, error] = std::from_chars(at_, at_ + 4, unit, 16);
    if (error != std::errc{} || stop != at_ + 4) return false;
    at_ += 4;
    return true;
  }

  bool ReadNumber(Value& value) {
    const char* first = at_;
    if (*at_ == '-') ++at_;
    const char* digits = at_;
    SkipDigits();
    const auto count = static_cast<std::size_t>(at_ - digits);
    if (count == 0) return Refuse("expected a digit after '-', found " + Next());
    if (count > 1 && *digits == '0') return RefuseAt(first, "a number may not begin with 0");
    bool whole = true;
    if (Accept('.')) {
      whole = false;
      if (!SkipDigits()) return Refuse("expected a digit after '.', found " + Next());
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      whole = false;
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!SkipDigits()) return Refuse("expected a digit in an exponent, found " + Next());
    }
    if (!whole) return ReadDouble(first, value);
    if (count > options_.max_integer_digits) {
      at_ = first;
      return Refuse(
          "an integer has more than " + std::to_string(options_.max_integer_digits) + " digits",
          errors::kJsonTooLarge);
    }
    value = Value::Integer(std::string_view(first, at_));
    return true;
  }

  bool ReadDouble(const char* first, Value& value) {
    double number = 0;
    if (std::from_chars(first, at_, number).ec == std::errc::result_out_of_range) {
      if (IsHuge(std::string_view(first, at_))) {
        return RefuseAt(first, "the number is beyond the range of a double");
      }
      number = *first == '-' ? -0.0 : 0.0;
    }
    value = Value(number);
    return true;
  }

  bool SkipDigits() {
    const char* first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != first;
  }

  bool ReadWord(std::string_view word, Value meaning, Value& value) {
    if (!std::string_view(at_, end_).starts_with(word)) {
      return Refuse("expected a value, found " + Next() + HintAt());
    }
    at_ += word.size();
    value = std::move(meaning);
    return true;
  }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool Accept(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  std::string Next() const {
    return at_ == end_ ? "the end of the text" : Show(static_cast<unsigned char>(*at_));
  }

  std::string HintAt() const {
    const std::string_view rest(at_, end_);
    for (const std::string_view word : {"NaN", "Infinity", "None", "True", "False", "undefined"}) {
      if (rest.starts_with(word)) return "; " + std::string(word) + " is not JSON";
    }
    if (rest.starts_with('\'')) return "; strings stand in double quotes";
    return "";
  }

  bool Refuse(std::string problem, ErrorCode code = errors::kJsonSyntax) {
    problem_ = std::move(problem);
    code_ = code;
    return false;
  }
  bool RefuseAt(const char* place, std::string problem) {
    at_ = place;
    return Refuse(std::move(problem));
  }

  std::unexpected<Status> Error() const {
    const auto line = static_cast<std::uint32_t>(std::count(begin_, at_, '\n') + 1);
    const std::string_view before(begin_, at_);
    const std::size_t last = before.rfind('\n');
    const auto column = static_cast<std::uint32_t>(
        last == std::string_view::npos ? before.size() : before.size() - last - 1);
    const std::string path = path_.Finish();
    std::string message = "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    if (path != "$") message += " (" + path + ")";
    return Fail(code_, message + ": " + problem_, {line, column, line, column + 1});
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const ReadOptions& options_;
  struct PlacedMember {
    const char* place;
    Object::Member member;
  };
  std::vector<Value> items_;
  std::vector<PlacedMember> members_;
  PathBuilder path_;
  ErrorCode code_ = errors::kJsonSyntax;
  std::string problem_;
};

}  // namespace

Result<Value> Read(std::string_view text, const ReadOptions& options) {
  if (text.size() > options.max_bytes) {
    return Fail(errors::kJsonTooLarge, "the JSON text has " + std::to_string(text.size()) +
                                           " bytes; at most " + std::to_string(options.max_bytes) +
                                           " are allowed");
  }
  return Reader(text, options).Read();
}

}  // namespace caisson::json
