// SPDX-License-Identifier: Apache-2.0
// The recursive-descent parser behind python::Parse: tokens to AST, one pass. It only tells valid
// from invalid; which message an error deserves is found afterwards by diagnose.h, so that valid
// source pays nothing for it. Not part of the interface. One use, one thread.
//
// On the first error the token cursor moves to a poisoned token that matches nothing: every loop
// ends, every function returns some node, and failed() tells at the end.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/arena.h"
#include "python/ast.h"
#include "python/parser.h"
#include "python/token.h"

namespace caisson::python {

template <typename T>
class ListBuilder;

class Parser {
 public:
  // `text` and `tokens` (ending in kEndMarker or kError) must outlive the parser; nodes refer to
  // `text`.
  Parser(std::string_view text, const std::vector<Token>& tokens, Arena& arena);

  Module* ParseModule();

  bool failed() const { return failed_; }
  // Set when the failure has a message of its own (a literal's value, nesting).
  const SyntaxError& error() const { return error_; }
  bool has_error() const { return has_error_; }
  // Where parsing failed.
  const Token& failure() const { return *failure_; }
  // The first token of the outermost statement that it failed in.
  const Token* statement() const { return statement_; }

 private:
  friend class DepthScope;
  template <typename T>
  friend class ListBuilder;

  // ---- tokens ----------------------------------------------------------------------------------

  bool At(TokenKind kind) const { return t_->kind == kind; }
  bool AtSoft(SoftKeyword soft) const { return t_->soft == soft && t_->kind == TokenKind::kName; }
  bool Take(TokenKind kind) {
    if (t_->kind != kind) return false;
    ++t_;
    return true;
  }
  void Expect(TokenKind kind) {
    if (!Take(kind)) Fail();
  }
  std::string_view ExpectName();
  std::string_view Identifier(const Token& token);
  std::string_view Text(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  void Fail();
  void FailWith(SyntaxError::Type type, std::string message, SourceSpan span);
  void FailTooDeep();

  struct State {
    const Token* token;
    std::size_t scratch;
  };
  // For the places where the grammar needs more than one token of lookahead: Mark, parse, and when
  // failed(), Rewind.
  State Mark() const { return {t_, scratch_.size()}; }
  void Rewind(const State& state);

  // ---- positions and nodes ---------------------------------------------------------------------

  static SourceSpan SpanOf(const Token& token) {
    return {token.line, token.column, token.end_line, token.end_column};
  }
  // From `first` to the last token taken.
  SourceSpan SpanFrom(const Token* first) const { return Between(*first, t_[-1]); }
  // The same for a statement: line ends and dedents before the cursor do not count.
  SourceSpan BlockSpanFrom(const Token* first) const;
  SourceSpan SpanFrom(const Expr* first) const {
    return {first->span.line, first->span.column, t_[-1].end_line, t_[-1].end_column};
  }
  static SourceSpan Between(const Token& first, const Token& last) {
    return {first.line, first.column, last.end_line, last.end_column};
  }

  template <typename T>
  T* Make(SourceSpan span) {
    T* node = arena_.New<T>();
    node->kind = T::kKind;
    node->span = span;
    return node;
  }
  Expr* MakeName(const Token& token, ExprContext ctx);
  Expr* MakeConstant(const Token& token, ConstantKind kind);
  Expr* Nowhere();  // what a failed function returns

  // ---- statements (parser_statements.cc, parser_compound.cc) -----------------------------------

  List<Stmt*> ParseBlock();
  List<Stmt*> ParseStatements(TokenKind end);
  void ParseSimpleLine(ListBuilder<Stmt>& out);
  Stmt* ParseSimple();
  Stmt* ParseExpressionStatement();
  Stmt* ParseAssignment(const Token* first, Expr* expr);
  Stmt* ParseAnnotated(const Token* first, Expr* target);
  Stmt* ParseAugmented(const Token* first, Expr* target, BinaryOperator op);
  Expr* ParseRightSide();
  Stmt* ParseReturn();
  Stmt* ParseRaise();
  Stmt* ParseDelete();
  Stmt* ParseAssert();
  Stmt* ParseImport();
  Stmt* ParseImportFrom();
  List<Alias*> ParseImportedNames();
  Alias* ParseAlias(bool dotted);
  std::string_view ParseDottedName();
  template <typename T>
  Stmt* ParseScopeNames();
  Stmt* ParseTypeAlias();
  List<TypeParam*> ParseTypeParams();

  Stmt* ParseCompound();  // null when the cursor is at no compound statement
  Stmt* ParseAsync(List<Expr*> decorators);
  Stmt* ParseDecorated();
  Stmt* ParseFunction(const Token* first, StmtKind kind, List<Expr*> decorators);
  Stmt* ParseClass(List<Expr*> decorators);
  Stmt* ParseIf();
  Stmt* ParseWhile();
  Stmt* ParseFor(const Token* first, StmtKind kind);
  Stmt* ParseWith(const Token* first, StmtKind kind);
  bool ParseParenthesizedItems(List<WithItem*>& items);
  WithItem* ParseWithItem();
  Stmt* ParseTry();
  ExceptHandler* ParseHandler(bool star);
  List<Stmt*> ParseElse();
  Stmt* ParseMatch();  // null when "match" turns out to be a name
  Expr* ParseMatchSubject();
  MatchCase* ParseCase();

  // ---- patterns (parser_patterns.cc) -----------------------------------------------------------

  Pattern* ParsePatterns();
  Pattern* ParseMaybeStarPattern();
  Pattern* ParsePattern();
  Pattern* ParseOrPattern();
  Pattern* ParseClosedPattern();
  Pattern* ParseNamePattern();
  Pattern* ParseStarPattern();
  Pattern* ParseParenthesizedPattern();
  Pattern* ParseListPattern();
  Pattern* ParseMappingPattern();
  Pattern* ParseClassPattern(const Token* first, Expr* cls);
  Pattern* MakeSequencePattern(const Token* first, List<Pattern*> patterns);
  Pattern* MakeValuePattern(const Token* first, Expr* value);
  Pattern* MakeCapture(SourceSpan span, Pattern* pattern, std::string_view name);
  Pattern* NoPattern();
  Expr* ParsePatternNumber();
  Expr* ParseSignedNumber();
  Expr* ParseDottedPatternName();
  Expr* ParseMappingKey();
  std::string_view ParseCaptureName();

  // ---- expressions (parser_expressions.cc) -----------------------------------------------------

  Expr* ParseStarExpressions();
  Expr* ParseStarExpression();
  Expr* ParseStarNamedExpression();
  Expr* ParseNamedExpression();
  Expr* ParseExpression();
  Expr* ParseYield();
  Expr* ParseLambda();
  Expr* ParseDisjunction();
  Expr* ParseConjunction();
  Expr* ParseInversion();
  Expr* ParseComparison();
  bool TakeComparison(CompareOperator& op);
  Expr* ParseBinary(int precedence);
  Expr* ParseBitwiseOr() { return ParseBinary(1); }
  Expr* ParseFactor();
  Expr* ParsePower();
  Expr* ParseStarred(Expr* (Parser::*value)());
  Expr* MakeTuple(const Token* first, List<Expr*> elts);

  // ---- targets ---------------------------------------------------------------------------------

  static bool IsSingleTarget(const Expr* expr);
  static bool IsStarTarget(const Expr* expr);
  static bool IsDeleteTarget(const Expr* expr);
  static void SetContext(Expr* expr, ExprContext ctx);
  Expr* ParseTargets();  // of `for`: as expressions, but without `in`
  Expr* ParseTarget();
  Expr* CheckTarget(Expr* target);

  // ---- primaries and atoms (parser_primaries.cc) -----------------------------------------------

  Expr* ParseAwaitPrimary();
  Expr* ParsePrimary();
  Expr* ParseCallOn(const Token* first, Expr* func);
  void ParseArguments(List<Expr*>& args, List<Keyword*>& keywords, bool allow_generator);
  Keyword* ParseKeyword();
  Expr* ParseArgument(const Token* open, bool allow_generator);
  Expr* ParseSubscriptOn(const Token* first, Expr* value);
  Expr* ParseSlices();
  Expr* ParseSlice();
  Expr* ParseAtom();
  Expr* ParseNumber();
  Expr* ParseParenthesized();
  Expr* ParseListDisplay();
  Expr* ParseBraces();
  Expr* ParseDict(const Token* first, Expr* key);
  Expr* ParseDictComprehension(const Token* first, Expr* key, Expr* value);
  bool AtComprehension() const;
  List<Comprehension*> ParseComprehension();
  Arguments* ParseParameters(TokenKind end, bool annotated);
  Arg* ParseParameter(bool annotated, bool star_annotation);

  // ---- strings (parser_strings.cc) -------------------------------------------------------------

  Expr* ParseStrings();
  Expr* ParsePlainString();
  Expr* ParseFString();
  Expr* MakeText(SourceSpan span, std::string_view text);
  void DecodeText(Expr* text, SourceSpan blame);
  void ParseFStringPiece(ListBuilder<Expr>& out);
  void ParseField(ListBuilder<Expr>& out);
  int ParseConversion();
  Expr* ParseFormatSpec();
  std::string_view DebugText(const Token& brace, const Token& end);
  Expr* Concatenate(const Token* first, List<Expr*> parts);
  List<Expr*> FoldNeighbours(List<Expr*> parts);
  List<Expr*> WithoutEmptyTexts(List<Expr*> parts);
  Expr* FoldTexts(List<Expr*> texts);

  std::string_view text_;
  const Token* t_;
  Arena& arena_;
  bool failed_ = false;
  int depth_ = 0;
  const Token* failure_ = nullptr;
  const Token* statement_ = nullptr;
  std::array<Token, 4> poison_;
  SyntaxError error_;
  bool has_error_ = false;
  std::vector<void*> scratch_;
  Name nowhere_{};
};

// Collects the children of one node on the parser's scratch stack, then moves them to the arena.
template <typename T>
class ListBuilder {
 public:
  explicit ListBuilder(Parser& parser) : parser_(parser), start_(parser.scratch_.size()) {}
  ListBuilder(const ListBuilder&) = delete;
  ListBuilder& operator=(const ListBuilder&) = delete;
  ~ListBuilder() { parser_.scratch_.resize(start_); }

  void Add(T* item) { parser_.scratch_.push_back(item); }
  std::size_t size() const { return parser_.scratch_.size() - start_; }
  T* operator[](std::size_t i) const { return static_cast<T*>(parser_.scratch_[start_ + i]); }

  List<T*> Finish() {
    const std::size_t count = size();
    if (count == 0) return {};
    T** items = parser_.arena_.NewArray<T*>(count);
    for (std::size_t i = 0; i < count; ++i) items[i] = (*this)[i];
    return {items, count};
  }

 private:
  Parser& parser_;
  std::size_t start_;
};

// Counts one level of the parser's own recursion.
class DepthScope {
 public:
  explicit DepthScope(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxTreeDepth + 400) parser_.FailTooDeep();
  }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;
  ~DepthScope() { --parser_.depth_; }

 private:
  Parser& parser_;
};

}  // namespace caisson::python
