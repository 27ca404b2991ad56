// SPDX-License-Identifier: Apache-2.0
#include "python/lexer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "python/keywords.h"
#include "python/unicode.h"

namespace caisson::python {
namespace {

constexpr std::size_t kMaxIndents = 100;   // CPython's MAXINDENT
constexpr std::size_t kMaxBrackets = 200;  // CPython's MAXLEVEL
constexpr std::size_t kMaxFStrings = 150;  // CPython's MAXFSTRINGLEVEL
constexpr int kMaxFieldNesting = 3;        // CPython's MAX_EXPR_NESTING
constexpr std::uint32_t kTabStop = 8;

enum CharClass : std::uint8_t { kOther = 0, kIdentifierStart = 1, kDigit = 2, kHex = 4 };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
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

bool IsIdentifierByte(char c) {
  return (kClasses[static_cast<unsigned char>(c)] & (kIdentifierStart | kDigit)) != 0;
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return (kClasses[static_cast<unsigned char>(c)] & kHex) != 0; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }
bool IsBinary(char c) { return c == '0' || c == '1'; }

// One f-string that is open, and where in it the lexer stands.
struct FString {
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

  LexResult Run() {
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

  void End(SyntaxError::Type type, std::string message, SourceSpan span, bool raised) {
    Push(TokenKind::kError, cur_, cur_);
    error_ = {
        {type, std::move(message), span}, raised && fstrings_.empty(), false, !fstrings_.empty()};
    done_ = true;
  }

  // An error whose place is the last byte read, as CPython's tokenizer reports all of its own.
  void Raise(std::string message) { RaiseAt(std::move(message), line_, line_start_, cur_); }

  void RaiseAt(std::string message, std::uint32_t line, const char* line_start, const char* after) {
    const char* at = after > line_start ? after - 1 : after;
    while (at > line_start && (static_cast<unsigned char>(*at) & 0xC0) == 0x80) --at;
    const auto column = static_cast<std::uint32_t>(at - line_start);
    End(SyntaxError::Type::kSyntax, std::move(message), {line, column, line, column}, true);
  }

  // An error that CPython leaves to the parser.
  void Leave(SyntaxError::Type type, std::string message, std::uint32_t column) {
    End(type, std::move(message), {line_, column, line_, column}, false);
  }

  void LeaveEndOfInput() {
    cur_ = end_;
    Leave(SyntaxError::Type::kSyntax, "unexpected EOF while parsing",
          std::max<std::uint32_t>(Column(end_), 1) - 1);
    error_.at_end_of_input = true;
  }

  // ---- lines and indentation -------------------------------------------------------------------

  // At a backslash that was read: takes the line end after it. False when an error was emitted.
  bool ContinueLine() {
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

  void LexIndentation() {
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

  void ApplyIndentation(std::uint32_t column, std::uint32_t alternative) {
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
      return LeaveIndentation("unindent does not match any outer indentation level",
                              Column(inp) - 1);
    }
    if (alternative != indents_.back().alternative) return LeaveTabError();
    for (; dedents > 0; --dedents) PushMark(TokenKind::kDedent);
  }

  void LeaveIndentation(std::string message, std::uint32_t column) {
    Leave(SyntaxError::Type::kIndentation, std::move(message), column);
  }
  void LeaveTabError() {
    Leave(SyntaxError::Type::kTab, "inconsistent use of tabs and spaces in indentation", 0);
  }

  // A comment before the line end belongs to the token.
  void LexNewline(const char* start) {
    at_line_start_ = true;
    if (!blank_line_ && brackets_.empty()) Push(TokenKind::kNewline, start, cur_);
    ++cur_;
    blank_line_ = false;
    NextLine();
  }

  void LexEnd() {
    if (!brackets_.empty()) return LeaveEndOfInput();
    PushMark(TokenKind::kEndMarker);
    done_ = true;
  }

  // ---- tokens outside f-string text ------------------------------------------------------------

  void LexToken() {
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

  void LexWord() {
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

  static bool IsStringPrefix(const char* begin, const char* end) {
    const char first = static_cast<char>(*begin | 32);
    if (end - begin == 1) return first == 'r' || first == 'b' || first == 'u' || first == 'f';
    if (end - begin != 2) return false;
    const char second = static_cast<char>(begin[1] | 32);
    return (first == 'r' && (second == 'b' || second == 'f')) ||
           (second == 'r' && (first == 'b' || first == 'f'));
  }

  bool CheckIdentifier(const char* start) {
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

  void RaiseBadCharacter(char32_t c, std::string_view up_to) {
    const auto code = static_cast<std::uint32_t>(c);
    if (!IsPrintable(c))
      return Raise(fmt::format("invalid non-printable character U+{:04X}", code));
    std::size_t last = up_to.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(up_to[last]) & 0xC0) == 0x80) --last;
    Raise(fmt::format("invalid character '{}' (U+{:04X})", up_to.substr(last), code));
  }

  // ---- numbers ---------------------------------------------------------------------------------

  void LexNumber() {
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

  void LexBased(const char* start, bool (*is_digit)(char), const char* kind) {
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

  void RaiseBadDigit(const char* kind) {
    const char digit = *cur_++;
    Raise(fmt::format("invalid digit '{}' in {} literal", digit, kind));
  }

  // A number whose first digit is 0 and whose base is ten: zeros only, unless it is not an integer.
  void LexZero(const char* start) {
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

  bool TakeDecimalDigits() {
    for (;;) {
      while (IsDigit(*cur_)) ++cur_;
      if (*cur_ != '_') return true;
      ++cur_;
      if (IsDigit(*cur_)) continue;
      Raise("invalid decimal literal");
      return false;
    }
  }

  void LexFraction(const char* start) {
    if (IsDigit(*cur_) && !TakeDecimalDigits()) return;
    LexExponent(start);
  }

  void LexExponent(const char* start) {
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
  void FinishNumber(const char* start, const char* kind) {
    if (static_cast<unsigned char>(*cur_) < 128 && IsIdentifierByte(*cur_) && !KeywordMayFollow()) {
      // CPython puts the letter back before it reports, and so points at the digit before it.
      return Raise(fmt::format("invalid {} literal", kind));
    }
    Push(TokenKind::kNumber, start, cur_);
  }

  bool KeywordMayFollow() const {
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

  void LexDot() {
    const char* start = cur_++;
    if (IsDigit(*cur_)) return LexFraction(start);
    if (cur_[0] == '.' && cur_[1] == '.') {
      cur_ += 2;
      Push(TokenKind::kEllipsis, start, cur_);
    } else {
      Push(TokenKind::kDot, start, cur_);
    }
  }

  // ---- strings ---------------------------------------------------------------------------------

  // cur_ is at the first quote of a string or f-string; returns 1 or 3 and moves past the quotes.
  // An empty string in single quotes has its closing quote left.
  int TakeOpeningQuotes() {
    const char quote = *cur_;
    if (cur_[1] == quote && cur_[2] == quote) {
      cur_ += 3;
      return 3;
    }
    ++cur_;
    return 1;
  }

  void LexString(const char* start) {
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

  void RaiseUnterminatedString(const char* start, std::uint32_t line, const char* line_start,
                               char quote, int size) {
    if (!fstrings_.empty() && fstrings_.back().quote == quote &&
        fstrings_.back().quote_size == size) {
      return RaiseAt("f-string: expecting '}'", line, line_start, start + 1);
    }
    RaiseAt(fmt::format("unterminated {}string literal (detected at line {})",
                        size == 3 ? "triple-quoted " : "", line_),
            line, line_start, start + 1);
  }

  void LexFStringStart(const char* start) {
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

  bool AtFStringQuotes(const FString& f) const {
    for (int i = 0; i < f.quote_size; ++i) {
      if (cur_[i] != f.quote) return false;
    }
    return true;
  }

  // Emits one piece of f-string text, or enters a replacement field, or ends the f-string.
  void LexFStringText() {
    FString& f = fstrings_.back();
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

  void EnterField(FString& f) {
    if (++f.field_depth >= kMaxFieldNesting) {
      return Raise("f-string: expressions nested too deeply");
    }
    f.in_text = false;
  }

  void LexFStringMiddle(FString& f) {
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

  void TakeEscapedInFString(const FString& f, bool& in_character_name) {
    if (*cur_ == '{' || *cur_ == '}' || AtEnd(cur_)) return;
    const char escaped = *cur_++;
    if (escaped == '\n') NextLine();
    if (f.raw || escaped != 'N' || *cur_ != '{') return;
    ++cur_;
    in_character_name = true;
  }

  void RaiseUnterminatedFString(const FString& f) {
    RaiseAt(fmt::format("unterminated {}f-string literal (detected at line {})",
                        f.quote_size == 3 ? "triple-quoted " : "", line_),
            f.start_line, f.start_line_start, f.start + 1);
  }

  // ---- operators -------------------------------------------------------------------------------

  void LexOperator() {
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
  bool LexFieldPunctuation(FString& f) {
    const char c = *cur_;
    const int depth = f.brackets - (c != '{' ? 1 : 0);
    if (depth == 0) f.field_ended = c != '{';
    if (c != ':' || depth != f.field_depth) return false;
    f.in_text = true;
    Push(TokenKind::kColon, cur_, cur_ + 1);
    ++cur_;
    return true;
  }

  void Open(TokenKind kind, char c, const char* start) {
    if (brackets_.size() >= kMaxBrackets) return Raise("too many nested parentheses");
    brackets_.push_back({c, line_, Column(start)});
    if (!fstrings_.empty()) ++fstrings_.back().brackets;
    Push(kind, start, cur_);
  }

  void Close(TokenKind kind, char c, const char* start) {
    FString* f = fstrings_.empty() ? nullptr : &fstrings_.back();
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

  void RaiseMismatch(const FString* f, char c, const OpenBracket& open) {
    if (f != nullptr && open.bracket == '{' && f->brackets - 1 == f->field_depth) {
      return Raise(fmt::format("f-string: unmatched '{}'", c));
    }
    std::string message = fmt::format(
        "closing parenthesis '{}' does not match opening parenthesis '{}'", c, open.bracket);
    if (open.line != line_) message += fmt::format(" on line {}", open.line);
    Raise(std::move(message));
  }

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
  std::vector<FString> fstrings_;
  std::vector<Token> tokens_;
  LexError error_;
};

}  // namespace

LexResult Lex(std::string_view text) { return Lexer(text).Run(); }

}  // namespace caisson::python
