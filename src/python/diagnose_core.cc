// SPDX-License-Identifier: Apache-2.0
#include "python/diagnose_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "python/diagnose.h"
#include "python/diagnose_memo.h"

namespace caisson::python {

using enum TokenKind;

namespace {

// Beyond these the source gets the plain "invalid syntax" where the parser stopped.
constexpr int kMaxDepth = 6000;
constexpr std::size_t kMinSteps = 2'000'000;
constexpr std::size_t kStepsPerToken = 400;

std::vector<std::uint16_t> CountLevels(const std::vector<Token>& tokens) {
  std::vector<std::uint16_t> levels;
  levels.reserve(tokens.size());
  std::uint16_t level = 0;
  for (const Token& token : tokens) {
    switch (token.kind) {
      case kLParen:
      case kLBracket:
      case kLBrace:
        ++level;
        break;
      case kRParen:
      case kRBracket:
      case kRBrace:
        --level;
        break;
      default:
        break;
    }
    levels.push_back(level);
  }
  return levels;
}

bool HasNoPlace(const Token& token) {
  return token.kind == kIndent || token.kind == kDedent || token.kind == kEndMarker;
}

// Tokens without a place of their own are reported at their line's start.
SourceSpan PlaceOf(const Token& token) {
  if (HasNoPlace(token)) return {token.line, 0, token.line, 0};
  const std::uint32_t line_end = token.kind == kNewline ? 1 : 0;
  return {token.line, token.column, token.end_line, token.end_column + line_end};
}

// Or, where CPython reports the last token read, at the last byte read.
SourceSpan ReadingPlaceOf(const Token& token) {
  if (!HasNoPlace(token)) return PlaceOf(token);
  const std::uint32_t column = token.column > 0 ? token.column - 1 : 0;
  return {token.line, column, token.line, column};
}

SyntaxError NeverClosed(const OpenBracket& open) {
  return {SyntaxError::Type::kSyntax,
          fmt::format("'{}' was never closed", open.bracket),
          {open.line, open.column, open.line, open.column}};
}

SyntaxError ReachedLexError(const LexResult& lexed) {
  if (lexed.error.at_end_of_input && !lexed.open_brackets.empty()) {
    return NeverClosed(lexed.open_brackets.back());
  }
  return lexed.error.error;
}

}  // namespace

SyntaxError PreferLexError(SyntaxError error, const LexResult& lexed, const Token& reached) {
  if (lexed.tokens.back().kind != kError) return error;
  if (lexed.error.raised_by_lexer) return lexed.error.error;
  if (lexed.error.in_fstring) return error;
  if (!lexed.open_brackets.empty() && reached.line > lexed.open_brackets.back().line) {
    return NeverClosed(lexed.open_brackets.back());
  }
  return error;
}

SyntaxError Diagnose(std::string_view text, const LexResult& lexed, const Refusal& refusal) {
  return Diagnoser(text, lexed, refusal.statement).Run(*refusal.token);
}

Diagnoser::Diagnoser(std::string_view text, const LexResult& lexed, std::size_t origin)
    : text_(text),
      lexed_(lexed),
      tokens_(lexed.tokens),
      levels_(CountLevels(lexed.tokens)),
      origin_(origin),
      pos_(origin) {
  Forget();
}

SyntaxError Diagnoser::Run(const Token& refused_at) {
  File();
  if (lex_error_reached_) return ReachedLexError(lexed_);
  if (raised_ && !gave_up_) return PreferLexError(error_, lexed_, tokens_[fill_ - 1]);
  const Token last = gave_up_ ? refused_at : tokens_[fill_ - 1];
  const bool explainable = !gave_up_;
  if (explainable) {
    Forget();
    pos_ = origin_;
    explaining_ = true;
    File();
  }
  if (explainable && lex_error_reached_) return ReachedLexError(lexed_);
  const Token& reached = fill_ > 0 ? tokens_[fill_ - 1] : last;
  if (raised_ && !gave_up_) return PreferLexError(error_, lexed_, reached);
  if (last.kind == kIndent || last.kind == kDedent) {
    return {SyntaxError::Type::kIndentation,
            last.kind == kIndent ? "unexpected indent" : "unexpected unindent",
            ReadingPlaceOf(last)};
  }
  return PreferLexError({SyntaxError::Type::kSyntax, "invalid syntax", PlaceOf(last)}, lexed_,
                        reached);
}

// ---- tokens ------------------------------------------------------------------------------------

const Token& Diagnoser::Current() {
  fill_ = std::max(fill_, pos_ + 1);
  const Token& token = tokens_[pos_];
  if (token.kind == kError && !raised_) {
    lex_error_reached_ = true;
    raised_ = true;
  }
  return token;
}

bool Diagnoser::Peek(TokenKind kind) { return !raised_ && Current().kind == kind && !raised_; }

bool Diagnoser::PeekAny(std::initializer_list<TokenKind> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [this](TokenKind kind) { return Peek(kind); });
}

bool Diagnoser::Tok(TokenKind kind) {
  if (!Peek(kind)) return false;
  // The last token is never taken except the end marker, after which nothing is asked for.
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return true;
}

bool Diagnoser::TokAny(std::initializer_list<TokenKind> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [this](TokenKind kind) { return Tok(kind); });
}

bool Diagnoser::Soft(SoftKeyword soft) {
  if (!Peek(kName) || tokens_[pos_].soft != soft) return false;
  ++pos_;
  return true;
}

bool Diagnoser::Forced(TokenKind kind, const char* spelling) {
  if (Tok(kind)) return true;
  if (!raised_) RaiseAtToken(tokens_[pos_], fmt::format("expected '{}'", spelling));
  return false;
}

Diagnoser::Node* Diagnoser::NameToken() {
  const std::size_t start = pos_;
  if (!Tok(kName)) return nullptr;
  Node* node = Make(ExprKind::kName, start);
  node->id = TextOf(tokens_[start]);
  return node;
}

// ---- combinators -------------------------------------------------------------------------------

bool Diagnoser::Ahead(Rule rule) {
  const std::size_t start = pos_;
  const bool matched = (this->*rule)() != nullptr;
  pos_ = start;
  return matched;
}

Diagnoser::Node* Diagnoser::First(std::initializer_list<Rule> rules) {
  for (const Rule rule : rules) {
    if (Node* node = (this->*rule)()) return node;
    if (raised_) return nullptr;
  }
  return nullptr;
}

bool Diagnoser::Many(Rule rule, std::size_t at_least) {
  std::size_t count = 0;
  while ((this->*rule)() != nullptr) ++count;
  return count >= at_least;
}

std::vector<Diagnoser::Node*> Diagnoser::ManyNodes(Rule rule) {
  std::vector<Node*> nodes;
  while (Node* node = (this->*rule)()) nodes.push_back(node);
  return nodes;
}

std::vector<Diagnoser::Node*> Diagnoser::Separated(Rule rule) {
  std::vector<Node*> nodes;
  Node* node = (this->*rule)();
  if (node == nullptr) return nodes;
  nodes.push_back(node);
  for (;;) {
    const std::size_t comma = pos_;
    node = Tok(kComma) ? (this->*rule)() : nullptr;
    if (node == nullptr) {
      pos_ = comma;
      return nodes;
    }
    nodes.push_back(node);
  }
}

Diagnoser::Node* Diagnoser::Remember(Memo rule, Rule body) {
  if (raised_) return nullptr;
  const std::size_t start = pos_;
  for (std::uint32_t i = first_memory_[start - origin_]; i != 0; i = memory_[i].next) {
    if (memory_[i].rule != rule) continue;
    pos_ = memory_[i].end;
    return memory_[i].node;
  }
  if (++depth_ > kMaxDepth || ++steps_ > kMinSteps + kStepsPerToken * tokens_.size()) {
    gave_up_ = true;
    raised_ = true;
  }
  Node* node = raised_ ? nullptr : (this->*body)();
  --depth_;
  if (node == nullptr) pos_ = start;
  std::uint32_t& first = first_memory_[start - origin_];
  memory_.push_back({node, static_cast<std::uint32_t>(pos_), first, rule});
  first = static_cast<std::uint32_t>(memory_.size() - 1);
  return node;
}

void Diagnoser::Forget() {
  first_memory_.assign(tokens_.size() - origin_, 0);
  memory_.assign(1, {});  // index 0 ends a list
}

// ---- nodes -------------------------------------------------------------------------------------

Diagnoser::Node* Diagnoser::Make(ExprKind kind, std::size_t start) {
  Node* node = arena_.New<Node>();
  node->kind = kind;
  node->span = Range(SpanOf(tokens_[start]), SpanOf(tokens_[pos_ > start ? pos_ - 1 : start]));
  return node;
}

Diagnoser::Node* Diagnoser::MakeWith(ExprKind kind, std::size_t start, std::vector<Node*> kids) {
  Node* node = Make(kind, start);
  node->kids = arena_.Copy<Node*>(kids);
  return node;
}

SourceSpan Diagnoser::UpToReached(const SourceSpan& start) const {
  const Token& reached = tokens_[fill_ - 1];
  // CPython's end is then one short of the usual, and a line end counts as read.
  const std::uint32_t end = reached.end_column + (reached.kind == kNewline ? 1 : 0);
  return {start.line, start.column, reached.end_line, end > 0 ? end - 1 : 0};
}

// ---- raising -----------------------------------------------------------------------------------

Diagnoser::Node* Diagnoser::RaiseAt(const SourceSpan& span, std::string message,
                                    SyntaxError::Type type) {
  if (raised_) return nullptr;
  raised_ = true;
  error_ = {type, std::move(message), span};
  return nullptr;
}

Diagnoser::Node* Diagnoser::RaiseAtToken(const Token& token, std::string message,
                                         SyntaxError::Type type) {
  return RaiseAt(PlaceOf(token), std::move(message), type);
}

Diagnoser::Node* Diagnoser::RaiseHere(std::string message, SyntaxError::Type type) {
  if (raised_) return nullptr;
  return RaiseAt(ReadingPlaceOf(tokens_[fill_ - 1]), std::move(message), type);
}

Diagnoser::Node* Diagnoser::RaiseOnNext(std::string message) {
  if (raised_) return nullptr;
  const Token& next = Current();
  return RaiseAt(ReadingPlaceOf(next), std::move(message));
}

Diagnoser::Node* Diagnoser::RaiseInvalidTarget(TargetKind kind, const Node* target) {
  const Node* invalid = raised_ ? nullptr : FindInvalidTarget(kind, target);
  if (invalid == nullptr) return nullptr;
  return RaiseAt(invalid->span,
                 fmt::format("cannot {} {}", kind == TargetKind::kDelete ? "delete" : "assign to",
                             NameOf(invalid)));
}

const Diagnoser::Node* Diagnoser::FindInvalidTarget(TargetKind kind, const Node* target) {
  switch (target->kind) {
    case ExprKind::kName:
    case ExprKind::kSubscript:
    case ExprKind::kAttribute:
      return nullptr;
    case ExprKind::kList:
    case ExprKind::kTuple:
      for (const Node* kid : target->kids) {
        if (const Node* invalid = FindInvalidTarget(kind, kid)) return invalid;
      }
      return nullptr;
    case ExprKind::kStarred:
      return kind == TargetKind::kDelete ? target : FindInvalidTarget(kind, target->kids[0]);
    case ExprKind::kCompare:
      // `a in b` of a `for` was read as a comparison.
      if (kind != TargetKind::kFor) return target;
      return target->op == CompareOperator::kIn ? FindInvalidTarget(kind, target->kids[0])
                                                : nullptr;
    default:
      return target;
  }
}

const char* Diagnoser::NameOf(const Node* node) {
  switch (node->kind) {
    case ExprKind::kAttribute:
      return "attribute";
    case ExprKind::kSubscript:
      return "subscript";
    case ExprKind::kStarred:
      return "starred";
    case ExprKind::kName:
      return "name";
    case ExprKind::kList:
      return "list";
    case ExprKind::kTuple:
      return "tuple";
    case ExprKind::kLambda:
      return "lambda";
    case ExprKind::kCall:
      return "function call";
    case ExprKind::kBoolOp:
    case ExprKind::kBinOp:
    case ExprKind::kUnaryOp:
      return "expression";
    case ExprKind::kGeneratorExp:
      return "generator expression";
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return "yield expression";
    case ExprKind::kAwait:
      return "await expression";
    case ExprKind::kListComp:
      return "list comprehension";
    case ExprKind::kSetComp:
      return "set comprehension";
    case ExprKind::kDictComp:
      return "dict comprehension";
    case ExprKind::kDict:
      return "dict literal";
    case ExprKind::kSet:
      return "set display";
    case ExprKind::kJoinedStr:
    case ExprKind::kFormattedValue:
      return "f-string expression";
    case ExprKind::kCompare:
      return "comparison";
    case ExprKind::kIfExp:
      return "conditional expression";
    case ExprKind::kNamedExpr:
      return "named expression";
    case ExprKind::kSlice:
      return "slice";
    case ExprKind::kConstant:
      break;
  }
  switch (node->constant) {
    case ConstantKind::kNone:
      return "None";
    case ConstantKind::kTrue:
      return "True";
    case ConstantKind::kFalse:
      return "False";
    case ConstantKind::kEllipsis:
      return "ellipsis";
    default:
      return "literal";
  }
}

bool Diagnoser::IsLegacyStatement(const Node* node) {
  return node->kind == ExprKind::kName && (node->id == "print" || node->id == "exec");
}

}  // namespace caisson::python
