// SPDX-License-Identifier: Apache-2.0
#include "python/keywords.h"

namespace caisson::python {
namespace {

using enum TokenKind;
using Operator = std::pair<TokenKind, int>;

TokenKind If(bool matches, TokenKind kind) { return matches ? kind : kName; }

// The words of each length, told apart by their first letters.
TokenKind Find2(std::string_view w) {
  switch (w[0]) {
    case 'a':
      return If(w[1] == 's', kAs);
    case 'i':
      return w[1] == 'f' ? kIf : w[1] == 'n' ? kIn : If(w[1] == 's', kIs);
    case 'o':
      return If(w[1] == 'r', kOr);
    default:
      return kName;
  }
}

TokenKind Find3(std::string_view w) {
  switch (w[0]) {
    case 'a':
      return If(w == "and", kAnd);
    case 'd':
      return w == "def" ? kDef : If(w == "del", kDel);
    case 'f':
      return If(w == "for", kFor);
    case 'n':
      return If(w == "not", kNot);
    case 't':
      return If(w == "try", kTry);
    default:
      return kName;
  }
}

TokenKind Find4(std::string_view w) {
  switch (w[0]) {
    case 'N':
      return If(w == "None", kNone);
    case 'T':
      return If(w == "True", kTrue);
    case 'e':
      return w == "else" ? kElse : If(w == "elif", kElif);
    case 'f':
      return If(w == "from", kFrom);
    case 'p':
      return If(w == "pass", kPass);
    case 'w':
      return If(w == "with", kWith);
    default:
      return kName;
  }
}

TokenKind Find5(std::string_view w) {
  switch (w[0]) {
    case 'F':
      return If(w == "False", kFalse);
    case 'a':
      return w == "async" ? kAsync : If(w == "await", kAwait);
    case 'b':
      return If(w == "break", kBreak);
    case 'c':
      return If(w == "class", kClass);
    case 'r':
      return If(w == "raise", kRaise);
    case 'w':
      return If(w == "while", kWhile);
    case 'y':
      return If(w == "yield", kYield);
    default:
      return kName;
  }
}

TokenKind Find6(std::string_view w) {
  switch (w[0]) {
    case 'a':
      return If(w == "assert", kAssert);
    case 'e':
      return If(w == "except", kExcept);
    case 'g':
      return If(w == "global", kGlobal);
    case 'i':
      return If(w == "import", kImport);
    case 'l':
      return If(w == "lambda", kLambda);
    case 'r':
      return If(w == "return", kReturn);
    default:
      return kName;
  }
}

// `c`, `c=`: an operator with its augmented form.
Operator Augmented(const char* text, TokenKind plain, TokenKind augmented) {
  return text[1] == '=' ? Operator{augmented, 2} : Operator{plain, 1};
}

// `c`, `c=`, `cc`, `cc=`.
Operator Doubled(const char* text, TokenKind plain, TokenKind plain_equal, TokenKind doubled,
                 TokenKind doubled_equal) {
  if (text[1] != text[0]) return Augmented(text, plain, plain_equal);
  return text[2] == '=' ? Operator{doubled_equal, 3} : Operator{doubled, 2};
}

}  // namespace

TokenKind FindKeyword(std::string_view word) {
  switch (word.size()) {
    case 2:
      return Find2(word);
    case 3:
      return Find3(word);
    case 4:
      return Find4(word);
    case 5:
      return Find5(word);
    case 6:
      return Find6(word);
    case 7:
      return If(word == "finally", kFinally);
    case 8:
      return word == "continue" ? kContinue : If(word == "nonlocal", kNonlocal);
    default:
      return kName;
  }
}

SoftKeyword FindSoftKeyword(std::string_view word) {
  switch (word.size()) {
    case 1:
      return word[0] == '_' ? SoftKeyword::kUnderscore : SoftKeyword::kNo;
    case 4:
      if (word == "type") return SoftKeyword::kType;
      return word == "case" ? SoftKeyword::kCase : SoftKeyword::kNo;
    case 5:
      return word == "match" ? SoftKeyword::kMatch : SoftKeyword::kNo;
    default:
      return SoftKeyword::kNo;
  }
}

std::pair<TokenKind, int> FindOperator(const char* text) {
  switch (text[0]) {
    case '(':
      return {kLParen, 1};
    case ')':
      return {kRParen, 1};
    case '[':
      return {kLBracket, 1};
    case ']':
      return {kRBracket, 1};
    case '{':
      return {kLBrace, 1};
    case '}':
      return {kRBrace, 1};
    case ',':
      return {kComma, 1};
    case ';':
      return {kSemicolon, 1};
    case '~':
      return {kTilde, 1};
    case ':':
      return Augmented(text, kColon, kColonEqual);
    case '=':
      return Augmented(text, kEqual, kEqEqual);
    case '!':
      return Augmented(text, kExclamation, kNotEqual);
    case '+':
      return Augmented(text, kPlus, kPlusEqual);
    case '@':
      return Augmented(text, kAt, kAtEqual);
    case '%':
      return Augmented(text, kPercent, kPercentEqual);
    case '&':
      return Augmented(text, kAmper, kAmperEqual);
    case '|':
      return Augmented(text, kVBar, kVBarEqual);
    case '^':
      return Augmented(text, kCircumflex, kCircumflexEqual);
    case '-':
      return text[1] == '>' ? Operator{kArrow, 2} : Augmented(text, kMinus, kMinusEqual);
    case '*':
      return Doubled(text, kStar, kStarEqual, kDoubleStar, kDoubleStarEqual);
    case '/':
      return Doubled(text, kSlash, kSlashEqual, kDoubleSlash, kDoubleSlashEqual);
    case '<':
      // `<>` is an operator of the tokenizer that the grammar refuses (except under a __future__).
      if (text[1] == '>') return {kUnknownOp, 2};
      return Doubled(text, kLess, kLessEqual, kLeftShift, kLeftShiftEqual);
    case '>':
      return Doubled(text, kGreater, kGreaterEqual, kRightShift, kRightShiftEqual);
    default:
      return {kUnknownOp, 1};
  }
}

}  // namespace caisson::python
