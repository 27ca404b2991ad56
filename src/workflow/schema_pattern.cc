// SPDX-License-Identifier: Apache-2.0
#include "workflow/schema_pattern.h"

#include <cstddef>

namespace caisson::workflow::schema {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view pattern) : pattern_(pattern) {}

  std::string Scan() {
    while (at_ < pattern_.size() && error_.empty()) Step();
    if (error_.empty() && open_ > 0) return "error: unclosed group";
    return error_;
  }

 private:
  void Step() {
    switch (pattern_[at_]) {
      case '\\':
        return Escape();
      case '[':
        return Class();
      case '(':
        return Open();
      case ')':
        if (open_ == 0) error_ = "error: unopened group";
        --open_;
        repeatable_ = true;
        break;
      case '*':
      case '+':
      case '?':
        return Repeat(1);
      case '{':
        return Count();
      case '|':
        repeatable_ = false;
        break;
      default:
        repeatable_ = true;
    }
    ++at_;
  }

  void Escape() {
    if (at_ + 1 >= pattern_.size()) {
      error_ = "error: incomplete escape sequence, reached end of pattern prematurely";
      return;
    }
    const char c = pattern_[at_ + 1];
    constexpr std::string_view kLetters = "afnrtvdDsSwWbBAzpPxuU";
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c >= '0' && c <= '9') {
      error_ = "error: backreferences are not supported";
    } else if (is_letter && kLetters.find(c) == std::string_view::npos) {
      error_ = "error: unrecognized escape sequence";
    }
    at_ += 2;
    repeatable_ = true;
  }

  void Repeat(std::size_t width) {
    if (!repeatable_) error_ = "error: repetition operator missing expression";
    at_ += width;
    if (at_ < pattern_.size() && pattern_[at_] == '?') ++at_;  // lazy
  }

  // {n}, {n,} or {n,m}
  void Count() {
    const std::size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) {
      error_ = repeatable_ ? "error: unclosed counted repetition"
                           : "error: repetition operator missing expression";
      return;
    }
    const std::string_view count = pattern_.substr(at_ + 1, end - at_ - 1);
    const std::size_t comma = count.find(',');
    const std::string_view least = count.substr(0, comma);
    const std::string_view most =
        comma == std::string_view::npos ? std::string_view() : count.substr(comma + 1);
    const bool ok = !least.empty() && AllDigits(least) && AllDigits(most);
    if (!ok && repeatable_) error_ = "error: repetition quantifier expects a valid decimal";
    if (error_.empty()) Repeat(end - at_ + 1);
  }

  static bool AllDigits(std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  void Open() {
    const std::string_view rest = pattern_.substr(at_);
    for (std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"}) {
      if (rest.starts_with(look)) {
        error_ = "error: look-around, including look-ahead and look-behind, is not supported";
        return;
      }
    }
    ++open_;
    repeatable_ = false;
    ++at_;
    if (!rest.starts_with("(?")) return;
    const std::size_t end = rest.find_first_of(":)>");
    if (end == std::string_view::npos) {
      error_ = "error: unclosed group";
      return;
    }
    if (rest[end] != '>' &&
        rest.substr(2, end - 2).find_first_not_of("imsUuxR-") != std::string_view::npos) {
      error_ = "error: unrecognized flag";
    }
    at_ += end;
    if (rest[end] == ')') --open_;  // (?i)
  }

  void Class() {
    std::size_t at = at_ + 1;
    if (at < pattern_.size() && pattern_[at] == '^') ++at;
    if (at < pattern_.size() && pattern_[at] == ']') ++at;
    int depth = 1;
    for (; at < pattern_.size() && depth > 0; ++at) {
      if (pattern_[at] == '\\') {
        ++at;
      } else if (pattern_[at] == '[') {
        ++depth;
      } else if (pattern_[at] == ']') {
        --depth;
      }
    }
    if (depth > 0) error_ = "error: unclosed character class";
    at_ = at;
    repeatable_ = true;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  int open_ = 0;
  bool repeatable_ = false;
  std::string error_;
};

}  // namespace

std::string PatternError(std::string_view pattern) { return Scanner(pattern).Scan(); }

}  // namespace caisson::workflow::schema
