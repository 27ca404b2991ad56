// SPDX-License-Identifier: Apache-2.0
#include "block/fstring_syntax.h"

#include <algorithm>
#include <string>

#include "python/lexer.h"
#include "python/source_text.h"

namespace caisson::block {
namespace {

using python::Token;
using python::TokenKind;

// An f-string whose end has not come yet.
struct OpenString {
  std::string_view quote;  // ', ", ''' or """
  std::uint32_t line;
  std::uint32_t last_end;  // byte offset of the end of its last token
  bool reported = false;
};

class Finder {
 public:
  Finder(std::string_view text, std::vector<NewerSyntax>& found) : text_(text), found_(found) {}

  void Take(const Token& token) {
    if (!open_.empty() && token.kind != TokenKind::kFStringMiddle) {
      if (const char* what = ProblemOf(token)) Report(what, token);
    }
    if (token.kind == TokenKind::kFStringStart) {
      open_.push_back({QuoteOf(token), token.line, token.end, false});
    } else if (token.kind == TokenKind::kFStringEnd && !open_.empty()) {
      open_.pop_back();
    }
    if (!open_.empty()) open_.back().last_end = token.end;
  }

 private:
  std::string_view TextOf(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }

  std::string_view QuoteOf(const Token& start) const {
    const std::string_view text = TextOf(start);
    return text.substr(std::min(text.find_first_of("'\""), text.size()));
  }

  // Of a token inside a replacement field of the innermost open string, or of its own end.
  const char* ProblemOf(const Token& token) const {
    const OpenString& open = open_.back();
    if (token.kind == TokenKind::kFStringEnd) return nullptr;
    // Comments and line ends leave no token: they stand in front of this one.
    const std::string_view gap =
        text_.substr(open.last_end, token.begin > open.last_end ? token.begin - open.last_end : 0);
    if (gap.find('#') != std::string_view::npos) return "a comment in an f-string";
    if (gap.find('\\') != std::string_view::npos) {
      return "a backslash in a replacement field of an f-string";
    }
    const bool is_short = open.quote.size() == 1;
    if (is_short && gap.find('\n') != std::string_view::npos) {
      return "a line end in a replacement field of an f-string";
    }
    if (token.kind != TokenKind::kString && token.kind != TokenKind::kFStringStart) return nullptr;
    const std::string_view text = TextOf(token);
    if (text.find(open.quote) != std::string_view::npos) {
      return "the quote of an f-string inside of it";
    }
    if (text.find('\\') != std::string_view::npos) {
      return "a backslash in a replacement field of an f-string";
    }
    return nullptr;
  }

  void Report(const char* what, const Token& token) {
    if (open_.front().reported) return;
    open_.front().reported = true;
    found_.push_back({what, 12, {token.line, token.column, token.end_line, token.end_column}});
  }

  std::string_view text_;
  std::vector<NewerSyntax>& found_;
  std::vector<OpenString> open_;
};

}  // namespace

void FindNewerFStrings(std::string_view source, std::vector<NewerSyntax>& found) {
  std::string decoded;
  const auto text = python::ReadSource(source, {}, decoded);
  if (!text) return;
  const std::string_view lexed(text->data(), text->size() - 1);  // without its NUL
  const auto result = python::Lex(lexed);
  Finder finder(lexed, found);
  for (const Token& token : result.tokens) finder.Take(token);
}

}  // namespace caisson::block
