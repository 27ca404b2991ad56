// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "python/lexer_core.h"

namespace caisson::python {

namespace {

constexpr std::size_t kMaxFStrings = 150;  // CPython's MAXFSTRINGLEVEL
constexpr int kMaxFieldNesting = 3;        // CPython's MAX_EXPR_NESTING

}  // namespace

// cur_ is at the first quote of a string or f-string; returns 1 or 3 and moves past the quotes.
// An empty string in single quotes has its closing quote left.
int Lexer::TakeOpeningQuotes() {
  const char quote = *cur_;
  if (cur_[1] == quote && cur_[2] == quote) {
    cur_ += 3;
    return 3;
  }
  ++cur_;
  return 1;
}

void Lexer::LexString(const char* start) {
  const std::uint32_t line = line_;
  const char* line_start = line_start_;
  const char quote = *cur_;
  const int size = TakeOpeningQuotes();
  for (int closing = 0; closing != size;) {
    const char c = *cur_;
    if (AtEnd(cur_) || (size == 1 && c == '\n')) {
      return RaiseUnterminatedString(start, line, line_start, quote, size);
    }
    ++cur_;
    closing = c == quote ? closing + 1 : 0;
    if (c == '\n') NextLine();
    if (c != '\\' || AtEnd(cur_)) continue;
    if (*cur_++ == '\n') NextLine();
  }
  PushMultiLine(TokenKind::kString, start, cur_, line, line_start);
}

void Lexer::RaiseUnterminatedString(const char* start, std::uint32_t line, const char* line_start,
                                    char quote, int size) {
  if (!fstrings_.empty() && fstrings_.back().quote == quote &&
      fstrings_.back().quote_size == size) {
    return RaiseAt("f-string: expecting '}'", line, line_start, start + 1);
  }
  RaiseAt(fmt::format("unterminated {}string literal (detected at line {})",
                      size == 3 ? "triple-quoted " : "", line_),
          line, line_start, start + 1);
}

void Lexer::LexFStringStart(const char* start) {
  const char quote = *cur_;
  const bool raw = (start[0] | 32) == 'r' || (start[1] | 32) == 'r';
  const int size = TakeOpeningQuotes();
  if (fstrings_.size() + 2 > kMaxFStrings) return Raise("too many nested f-strings");
  Push(TokenKind::kFStringStart, start, cur_);
  fstrings_.push_back({.quote = quote,
                       .quote_size = size,
                       .raw = raw,
                       .in_text = true,
                       .field_ended = false,
                       .start = start,
                       .start_line_start = line_start_,
                       .start_line = line_});
}

bool Lexer::AtFStringQuotes(const OpenFString& f) const {
  for (int i = 0; i < f.quote_size; ++i) {
    if (cur_[i] != f.quote) return false;
  }
  return true;
}

// Emits one piece of f-string text, or enters a replacement field, or ends the f-string.
void Lexer::LexFStringText() {
  OpenFString& f = fstrings_.back();
  if (cur_[0] == '{' && cur_[1] != '{') {
    EnterField(f);
    return;
  }
  if (AtFStringQuotes(f)) {
    const char* start = cur_;
    cur_ += f.quote_size;
    Push(TokenKind::kFStringEnd, start, cur_);
    fstrings_.pop_back();
    return;
  }
  LexFStringMiddle(f);
}

void Lexer::EnterField(OpenFString& f) {
  if (++f.field_depth >= kMaxFieldNesting) {
    return Raise("f-string: expressions nested too deeply");
  }
  f.in_text = false;
}

void Lexer::LexFStringMiddle(OpenFString& f) {
  const char* start = cur_;
  const std::uint32_t line = line_;
  const char* line_start = line_start_;
  bool in_character_name = false;
  const bool in_spec = f.field_ended && f.field_depth >= 0;
  const auto push = [&](const char* end) {
    PushMultiLine(TokenKind::kFStringMiddle, start, end, line, line_start);
  };
  // Text up to a doubled brace: it has one of them, but its place covers both.
  const auto push_with_brace = [&] {
    cur_ += 2;
    push(cur_ - 1);
    ++tokens_.back().end_column;
  };
  while (!AtFStringQuotes(f)) {
    const char c = *cur_;
    if (AtEnd(cur_) || (f.quote_size == 1 && c == '\n')) {
      if (!in_spec || c != '\n') return RaiseUnterminatedFString(f);
      // A line end closes the format spec of a field in single quotes.
      f.in_text = false;
      return push(cur_);
    }
    if (c == '{') {
      if (cur_[1] != '{' || in_spec) {
        push(cur_);
        EnterField(f);
        return;
      }
      return push_with_brace();
    }
    if (c == '}') {
      if (in_character_name) {
        ++cur_;
        return push(cur_);
      }
      if (cur_[1] == '}' && !in_spec && f.brackets == 0) {
        return push_with_brace();
      }
      f.in_text = false;
      return push(cur_);
    }
    ++cur_;
    if (c == '\n') {
      NextLine();
    } else if (c == '\\') {
      TakeEscapedInFString(f, in_character_name);
    }
  }
  push(cur_);
}

void Lexer::TakeEscapedInFString(const OpenFString& f, bool& in_character_name) {
  if (*cur_ == '{' || *cur_ == '}' || AtEnd(cur_)) return;
  const char escaped = *cur_++;
  if (escaped == '\n') NextLine();
  if (f.raw || escaped != 'N' || *cur_ != '{') return;
  ++cur_;
  in_character_name = true;
}

void Lexer::RaiseUnterminatedFString(const OpenFString& f) {
  RaiseAt(fmt::format("unterminated {}f-string literal (detected at line {})",
                      f.quote_size == 3 ? "triple-quoted " : "", line_),
          f.start_line, f.start_line_start, f.start + 1);
}

}  // namespace caisson::python
