// SPDX-License-Identifier: Apache-2.0
#include "python/lexer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "python/keywords.h"
#include "python/lexer_core.h"
#include "python/unicode.h"

namespace caisson::python {

namespace {

constexpr std::size_t kMaxIndents = 100;   // CPython's MAXINDENT
constexpr std::size_t kMaxBrackets = 200;  // CPython's MAXLEVEL
constexpr std::uint32_t kTabStop = 8;

}  // namespace

LexResult Lexer::Run() {
  while (!done_) {
    if (!fstrings_.empty() && fstrings_.back().in_text) {
      LexFStringText();
    } else if (at_line_start_) {
      at_line_start_ = false;
      LexIndentation();
    } else {
      LexToken();
    }
  }
  return {std::move(tokens_), std::move(error_), std::move(brackets_)};
}

// ---- errors
// --------------------------------------------------------------------------------------

void Lexer::End(SyntaxError::Type type, std::string message, SourceSpan span, bool raised) {
  Push(TokenKind::kError, cur_, cur_);
  error_ = {
      {type, std::move(message), span}, raised && fstrings_.empty(), false, !fstrings_.empty()};
  done_ = true;
}

void Lexer::RaiseAt(std::string message, std::uint32_t line, const char* line_start,
                    const char* after) {
  const char* at = after > line_start ? after - 1 : after;
  while (at > line_start && (static_cast<unsigned char>(*at) & 0xC0) == 0x80) --at;
  const auto column = static_cast<std::uint32_t>(at - line_start);
  End(SyntaxError::Type::kSyntax, std::move(message), {line, column, line, column}, true);
}

// An error that CPython leaves to the parser.
void Lexer::Leave(SyntaxError::Type type, std::string message, std::uint32_t column) {
  End(type, std::move(message), {line_, column, line_, column}, false);
}

void Lexer::LeaveEndOfInput() {
  cur_ = end_;
  Leave(SyntaxError::Type::kSyntax, "unexpected EOF while parsing",
        std::max<std::uint32_t>(Column(end_), 1) - 1);
  error_.at_end_of_input = true;
}

// ---- lines and indentation
// -----------------------------------------------------------------------

// At a backslash that was read: takes the line end after it. False when an error was emitted.
bool Lexer::ContinueLine() {
  if (*cur_ != '\n' || AtEnd(cur_)) {
    Leave(SyntaxError::Type::kSyntax, "unexpected character after line continuation character",
          Column(cur_));
    return false;
  }
  ++cur_;
  if (AtEnd(cur_)) {
    LeaveEndOfInput();
    return false;
  }
  NextLine();
  return true;
}

void Lexer::LexIndentation() {
  std::uint32_t column = 0;
  std::uint32_t alternative = 0;
  std::uint32_t continued_column = 0;
  for (;; ++cur_) {
    if (*cur_ == ' ') {
      ++column, ++alternative;
    } else if (*cur_ == '\t') {
      column = (column / kTabStop + 1) * kTabStop;
      ++alternative;
    } else if (*cur_ == '\f') {
      column = alternative = 0;
    } else if (*cur_ == '\\') {
      // An indentation split by backslashes is that of its first line.
      if (continued_column == 0) continued_column = column;
      ++cur_;
      if (!ContinueLine()) return;
      --cur_;
    } else {
      break;
    }
  }
  blank_line_ = *cur_ == '#' || (*cur_ == '\n' && !AtEnd(cur_));
  if (blank_line_ || !brackets_.empty()) return;
  if (continued_column != 0) column = alternative = continued_column;
  ApplyIndentation(column, alternative);
}

void Lexer::ApplyIndentation(std::uint32_t column, std::uint32_t alternative) {
  if (column > indents_.back().column) {
    if (indents_.size() >= kMaxIndents) {
      return LeaveIndentation("too many levels of indentation", 0);
    }
    if (alternative <= indents_.back().alternative) return LeaveTabError();
    indents_.push_back({column, alternative});
    PushMark(TokenKind::kIndent);
    return;
  }
  std::size_t dedents = 0;
  while (indents_.size() > 1 && column < indents_.back().column) {
    indents_.pop_back();
    ++dedents;
  }
  if (column != indents_.back().column) {
    const char* line_end = static_cast<const char*>(std::memchr(cur_, '\n', end_ - cur_));
    const char* inp = line_end == nullptr ? end_ : line_end + 1;
    return LeaveIndentation("unindent does not match any outer indentation level", Column(inp) - 1);
  }
  if (alternative != indents_.back().alternative) return LeaveTabError();
  for (; dedents > 0; --dedents) PushMark(TokenKind::kDedent);
}

void Lexer::LeaveIndentation(std::string message, std::uint32_t column) {
  Leave(SyntaxError::Type::kIndentation, std::move(message), column);
}

void Lexer::LeaveTabError() {
  Leave(SyntaxError::Type::kTab, "inconsistent use of tabs and spaces in indentation", 0);
}

// A comment before the line end belongs to the token.
void Lexer::LexNewline(const char* start) {
  at_line_start_ = true;
  if (!blank_line_ && brackets_.empty()) Push(TokenKind::kNewline, start, cur_);
  ++cur_;
  blank_line_ = false;
  NextLine();
}

void Lexer::LexEnd() {
  if (!brackets_.empty()) return LeaveEndOfInput();
  PushMark(TokenKind::kEndMarker);
  done_ = true;
}

// ---- tokens outside f-string text
// ----------------------------------------------------------------

void Lexer::LexToken() {
  while (*cur_ == ' ' || *cur_ == '\t' || *cur_ == '\f') ++cur_;
  const char* token_start = cur_;
  if (*cur_ == '#') {
    cur_ = static_cast<const char*>(std::memchr(cur_, '\n', end_ - cur_));
  }
  const char c = *cur_;
  if (c == '\n' && !AtEnd(cur_)) return LexNewline(token_start);
  if ((kClasses[static_cast<unsigned char>(c)] & kIdentifierStart) != 0) return LexWord();
  if (IsDigit(c)) return LexNumber();
  switch (c) {
    case '\0':
      return LexEnd();
    case '\\':
      ++cur_;
      ContinueLine();
      return;
    case '"':
    case '\'':
      return LexString(cur_);
    case '.':
      return LexDot();
    default:
      return LexOperator();
  }
}

void Lexer::LexWord() {
  const char* start = cur_;
  // A string prefix is at most two letters.
  const char* p = start;
  while (p < start + 2 && (*p | 32) >= 'a' && (*p | 32) <= 'z') ++p;
  if ((*p == '"' || *p == '\'') && IsStringPrefix(start, p)) {
    cur_ = p;
    const bool formatted = (*start | 32) == 'f' || (p - start == 2 && (start[1] | 32) == 'f');
    return formatted ? LexFStringStart(start) : LexString(start);
  }
  unsigned char non_ascii = 0;
  while (IsIdentifierByte(*cur_)) non_ascii |= static_cast<unsigned char>(*cur_++);
  if (non_ascii >= 128 && !CheckIdentifier(start)) return;
  const std::string_view word(start, cur_ - start);
  Token& token = Push(FindKeyword(word), start, cur_);
  if (token.kind != TokenKind::kName) return;
  token.soft = FindSoftKeyword(word);
  token.non_ascii = non_ascii >= 128;
}

bool Lexer::IsStringPrefix(const char* begin, const char* end) {
  const char first = static_cast<char>(*begin | 32);
  if (end - begin == 1) return first == 'r' || first == 'b' || first == 'u' || first == 'f';
  if (end - begin != 2) return false;
  const char second = static_cast<char>(begin[1] | 32);
  return (first == 'r' && (second == 'b' || second == 'f')) ||
         (second == 'r' && (first == 'b' || first == 'f'));
}

bool Lexer::CheckIdentifier(const char* start) {
  const std::string_view word(start, cur_ - start);
  for (std::size_t offset = 0; offset < word.size();) {
    const bool first = offset == 0;
    const char32_t c = DecodeUtf8(word, offset);
    if (first ? IsIdentifierStart(c) : IsIdentifierContinue(c)) continue;
    cur_ = start + offset;
    RaiseBadCharacter(c, std::string_view(start, offset));
    return false;
  }
  return true;
}

void Lexer::RaiseBadCharacter(char32_t c, std::string_view up_to) {
  const auto code = static_cast<std::uint32_t>(c);
  if (!IsPrintable(c)) return Raise(fmt::format("invalid non-printable character U+{:04X}", code));
  std::size_t last = up_to.size() - 1;
  while (last > 0 && (static_cast<unsigned char>(up_to[last]) & 0xC0) == 0x80) --last;
  Raise(fmt::format("invalid character '{}' (U+{:04X})", up_to.substr(last), code));
}

// ---- operators
// -----------------------------------------------------------------------------------

void Lexer::LexOperator() {
  const char* start = cur_;
  const char c = *cur_;
  if (!fstrings_.empty() && fstrings_.back().field_depth >= 0 &&
      (c == ':' || c == '}' || c == '!' || c == '{') && LexFieldPunctuation(fstrings_.back())) {
    return;
  }
  const auto [kind, size] = FindOperator(cur_);
  if (size > 1) {
    cur_ += size;
    Push(kind, start, cur_);
    return;
  }
  ++cur_;
  switch (c) {
    case '(':
    case '[':
    case '{':
      return Open(kind, c, start);
    case ')':
    case ']':
    case '}':
      return Close(kind, c, start);
    default:
      break;
  }
  if (!IsPrintable(static_cast<unsigned char>(c))) {
    return Raise(
        fmt::format("invalid non-printable character U+{:04X}", static_cast<unsigned char>(c)));
  }
  Push(kind, start, cur_);
}

// True when it emitted the token: the colon before a format spec.
bool Lexer::LexFieldPunctuation(OpenFString& f) {
  const char c = *cur_;
  const int depth = f.brackets - (c != '{' ? 1 : 0);
  if (depth == 0) f.field_ended = c != '{';
  if (c != ':' || depth != f.field_depth) return false;
  f.in_text = true;
  Push(TokenKind::kColon, cur_, cur_ + 1);
  ++cur_;
  return true;
}

void Lexer::Open(TokenKind kind, char c, const char* start) {
  if (brackets_.size() >= kMaxBrackets) return Raise("too many nested parentheses");
  brackets_.push_back({c, line_, Column(start)});
  if (!fstrings_.empty()) ++fstrings_.back().brackets;
  Push(kind, start, cur_);
}

void Lexer::Close(TokenKind kind, char c, const char* start) {
  OpenFString* f = fstrings_.empty() ? nullptr : &fstrings_.back();
  if (f != nullptr && f->brackets == 0 && c == '}') {
    return Raise("f-string: single '}' is not allowed");
  }
  if (brackets_.empty()) return Raise(fmt::format("unmatched '{}'", c));
  const OpenBracket open = brackets_.back();
  brackets_.pop_back();
  const bool matches = (open.bracket == '(' && c == ')') || (open.bracket == '[' && c == ']') ||
                       (open.bracket == '{' && c == '}');
  if (!matches) return RaiseMismatch(f, c, open);
  if (f != nullptr) {
    --f->brackets;
    if (c == '}' && f->brackets == f->field_depth) {
      --f->field_depth;
      f->in_text = true;
    }
  }
  Push(kind, start, cur_);
}

void Lexer::RaiseMismatch(const OpenFString* f, char c, const OpenBracket& open) {
  if (f != nullptr && open.bracket == '{' && f->brackets - 1 == f->field_depth) {
    return Raise(fmt::format("f-string: unmatched '{}'", c));
  }
  std::string message = fmt::format(
      "closing parenthesis '{}' does not match opening parenthesis '{}'", c, open.bracket);
  if (open.line != line_) message += fmt::format(" on line {}", open.line);
  Raise(std::move(message));
}

LexResult Lex(std::string_view text) { return Lexer(text).Run(); }

}  // namespace caisson::python
