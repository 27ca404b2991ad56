// SPDX-License-Identifier: Apache-2.0
#include "json/scanner.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "errors/json.h"

namespace caisson::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  Scanner(std::string_view text, const ReadOptions& options,
          const std::function<bool(const ScannedChild&)>& on_child)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        options_(options),
        on_child_(on_child) {}

  Result<ScanReport> Scan() {
    if (!simdjson::validate_utf8(begin_, static_cast<std::size_t>(end_ - begin_))) {
      return Fail(errors::kJsonSyntax, "the text is not valid UTF-8");
    }
    SkipSpace();
    const char* first = at_;
    if (!ScanValues()) return Error();
    const char* last = at_;
    if (stopped_) return ScanReport{kind_, {first, last}, has_line_end_};
    SkipSpace();
    if (at_ == end_) return ScanReport{kind_, {first, last}, has_line_end_};
    Refuse("there is text after the end of the JSON value");
    return Error();
  }

 private:
  // Values follow one another until the outermost one is complete.
  bool ScanValues() {
    do {
      if (!BeginValue()) return false;
      if (opened_ && !EnterContainer()) return false;
      if (!opened_ && !FinishValue()) return false;
    } while (!complete_ && !stopped_);
    return true;
  }

  // Reads a scalar, or the opening bracket of a container.
  bool BeginValue() {
    if (at_ == end_) return Refuse("the text ends where a value was expected");
    const Value::Kind kind = KindAt(*at_);
    if (open_.empty()) kind_ = kind;
    if (open_.size() == 1) child_ = {key_, {at_, at_}, kind};
    opened_ = kind == Value::Kind::kArray || kind == Value::Kind::kObject;
    if (opened_) return Open(kind == Value::Kind::kObject);
    switch (kind) {
      case Value::Kind::kString:
        return SkipString();
      case Value::Kind::kNull:
        return Accept("null") || Refuse(kNoValue);
      case Value::Kind::kBool:
        return Accept("true") || Accept("false") || Refuse(kNoValue);
      default:
        return *at_ == '-' || IsDigit(*at_) ? SkipNumber() : Refuse(kNoValue);
    }
  }

  static Value::Kind KindAt(char c) {
    switch (c) {
      case '{':
        return Value::Kind::kObject;
      case '[':
        return Value::Kind::kArray;
      case '"':
        return Value::Kind::kString;
      case 't':
      case 'f':
        return Value::Kind::kBool;
      case 'n':
        return Value::Kind::kNull;
      default:
        return Value::Kind::kDouble;
    }
  }

  bool Open(bool is_object) {
    if (open_.size() >= options_.max_depth) {
      return Refuse("arrays and objects are nested too deeply", errors::kJsonTooDeep);
    }
    open_.push_back(is_object);
    ++at_;
    return true;
  }

  // Behind an opening bracket: an empty container is a finished value, else its first value begins.
  bool EnterContainer() {
    SkipSpace();
    if (Accept(open_.back() ? "}" : "]")) {
      open_.pop_back();
      opened_ = false;
      return true;
    }
    return !open_.back() || SkipKey();
  }

  // Behind a value: closes what ends here, and stands before the next value or is complete.
  bool FinishValue() {
    while (true) {
      if (open_.size() == 1 && !TellChild()) return true;
      if (open_.empty()) {
        complete_ = true;
        return true;
      }
      SkipSpace();
      if (Accept(",")) {
        SkipSpace();
        return !open_.back() || SkipKey();
      }
      if (!Accept(open_.back() ? "}" : "]")) {
        return Refuse("expected ',' or the end of the array or object");
      }
      open_.pop_back();
    }
  }

  bool TellChild() {
    if (!on_child_) return true;
    child_.text = {child_.text.data(), at_};
    stopped_ = !on_child_(child_);
    return !stopped_;
  }

  bool SkipKey() {
    const char* first = at_;
    if (at_ == end_ || *at_ != '"') return Refuse("expected a key in double quotes");
    if (!SkipString()) return false;
    if (open_.size() == 1) key_ = {first, at_};
    SkipSpace();
    if (!Accept(":")) return Refuse("expected ':' after a key");
    SkipSpace();
    return true;
  }

  bool SkipString() {
    const char* opening = at_++;
    while (at_ != end_) {
      const char c = *at_;
      if (static_cast<unsigned char>(c) < 0x20) return Refuse("a string holds a control character");
      ++at_;
      if (c == '"') return true;
      if (c == '\\' && !SkipEscape()) return Refuse("a string holds an escape that is none");
    }
    at_ = opening;
    return Refuse("the string that begins here has no closing quote");
  }

  bool SkipEscape() {
    if (at_ == end_) return false;
    const char c = *at_++;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    unsigned unit = 0;
    if (!ReadHex(unit) || (unit >= 0xdc00 && unit < 0xe000)) return false;
    if (unit < 0xd800 || unit >= 0xe000) return true;
    unsigned low = 0;
    return Accept("\\u") && ReadHex(low) && low >= 0xdc00 && low <= 0xdfff;
  }

  bool ReadHex(unsigned& unit) {
    if (end_ - at_ < 4) return false;
    const auto [stop, error] = std::from_chars(at_, at_ + 4, unit, 16);
    if (error != std::errc{} || stop != at_ + 4) return false;
    at_ += 4;
    return true;
  }

  bool SkipNumber() {
    const char* first = at_;
    Accept("-");
    const char* digits = at_;
    if (!SkipDigits()) return Refuse("expected a digit");
    const auto count = static_cast<std::size_t>(at_ - digits);
    if (*digits == '0' && count > 1) return Refuse("a number may not begin with 0");
    bool whole = true;
    if (Accept(".")) {
      whole = false;
      if (!SkipDigits()) return Refuse("expected a digit after '.'");
    }
    if (Accept("e") || Accept("E")) {
      whole = false;
      if (!Accept("+")) Accept("-");
      if (!SkipDigits()) return Refuse("expected a digit in an exponent");
    }
    if (!whole) return IsWithinRange(first) || Refuse("a number is beyond the range of a double");
    return count <= options_.max_integer_digits ||
           Refuse("an integer has too many digits", errors::kJsonTooLarge);
  }

  // Numbers too close to zero for a double are zero to the reader; those too large are refused.
  // Which of the two it is, the reader says: such numbers are rare.
  bool IsWithinRange(const char* first) const {
    double number = 0;
    if (std::from_chars(first, at_, number).ec == std::errc{}) return true;
    return Read(std::string_view(first, at_)).has_value();
  }

  bool SkipDigits() {
    const char* first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != first;
  }

  void SkipSpace() {
    for (; at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'); ++at_) {
      has_line_end_ |= *at_ == '\n' || *at_ == '\r';
    }
  }

  bool Accept(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool Refuse(const char* problem, ErrorCode code = errors::kJsonSyntax) {
    problem_ = problem;
    code_ = code;
    return false;
  }

  std::unexpected<Status> Error() const {
    const std::string_view before(begin_, at_);
    const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
    const std::size_t last = before.rfind('\n');
    const auto column = static_cast<std::uint32_t>(
        last == std::string_view::npos ? before.size() : before.size() - last - 1);
    return Fail(
        code_,
        "line " + std::to_string(line) + ", column " + std::to_string(column + 1) + ": " + problem_,
        {line, column, line, column + 1});
  }

  static constexpr char kNoValue[] = "expected a value; only JSON values are allowed";

  const char* begin_;
  const char* at_;
  const char* end_;
  const ReadOptions& options_;
  const std::function<bool(const ScannedChild&)>& on_child_;
  std::vector<bool> open_;  // per level, whether it is an object
  Value::Kind kind_ = Value::Kind::kNull;
  std::string_view key_;
  ScannedChild child_{};
  bool opened_ = false;
  bool complete_ = false;
  bool stopped_ = false;
  bool has_line_end_ = false;
  const char* problem_ = "";
  ErrorCode code_ = errors::kJsonSyntax;
};

}  // namespace

Result<ScanReport> Scan(std::string_view text, const ReadOptions& options,
                        const std::function<bool(const ScannedChild&)>& on_child) {
  if (text.size() > options.max_bytes) {
    return Fail(errors::kJsonTooLarge, "the JSON text has " + std::to_string(text.size()) +
                                           " bytes; at most " + std::to_string(options.max_bytes) +
                                           " are allowed");
  }
  return Scanner(text, options, on_child).Scan();
}

}  // namespace caisson::json
