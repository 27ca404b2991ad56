// SPDX-License-Identifier: Apache-2.0
// The engine behind diagnose.h: a recogniser by ordered choice with memory. Each rule is a method
// that returns its node, or null with the position where it was. While `explaining_`, rules for
// common mistakes are tried as well; the first that matches raises the error, which ends
// everything: from then on no token matches. Not part of the interface. One use, one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "python/arena.h"
#include "python/ast.h"
#include "python/lexer.h"
#include "python/parser.h"
#include "python/token.h"

namespace caisson::python {

class Diagnoser {
 public:
  Diagnoser(std::string_view text, const LexResult& lexed, std::size_t origin);

  SyntaxError Run(const Token& refused_at);

 private:
  // As much of an expression as messages need.
  struct Node {
    ExprKind kind;
    ConstantKind constant;  // of a kConstant
    CompareOperator op;     // the first one of a kCompare
    bool double_starred;    // arguments: some are `**x`
    SourceSpan span;
    std::string_view id;  // of a kName
    List<Node*> kids;     // elements; operands; positional arguments
  };
  using Rule = Node* (Diagnoser::*)();

  enum class Pass : std::uint8_t { kPlain, kExplaining };
  enum class TargetKind : std::uint8_t { kStar, kFor, kDelete };
  // Where a statement's block may be missing.
  struct Opening {
    const Token* keyword;
    const char* name;
  };

  // ---- tokens ----------------------------------------------------------------------------------

  const Token& Current();
  bool Tok(TokenKind kind);
  bool TokAny(std::initializer_list<TokenKind> kinds);
  bool Soft(SoftKeyword soft);
  bool Peek(TokenKind kind);
  bool PeekAny(std::initializer_list<TokenKind> kinds);
  bool Forced(TokenKind kind, const char* spelling);
  const Token& Last() const { return tokens_[pos_ - 1]; }
  Node* NameToken();
  std::string_view TextOf(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }

  // Whether `rule` matches here; takes nothing.
  bool Ahead(Rule rule);
  // The first of `rules` that matches.
  Node* First(std::initializer_list<Rule> rules);
  // Matches always: `rule` or nothing.
  Node* Maybe(Rule rule) { return (this->*rule)(); }
  // One or more, or zero or more, of `rule` one after another; false when there are too few.
  bool Many(Rule rule, std::size_t at_least);
  // `rule` (',' `rule`)*; a comma that no item follows is left. The items, empty when none.
  std::vector<Node*> Separated(Rule rule);
  std::vector<Node*> ManyNodes(Rule rule);

  enum class Memo : std::uint8_t;
  Node* Remember(Memo rule, Rule body);
  void Forget();

  // ---- nodes -----------------------------------------------------------------------------------

  Node* Make(ExprKind kind, std::size_t start);
  Node* MakeWith(ExprKind kind, std::size_t start, std::vector<Node*> kids);
  // What a rule returns that matched and has no node to show.
  Node* Matched(std::size_t start) { return Make(ExprKind::kName, start); }
  static SourceSpan SpanOf(const Token& token) {
    return {token.line, token.column, token.end_line, token.end_column};
  }
  static SourceSpan Range(const SourceSpan& a, const SourceSpan& b) {
    return {a.line, a.column, b.end_line, b.end_column};
  }
  SourceSpan UpToReached(const SourceSpan& start) const;

  // ---- raising ---------------------------------------------------------------------------------

  Node* RaiseAt(const SourceSpan& span, std::string message,
                SyntaxError::Type type = SyntaxError::Type::kSyntax);
  // At the last token that was asked for.
  Node* RaiseHere(std::string message, SyntaxError::Type type = SyntaxError::Type::kSyntax);
  Node* RaiseAtToken(const Token& token, std::string message,
                     SyntaxError::Type type = SyntaxError::Type::kSyntax);
  Node* RaiseOnNext(std::string message);
  Node* RaiseInvalidTarget(TargetKind kind, const Node* target);
  static const Node* FindInvalidTarget(TargetKind kind, const Node* target);
  static const char* NameOf(const Node* node);
  static bool IsLegacyStatement(const Node* node);

  // ---- statements (diagnose_statements.cc) -----------------------------------------------------

  Node* File();
  Node* Statements();
  Node* Statement();
  Node* CompoundStatement();
  Node* SimpleStatements();
  Node* SimpleStatement();
  Node* SimpleStatementBody();
  Node* Assignment();
  Node* AssignedTarget();
  Node* InvalidAssignment();
  Node* InvalidAnnotatedTarget();
  bool AugmentedOperator();
  Node* AnnotatedRightSide();
  Node* RightSide();
  Node* Return();
  Node* Raise();
  Node* Scope();
  Node* Delete();
  Node* Assert();
  Node* Import();
  Node* ImportFrom();
  Node* ImportFromTargets();
  Node* ImportedName();
  Node* ImportedNames();
  Node* DottedAsName();
  Node* DottedName();
  Node* TypeAlias();
  Node* TypeParams();
  Node* TypeParam();
  Node* TypeParamBody();

  // ---- compound statements (diagnose_compound.cc) ----------------------------------------------

  Node* Block();
  Node* BlockBody();
  Node* Decorators();
  Node* FunctionDefinition();
  Node* FunctionRaw();
  Node* FunctionRest();
  Node* InvalidFunction();
  Node* ReturnAnnotation();
  Node* ClassDefinition();
  Node* ClassRaw();
  Node* ClassHead();
  Node* InvalidClass();
  Node* If();
  Node* Elif();
  Node* Conditional(TokenKind keyword, const char* name);
  Node* InvalidConditional(TokenKind keyword, const char* name);
  Node* Else();
  Node* While();
  Node* For();
  Node* ForRest();
  Node* InvalidFor();
  Node* InvalidForTarget();
  Node* With();
  Node* WithRest();
  Node* WithItem();
  Node* InvalidWithItem();
  Node* ExpressionAsTarget();
  Node* ExpressionsAsTarget();
  bool WithItemsLoose(bool parenthesized);
  Node* InvalidWith();
  Node* InvalidWithIndent();
  Node* Try();
  Node* InvalidTry();
  Node* Except();
  Node* ExceptStar();
  Node* ExceptType();
  Node* AsName();
  Node* InvalidExcept();
  Node* InvalidExceptIndent(bool star);
  Node* Finally();
  Node* Match();
  Node* InvalidMatch();
  Node* Subject();
  Node* Case();
  Node* InvalidCase();
  Node* Guard();
  // ':' NEWLINE without an indented line after it.
  Node* MissingBlock(const Opening& opening);

  // ---- patterns (diagnose_patterns.cc) ---------------------------------------------------------

  Node* Patterns();
  Node* OpenSequence();
  Node* MaybeSequence();
  Node* MaybeStarPattern();
  Node* StarPattern();
  Node* StarPatternBody();
  Node* Pattern();
  Node* AsPattern();
  Node* OrPattern();
  Node* ClosedPattern();
  Node* ClosedPatternBody();
  Node* LiteralPattern();
  Node* NumberPattern();
  Node* SignedNumber();
  Node* CaptureTarget();
  Node* Wildcard();
  Node* ValuePattern();
  Node* DottedPattern();
  Node* NameOrDotted();
  Node* GroupPattern();
  Node* SequencePattern();
  Node* MappingPattern();
  Node* MappingItem();
  Node* DoubleStarPattern();
  Node* ClassPattern();
  Node* KeywordPattern();
  Node* InvalidClassPattern();

  // ---- expressions (diagnose_expressions.cc) ---------------------------------------------------

  Node* Expressions();
  Node* Expression();
  Node* ExpressionBody();
  Node* Ternary();
  Node* InvalidExpression();
  Node* InvalidLegacyExpression();
  Node* ExpressionWithoutInvalid();
  Node* PlainExpression();
  Node* Yield();
  Node* YieldOrStarExpressions();
  Node* StarExpressions();
  Node* StarExpression();
  Node* StarExpressionBody();
  Node* StarNamedExpressions();
  Node* StarNamedExpression();
  Node* StarBitwiseOr();
  Node* StarredExpression();
  Node* AssignmentExpression();
  Node* NamedExpression();
  Node* InvalidNamedExpression();
  Node* InvalidNamedExpressionBody();
  Node* Disjunction();
  Node* DisjunctionBody();
  Node* Conjunction();
  Node* ConjunctionBody();
  Node* Inversion();
  Node* InversionBody();
  Node* Comparison();
  bool ComparisonOperator(CompareOperator& op);
  Node* BitwiseOr();
  Node* BitwiseOrBody();
  Node* BitwiseXor();
  Node* BitwiseXorBody();
  Node* BitwiseAnd();
  Node* BitwiseAndBody();
  Node* Shift();
  Node* ShiftBody();
  Node* Sum();
  Node* SumBody();
  Node* Term();
  Node* TermBody();
  Node* LeftAssociative(Rule operand, std::initializer_list<TokenKind> operators);
  Node* Factor();
  Node* FactorBody();
  Node* Power();
  Node* AwaitPrimary();
  Node* AwaitPrimaryBody();
  Node* Lambda();

  // ---- primaries and atoms (diagnose_atoms.cc) -------------------------------------------------

  Node* Primary();
  Node* PrimaryBody();
  Node* Trailer(Node* value, std::size_t start);
  Node* Slices();
  Node* SliceOrStarred();
  Node* Slice();
  Node* Atom();
  Node* Tuple();
  Node* Group();
  Node* InvalidGroup();
  Node* Generator();
  Node* ListDisplay();
  Node* ListComprehension();
  Node* SetDisplay();
  Node* SetComprehension();
  Node* Dict();
  Node* DictPair();
  Node* KeyValue();
  Node* InvalidDictPairs();
  Node* InvalidKeyValue();
  Node* InvalidDictValue();
  Node* DictComprehension();
  Node* InvalidComprehension();
  Node* InvalidDictComprehension();
  Node* ForIfClauses();
  Node* ForIfClause();
  Node* GeneratorElement();

  // ---- arguments (diagnose_arguments.cc) -------------------------------------------------------

  Node* Arguments();
  Node* ArgumentsBody();
  Node* InvalidArguments();
  Node* Args();
  Node* ArgsWithKeywords();
  Node* PositionalArgument();
  Node* Kwargs();
  Node* KwargOrStarred();
  Node* KwargOrDoubleStarred();
  Node* DoubleStarredArgument();
  Node* NamedArgument();
  Node* InvalidKwarg();
  Node* InvalidGeneratorArguments();

  // ---- parameters (diagnose_parameters.cc) -----------------------------------------------------

  // Parameters of functions and of lambdas differ in annotations, their end and some words.
  Node* FunctionParameters();
  Node* LambdaParameters();
  Node* AnyParameters();
  Node* InvalidParameters();
  bool ParenthesizedParameters();
  Node* PlainParameters();
  Node* SlashNoDefault();
  Node* SlashWithDefault();
  Node* AnySlash();
  bool SlashEnd();
  Node* StarEtc();
  Node* InvalidStarEtc();
  Node* Kwds();
  Node* InvalidKwds();
  Node* ParamNoDefault();
  Node* ParamNoDefaultStar();
  Node* ParamWithDefault();
  Node* ParamMaybeDefault();
  bool ParamEnd();
  Node* Param();
  Node* Annotation();
  Node* Default();

  // ---- targets (diagnose_targets.cc) -----------------------------------------------------------

  Node* StarTargets();
  Node* StarTarget();
  Node* StarTargetBody();
  Node* StarTargetUnstarred();
  Node* TargetWithStarAtom();
  Node* TargetWithStarAtomBody();
  Node* StarAtom();
  Node* SingleTarget();
  Node* SingleSubscriptAttribute();
  Node* ParenthesizedSingleTarget();
  Node* DeleteTargets();
  Node* DeleteTarget();
  Node* DeleteTargetBody();
  Node* DeleteAtom();
  Node* TargetPrimary();
  Node* TargetPrimaryBody();
  bool AtTrailer();

  // ---- strings (diagnose_strings.cc) -----------------------------------------------------------

  Node* Strings();
  Node* StringsBody();
  Node* FString();
  Node* FStringPiece();
  Node* FStringText();
  Node* ReplacementField();
  Node* Conversion();
  Node* StringToken();
  Node* NumberToken();
  Node* FormatSpec();
  Node* FStringPieceOfSpec();
  Node* InvalidReplacementField();
  bool FieldStart(bool with_debug, bool with_conversion);

  std::string_view text_;
  const LexResult& lexed_;
  const std::vector<Token>& tokens_;
  std::vector<std::uint16_t> levels_;  // brackets open after each token
  Arena arena_;
  std::string_view decoded_;  // of the last literal; only its errors matter
  std::size_t origin_;        // the token where reading starts
  std::size_t pos_;
  std::size_t fill_ = 0;  // tokens asked for
  bool explaining_ = false;
  bool in_lambda_ = false;
  bool raised_ = false;
  bool gave_up_ = false;
  bool lex_error_reached_ = false;
  int depth_ = 0;
  std::size_t steps_ = 0;
  SyntaxError error_;
  // Results by token: chains through `memory_`, which start at `first_memory_`.
  struct Remembered {
    Node* node;
    std::uint32_t end;
    std::uint32_t next;
    Memo rule;
  };
  std::vector<std::uint32_t> first_memory_;
  std::vector<Remembered> memory_;
};

}  // namespace caisson::python
