// SPDX-License-Identifier: Apache-2.0
// The abstract syntax of Python 3.12, node for node as CPython's Python.asdl, with CPython's own
// positions. Nodes are plain structs in an Arena that outlives them; they are immutable once the
// parser returns. Child lists are spans into the arena, identifiers and literal values views of it.
// A pointer that may be null is marked "or null"; all others never are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace caisson::python {

template <typename T>
using List = std::span<T const>;

enum class ExprKind : std::uint8_t {
  kBoolOp,
  kNamedExpr,
  kBinOp,
  kUnaryOp,
  kLambda,
  kIfExp,
  kDict,
  kSet,
  kListComp,
  kSetComp,
  kDictComp,
  kGeneratorExp,
  kAwait,
  kYield,
  kYieldFrom,
  kCompare,
  kCall,
  kFormattedValue,
  kJoinedStr,
  kConstant,
  kAttribute,
  kSubscript,
  kStarred,
  kName,
  kList,
  kTuple,
  kSlice,
};

enum class StmtKind : std::uint8_t {
  kFunctionDef,
  kAsyncFunctionDef,
  kClassDef,
  kReturn,
  kDelete,
  kAssign,
  kTypeAlias,
  kAugAssign,
  kAnnAssign,
  kFor,
  kAsyncFor,
  kWhile,
  kIf,
  kWith,
  kAsyncWith,
  kMatch,
  kRaise,
  kTry,
  kTryStar,
  kAssert,
  kImport,
  kImportFrom,
  kGlobal,
  kNonlocal,
  kExpr,
  kPass,
  kBreak,
  kContinue,
};

enum class PatternKind : std::uint8_t {
  kMatchValue,
  kMatchSingleton,
  kMatchSequence,
  kMatchMapping,
  kMatchClass,
  kMatchStar,
  kMatchAs,
  kMatchOr,
};

enum class BoolOperator : std::uint8_t { kAnd, kOr };
enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSub,
  kMult,
  kMatMult,
  kDiv,
  kMod,
  kPow,
  kLShift,
  kRShift,
  kBitOr,
  kBitXor,
  kBitAnd,
  kFloorDiv,
};
enum class UnaryOperator : std::uint8_t { kInvert, kNot, kUAdd, kUSub };
enum class CompareOperator : std::uint8_t {
  kEq,
  kNotEq,
  kLt,
  kLtE,
  kGt,
  kGtE,
  kIs,
  kIsNot,
  kIn,
  kNotIn,
};
enum class ExprContext : std::uint8_t { kLoad, kStore, kDel };

struct Expr {
  ExprKind kind;
  SourceSpan span;
};
struct Stmt {
  StmtKind kind;
  SourceSpan span;
};
struct Pattern {
  PatternKind kind;
  SourceSpan span;
};

// node->As<Call>() requires the kind to match; IsA<Call>(node) gives null when it does not.
template <typename T, typename Base>
const T* As(const Base* node) {
  return static_cast<const T*>(node);
}
template <typename T, typename Base>
const T* IsA(const Base* node) {
  return node != nullptr && node->kind == T::kKind ? static_cast<const T*>(node) : nullptr;
}

// ---- literals ----------------------------------------------------------------------------------

enum class ConstantKind : std::uint8_t {
  kNone,
  kTrue,
  kFalse,
  kEllipsis,
  kInt,
  kBigInt,
  kFloat,
  kComplex,
  kStr,
  kBytes,
};

struct Constant : Expr {
  static constexpr ExprKind kKind = ExprKind::kConstant;
  ConstantKind constant;
  bool unicode_prefix;   // CPython's `kind` is 'u'
  std::int64_t integer;  // kInt
  double number;         // kFloat; kComplex: the imaginary part
  // kBigInt: canonical lower-case hexadecimal digits without prefix, beyond int64's range (>= 0).
  // kStr: the decoded value as UTF-8, lone surrogates in their three-byte form (WTF-8).
  // kBytes: the bytes.
  std::string_view text;
};

// ---- expressions -------------------------------------------------------------------------------

struct Arguments;
struct Keyword;
struct Comprehension;
struct TypeParam;

struct BoolOp : Expr {
  static constexpr ExprKind kKind = ExprKind::kBoolOp;
  BoolOperator op;
  List<Expr*> values;
};
struct NamedExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kNamedExpr;
  Expr* target;
  Expr* value;
};
struct BinOp : Expr {
  static constexpr ExprKind kKind = ExprKind::kBinOp;
  Expr* left;
  BinaryOperator op;
  Expr* right;
};
struct UnaryOp : Expr {
  static constexpr ExprKind kKind = ExprKind::kUnaryOp;
  UnaryOperator op;
  Expr* operand;
};
struct Lambda : Expr {
  static constexpr ExprKind kKind = ExprKind::kLambda;
  Arguments* args;
  Expr* body;
};
struct IfExp : Expr {
  static constexpr ExprKind kKind = ExprKind::kIfExp;
  Expr* test;
  Expr* body;
  Expr* orelse;
};
struct Dict : Expr {
  static constexpr ExprKind kKind = ExprKind::kDict;
  List<Expr*> keys;  // a null element stands for `**value`
  List<Expr*> values;
};
struct Set : Expr {
  static constexpr ExprKind kKind = ExprKind::kSet;
  List<Expr*> elts;
};
struct ListComp : Expr {
  static constexpr ExprKind kKind = ExprKind::kListComp;
  Expr* elt;
  List<Comprehension*> generators;
};
struct SetComp : Expr {
  static constexpr ExprKind kKind = ExprKind::kSetComp;
  Expr* elt;
  List<Comprehension*> generators;
};
struct DictComp : Expr {
  static constexpr ExprKind kKind = ExprKind::kDictComp;
  Expr* key;
  Expr* value;
  List<Comprehension*> generators;
};
struct GeneratorExp : Expr {
  static constexpr ExprKind kKind = ExprKind::kGeneratorExp;
  Expr* elt;
  List<Comprehension*> generators;
};
struct Await : Expr {
  static constexpr ExprKind kKind = ExprKind::kAwait;
  Expr* value;
};
struct Yield : Expr {
  static constexpr ExprKind kKind = ExprKind::kYield;
  Expr* value;  // or null
};
struct YieldFrom : Expr {
  static constexpr ExprKind kKind = ExprKind::kYieldFrom;
  Expr* value;
};
struct Compare : Expr {
  static constexpr ExprKind kKind = ExprKind::kCompare;
  Expr* left;
  List<CompareOperator> ops;
  List<Expr*> comparators;
};
struct Call : Expr {
  static constexpr ExprKind kKind = ExprKind::kCall;
  Expr* func;
  List<Expr*> args;
  List<Keyword*> keywords;
};
struct FormattedValue : Expr {
  static constexpr ExprKind kKind = ExprKind::kFormattedValue;
  Expr* value;
  int conversion;     // -1, 's', 'r' or 'a'
  Expr* format_spec;  // a JoinedStr, or null
};
struct JoinedStr : Expr {
  static constexpr ExprKind kKind = ExprKind::kJoinedStr;
  List<Expr*> values;  // Constant (str) and FormattedValue
};
struct Attribute : Expr {
  static constexpr ExprKind kKind = ExprKind::kAttribute;
  Expr* value;
  std::string_view attr;
  ExprContext ctx;
};
struct Subscript : Expr {
  static constexpr ExprKind kKind = ExprKind::kSubscript;
  Expr* value;
  Expr* slice;
  ExprContext ctx;
};
struct Starred : Expr {
  static constexpr ExprKind kKind = ExprKind::kStarred;
  Expr* value;
  ExprContext ctx;
};
struct Name : Expr {
  static constexpr ExprKind kKind = ExprKind::kName;
  std::string_view id;
  ExprContext ctx;
};
struct ListExpr : Expr {  // asdl: List
  static constexpr ExprKind kKind = ExprKind::kList;
  List<Expr*> elts;
  ExprContext ctx;
};
struct Tuple : Expr {
  static constexpr ExprKind kKind = ExprKind::kTuple;
  List<Expr*> elts;
  ExprContext ctx;
};
struct Slice : Expr {
  static constexpr ExprKind kKind = ExprKind::kSlice;
  Expr* lower;  // or null
  Expr* upper;  // or null
  Expr* step;   // or null
};

// ---- parts of expressions and statements
// ---------------------------------------------------------

struct Comprehension {
  Expr* target;
  Expr* iter;
  List<Expr*> ifs;
  bool is_async;
};
struct Arg {
  SourceSpan span;
  std::string_view arg;
  Expr* annotation;  // or null
};
struct Arguments {
  List<Arg*> posonlyargs;
  List<Arg*> args;
  Arg* vararg;  // or null
  List<Arg*> kwonlyargs;
  List<Expr*> kw_defaults;  // one per kwonlyarg, null where it has none
  Arg* kwarg;               // or null
  List<Expr*> defaults;     // of the last posonlyargs + args
};
struct Keyword {
  SourceSpan span;
  std::string_view arg;  // empty (data() == nullptr) for `**value`
  Expr* value;
};
struct Alias {
  SourceSpan span;
  std::string_view name;    // dotted for `import`
  std::string_view asname;  // data() == nullptr when absent
};
struct WithItem {
  Expr* context_expr;
  Expr* optional_vars;  // or null
};
struct ExceptHandler {
  SourceSpan span;
  Expr* type;             // or null
  std::string_view name;  // data() == nullptr when absent
  List<Stmt*> body;
};
struct MatchCase {
  Pattern* pattern;
  Expr* guard;  // or null
  List<Stmt*> body;
};
enum class TypeParamKind : std::uint8_t { kTypeVar, kParamSpec, kTypeVarTuple };
struct TypeParam {
  TypeParamKind kind;
  SourceSpan span;
  std::string_view name;
  Expr* bound;  // kTypeVar only, or null
};

// ---- statements --------------------------------------------------------------------------------

struct FunctionDef : Stmt {  // also kAsyncFunctionDef
  static constexpr StmtKind kKind = StmtKind::kFunctionDef;
  std::string_view name;
  Arguments* args;
  List<Stmt*> body;
  List<Expr*> decorator_list;
  Expr* returns;  // or null
  List<TypeParam*> type_params;
};
struct ClassDef : Stmt {
  static constexpr StmtKind kKind = StmtKind::kClassDef;
  std::string_view name;
  List<Expr*> bases;
  List<Keyword*> keywords;
  List<Stmt*> body;
  List<Expr*> decorator_list;
  List<TypeParam*> type_params;
};
struct Return : Stmt {
  static constexpr StmtKind kKind = StmtKind::kReturn;
  Expr* value;  // or null
};
struct Delete : Stmt {
  static constexpr StmtKind kKind = StmtKind::kDelete;
  List<Expr*> targets;
};
struct Assign : Stmt {
  static constexpr StmtKind kKind = StmtKind::kAssign;
  List<Expr*> targets;
  Expr* value;
};
struct TypeAlias : Stmt {
  static constexpr StmtKind kKind = StmtKind::kTypeAlias;
  Expr* name;
  List<TypeParam*> type_params;
  Expr* value;
};
struct AugAssign : Stmt {
  static constexpr StmtKind kKind = StmtKind::kAugAssign;
  Expr* target;
  BinaryOperator op;
  Expr* value;
};
struct AnnAssign : Stmt {
  static constexpr StmtKind kKind = StmtKind::kAnnAssign;
  Expr* target;
  Expr* annotation;
  Expr* value;  // or null
  bool simple;
};
struct For : Stmt {  // also kAsyncFor
  static constexpr StmtKind kKind = StmtKind::kFor;
  Expr* target;
  Expr* iter;
  List<Stmt*> body;
  List<Stmt*> orelse;
};
struct While : Stmt {
  static constexpr StmtKind kKind = StmtKind::kWhile;
  Expr* test;
  List<Stmt*> body;
  List<Stmt*> orelse;
};
struct If : Stmt {
  static constexpr StmtKind kKind = StmtKind::kIf;
  Expr* test;
  List<Stmt*> body;
  List<Stmt*> orelse;
};
struct With : Stmt {  // also kAsyncWith
  static constexpr StmtKind kKind = StmtKind::kWith;
  List<WithItem*> items;
  List<Stmt*> body;
};
struct Match : Stmt {
  static constexpr StmtKind kKind = StmtKind::kMatch;
  Expr* subject;
  List<MatchCase*> cases;
};
struct Raise : Stmt {
  static constexpr StmtKind kKind = StmtKind::kRaise;
  Expr* exc;    // or null
  Expr* cause;  // or null
};
struct Try : Stmt {  // also kTryStar
  static constexpr StmtKind kKind = StmtKind::kTry;
  List<Stmt*> body;
  List<ExceptHandler*> handlers;
  List<Stmt*> orelse;
  List<Stmt*> finalbody;
};
struct Assert : Stmt {
  static constexpr StmtKind kKind = StmtKind::kAssert;
  Expr* test;
  Expr* msg;  // or null
};
struct Import : Stmt {
  static constexpr StmtKind kKind = StmtKind::kImport;
  List<Alias*> names;
};
struct ImportFrom : Stmt {
  static constexpr StmtKind kKind = StmtKind::kImportFrom;
  std::string_view module;  // data() == nullptr when absent
  List<Alias*> names;       // one Alias "*" for a star import
  int level;
};
struct Global : Stmt {
  static constexpr StmtKind kKind = StmtKind::kGlobal;
  List<std::string_view> names;
};
struct Nonlocal : Stmt {
  static constexpr StmtKind kKind = StmtKind::kNonlocal;
  List<std::string_view> names;
};
struct ExprStmt : Stmt {  // asdl: Expr
  static constexpr StmtKind kKind = StmtKind::kExpr;
  Expr* value;
};
struct Pass : Stmt {
  static constexpr StmtKind kKind = StmtKind::kPass;
};
struct Break : Stmt {
  static constexpr StmtKind kKind = StmtKind::kBreak;
};
struct Continue : Stmt {
  static constexpr StmtKind kKind = StmtKind::kContinue;
};

// ---- patterns ----------------------------------------------------------------------------------

struct MatchValue : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchValue;
  Expr* value;
};
struct MatchSingleton : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchSingleton;
  ConstantKind value;  // kNone, kTrue or kFalse
};
struct MatchSequence : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchSequence;
  List<Pattern*> patterns;
};
struct MatchMapping : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchMapping;
  List<Expr*> keys;
  List<Pattern*> patterns;
  std::string_view rest;  // data() == nullptr when absent
};
struct MatchClass : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchClass;
  Expr* cls;
  List<Pattern*> patterns;
  List<std::string_view> kwd_attrs;
  List<Pattern*> kwd_patterns;
};
struct MatchStar : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchStar;
  std::string_view name;  // data() == nullptr for `*_`
};
struct MatchAs : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchAs;
  Pattern* pattern;       // or null
  std::string_view name;  // data() == nullptr for `_`
};
struct MatchOr : Pattern {
  static constexpr PatternKind kKind = PatternKind::kMatchOr;
  List<Pattern*> patterns;
};

struct Module {
  List<Stmt*> body;
};

}  // namespace caisson::python
