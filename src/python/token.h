// SPDX-License-Identifier: Apache-2.0
// Tokens of Python 3.12, as the lexer hands them to the parser. Positions are CPython's: lines from
// 1, columns in UTF-8 bytes from 0. A token is a value; its text lies in the lexed buffer.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::python {

enum class TokenKind : std::uint8_t {
  kEndMarker,
  kError,
  kNewline,
  kIndent,
  kDedent,
  kName,
  kNumber,
  kString,
  kFStringStart,
  kFStringMiddle,
  kFStringEnd,
  kUnknownOp,  // '$', '?' and '`': characters that start no token of the language
  // Operators and delimiters.
  kLParen,
  kRParen,
  kLBracket,
  kRBracket,
  kLBrace,
  kRBrace,
  kColon,
  kComma,
  kSemicolon,
  kDot,
  kEllipsis,
  kArrow,
  kExclamation,
  kAt,
  kTilde,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kDoubleSlash,
  kPercent,
  kDoubleStar,
  kLeftShift,
  kRightShift,
  kAmper,
  kVBar,
  kCircumflex,
  kLess,
  kGreater,
  kLessEqual,
  kGreaterEqual,
  kEqEqual,
  kNotEqual,
  kEqual,
  kColonEqual,
  kPlusEqual,
  kMinusEqual,
  kStarEqual,
  kAtEqual,
  kSlashEqual,
  kPercentEqual,
  kAmperEqual,
  kVBarEqual,
  kCircumflexEqual,
  kLeftShiftEqual,
  kRightShiftEqual,
  kDoubleStarEqual,
  kDoubleSlashEqual,
  // Keywords, kFalse first and kYield last.
  kFalse,
  kNone,
  kTrue,
  kAnd,
  kAs,
  kAssert,
  kAsync,
  kAwait,
  kBreak,
  kClass,
  kContinue,
  kDef,
  kDel,
  kElif,
  kElse,
  kExcept,
  kFinally,
  kFor,
  kFrom,
  kGlobal,
  kIf,
  kImport,
  kIn,
  kIs,
  kLambda,
  kNonlocal,
  kNot,
  kOr,
  kPass,
  kRaise,
  kReturn,
  kTry,
  kWhile,
  kWith,
  kYield,
};

// What an identifier may mean where the grammar gives it a meaning.
enum class SoftKeyword : std::uint8_t { kNo, kUnderscore, kCase, kMatch, kType };

struct Token {
  TokenKind kind;
  SoftKeyword soft;     // kName
  bool non_ascii;       // kName: must be normalised
  std::uint32_t begin;  // byte offsets in the lexed buffer
  std::uint32_t end;
  std::uint32_t line;
  std::uint32_t column;
  std::uint32_t end_line;
  std::uint32_t end_column;
};

constexpr bool IsKeyword(TokenKind kind) { return kind >= TokenKind::kFalse; }

}  // namespace caisson::python
