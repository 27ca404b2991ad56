// SPDX-License-Identifier: Apache-2.0
// The lexer behind lexer.h. Not part of the interface. One use, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/lexer.h"
#include "python/token.h"

namespace caisson::python {

enum CharClass : std::uint8_t { kOther = 0, kIdentifierStart = 1, kDigit = 2, kHex = 4 };

inline constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[c] |= kIdentifierStart;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] |= kIdentifierStart;
  for (int c = 128; c < 256; ++c) table[c] |= kIdentifierStart;
  table['_'] |= kIdentifierStart;
  for (int c = '0'; c <= '9'; ++c) table[c] |= kDigit | kHex;
  for (int c = 'a'; c <= 'f'; ++c) table[c] |= kHex;
  for (int c = 'A'; c <= 'F'; ++c) table[c] |= kHex;
  return table;
}();

inline bool IsIdentifierByte(char c) {
  return (kClasses[static_cast<unsigned char>(c)] & (kIdentifierStart | kDigit)) != 0;
}
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsHex(char c) { return (kClasses[static_cast<unsigned char>(c)] & kHex) != 0; }
inline bool IsOctal(char c) { return c >= '0' && c <= '7'; }
inline bool IsBinary(char c) { return c == '0' || c == '1'; }

// One f-string that is open, and where in it the lexer stands.
struct OpenFString {
  char quote;
  int quote_size;
  bool raw;
  bool in_text;          // between replacement fields, or in a format spec
  bool field_ended;      // the field's expression ended: what follows is its format spec
  int brackets = 0;      // open inside the fields of this f-string, their braces included
  int field_depth = -1;  // nesting of replacement fields, -1 outside all
  const char* start;
  const char* start_line_start;
  std::uint32_t start_line;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text)
      : begin_(text.data()), end_(text.data() + text.size()), cur_(begin_), line_start_(begin_) {
    tokens_.reserve(text.size() / 3 + 8);
    indents_.push_back({0, 0});
  }

  LexResult Run();

 private:
  struct Indent {
    std::uint32_t column;
    std::uint32_t alternative;  // the same with tabs of one column
  };

  std::uint32_t Column(const char* at) const {
    return static_cast<std::uint32_t>(at - line_start_);
  }
  std::uint32_t Offset(const char* at) const { return static_cast<std::uint32_t>(at - begin_); }
  bool AtEnd(const char* at) const { return at == end_; }

  // ---- emitting --------------------------------------------------------------------------------

  Token& Push(TokenKind kind, const char* begin, const char* end) {
    return tokens_.emplace_back(Token{kind, SoftKeyword::kNo, false, Offset(begin), Offset(end),
                                      line_, Column(begin), line_, Column(end)});
  }

  // For a token that began on another line.
  void PushMultiLine(TokenKind kind, const char* begin, const char* end, std::uint32_t line,
                     const char* line_start) {
    Token& token = Push(kind, end, end);
    token.begin = Offset(begin);
    token.line = line;
    token.column = static_cast<std::uint32_t>(begin - line_start);
  }

  // CPython knows no place for these tokens and reports errors at its reading position.
  void PushMark(TokenKind kind) { Push(kind, cur_, cur_); }

  // The text's last line stays current at its end.
  void NextLine() {
    if (AtEnd(cur_)) return;
    line_start_ = cur_;
    ++line_;
  }

  // ---- errors ----------------------------------------------------------------------------------

  void End(SyntaxError::Type type, std::string message, SourceSpan span, bool raised);

  // An error whose place is the last byte read, as CPython's tokenizer reports all of its own.
  void Raise(std::string message) { RaiseAt(std::move(message), line_, line_start_, cur_); }

  void RaiseAt(std::string message, std::uint32_t line, const char* line_start, const char* after);
  void Leave(SyntaxError::Type type, std::string message, std::uint32_t column);
  void LeaveEndOfInput();

  // ---- lines and indentation -------------------------------------------------------------------

  bool ContinueLine();
  void LexIndentation();
  void ApplyIndentation(std::uint32_t column, std::uint32_t alternative);
  void LeaveIndentation(std::string message, std::uint32_t column);
  void LeaveTabError();
  void LexNewline(const char* start);
  void LexEnd();

  // ---- tokens outside f-string text ------------------------------------------------------------

  void LexToken();
  void LexWord();
  static bool IsStringPrefix(const char* begin, const char* end);
  bool CheckIdentifier(const char* start);
  void RaiseBadCharacter(char32_t c, std::string_view up_to);

  // ---- numbers ---------------------------------------------------------------------------------

  void LexNumber();
  void LexBased(const char* start, bool (*is_digit)(char), const char* kind);
  void RaiseBadDigit(const char* kind);
  void LexZero(const char* start);
  bool TakeDecimalDigits();
  void LexFraction(const char* start);
  void LexExponent(const char* start);
  void FinishNumber(const char* start, const char* kind);
  bool KeywordMayFollow() const;
  void LexDot();

  // ---- strings ---------------------------------------------------------------------------------

  int TakeOpeningQuotes();
  void LexString(const char* start);
  void RaiseUnterminatedString(const char* start, std::uint32_t line, const char* line_start,
                               char quote, int size);
  void LexFStringStart(const char* start);
  bool AtFStringQuotes(const OpenFString& f) const;
  void LexFStringText();
  void EnterField(OpenFString& f);
  void LexFStringMiddle(OpenFString& f);
  void TakeEscapedInFString(const OpenFString& f, bool& in_character_name);
  void RaiseUnterminatedFString(const OpenFString& f);

  // ---- operators -------------------------------------------------------------------------------

  void LexOperator();
  bool LexFieldPunctuation(OpenFString& f);
  void Open(TokenKind kind, char c, const char* start);
  void Close(TokenKind kind, char c, const char* start);
  void RaiseMismatch(const OpenFString* f, char c, const OpenBracket& open);

  const char* begin_;
  const char* end_;
  const char* cur_;
  const char* line_start_;
  std::uint32_t line_ = 1;
  bool at_line_start_ = true;
  bool blank_line_ = false;
  bool done_ = false;
  std::vector<Indent> indents_;
  std::vector<OpenBracket> brackets_;
  std::vector<OpenFString> fstrings_;
  std::vector<Token> tokens_;
  LexError error_;
};

}  // namespace caisson::python
