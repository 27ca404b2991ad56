// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <fmt/format.h>

#include "python/lexer_core.h"

namespace caisson::python {

void Lexer::LexNumber() {
  const char* start = cur_;
  if (*cur_ == '0') {
    const char base = static_cast<char>(cur_[1] | 32);
    if (base == 'x') return LexBased(start, IsHex, "hexadecimal");
    if (base == 'o') return LexBased(start, IsOctal, "octal");
    if (base == 'b') return LexBased(start, IsBinary, "binary");
    return LexZero(start);
  }
  if (!TakeDecimalDigits()) return;
  if (*cur_ == '.') {
    ++cur_;
    return LexFraction(start);
  }
  LexExponent(start);
}

void Lexer::LexBased(const char* start, bool (*is_digit)(char), const char* kind) {
  cur_ += 2;
  do {
    if (*cur_ == '_') ++cur_;
    if (!is_digit(*cur_)) {
      if (IsDigit(*cur_)) return RaiseBadDigit(kind);
      return Raise(fmt::format("invalid {} literal", kind));
    }
    while (is_digit(*cur_)) ++cur_;
  } while (*cur_ == '_');
  if (IsDigit(*cur_)) return RaiseBadDigit(kind);
  FinishNumber(start, kind);
}

void Lexer::RaiseBadDigit(const char* kind) {
  const char digit = *cur_++;
  Raise(fmt::format("invalid digit '{}' in {} literal", digit, kind));
}

// A number whose first digit is 0 and whose base is ten: zeros only, unless it is not an integer.
void Lexer::LexZero(const char* start) {
  ++cur_;
  for (;;) {
    if (*cur_ == '_') {
      ++cur_;
      if (!IsDigit(*cur_)) return Raise("invalid decimal literal");
    }
    if (*cur_ != '0') break;
    ++cur_;
  }
  const char* zeros_end = cur_;
  const bool nonzero = IsDigit(*cur_);
  if (nonzero && !TakeDecimalDigits()) return;
  if (*cur_ == '.') {
    ++cur_;
    return LexFraction(start);
  }
  if ((*cur_ | 32) == 'e' || (*cur_ | 32) == 'j') return LexExponent(start);
  if (!nonzero) return FinishNumber(start, "decimal");
  const SourceSpan span{line_, Column(start), line_, Column(zeros_end)};
  End(SyntaxError::Type::kSyntax,
      "leading zeros in decimal integer literals are not permitted; "
      "use an 0o prefix for octal integers",
      span, true);
}

bool Lexer::TakeDecimalDigits() {
  for (;;) {
    while (IsDigit(*cur_)) ++cur_;
    if (*cur_ != '_') return true;
    ++cur_;
    if (IsDigit(*cur_)) continue;
    Raise("invalid decimal literal");
    return false;
  }
}

void Lexer::LexFraction(const char* start) {
  if (IsDigit(*cur_) && !TakeDecimalDigits()) return;
  LexExponent(start);
}

void Lexer::LexExponent(const char* start) {
  if ((*cur_ | 32) == 'e') {
    const char* e = cur_++;
    if (*cur_ == '+' || *cur_ == '-') {
      ++cur_;
      if (!IsDigit(*cur_)) return Raise("invalid decimal literal");
    } else if (!IsDigit(*cur_)) {
      cur_ = e;
      return FinishNumber(start, "decimal");
    }
    if (!TakeDecimalDigits()) return;
  }
  if ((*cur_ | 32) == 'j') {
    ++cur_;
    return FinishNumber(start, "imaginary");
  }
  FinishNumber(start, "decimal");
}

// A number may run into a keyword that can follow it, and into no other letter.
void Lexer::FinishNumber(const char* start, const char* kind) {
  if (static_cast<unsigned char>(*cur_) < 128 && IsIdentifierByte(*cur_) && !KeywordMayFollow()) {
    // CPython puts the letter back before it reports, and so points at the digit before it.
    return Raise(fmt::format("invalid {} literal", kind));
  }
  Push(TokenKind::kNumber, start, cur_);
}

bool Lexer::KeywordMayFollow() const {
  for (const std::string_view word : {"if", "in", "is"}) {
    if (std::strncmp(cur_, word.data(), word.size()) == 0) return true;
  }
  for (const std::string_view word : {"and", "else", "for", "or", "not"}) {
    if (std::strncmp(cur_, word.data(), word.size()) == 0) {
      return !IsIdentifierByte(cur_[word.size()]);
    }
  }
  return false;
}

void Lexer::LexDot() {
  const char* start = cur_++;
  if (IsDigit(*cur_)) return LexFraction(start);
  if (cur_[0] == '.' && cur_[1] == '.') {
    cur_ += 2;
    Push(TokenKind::kEllipsis, start, cur_);
  } else {
    Push(TokenKind::kDot, start, cur_);
  }
}

}  // namespace caisson::python
