// SPDX-License-Identifier: Apache-2.0
#include "python/ast_dump.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>
#include <vector>

namespace caisson::python {
namespace {

// In the order of the enumerations of ast.h.
constexpr std::array<std::string_view, 27> kExprNames = {
    "BoolOp",    "NamedExpr", "BinOp",   "UnaryOp",        "Lambda",       "IfExp",    "Dict",
    "Set",       "ListComp",  "SetComp", "DictComp",       "GeneratorExp", "Await",    "Yield",
    "YieldFrom", "Compare",   "Call",    "FormattedValue", "JoinedStr",    "Constant", "Attribute",
    "Subscript", "Starred",   "Name",    "List",           "Tuple",        "Slice"};
constexpr std::array<std::string_view, 28> kStmtNames = {"FunctionDef", "AsyncFunctionDef",
                                                         "ClassDef",    "Return",
                                                         "Delete",      "Assign",
                                                         "TypeAlias",   "AugAssign",
                                                         "AnnAssign",   "For",
                                                         "AsyncFor",    "While",
                                                         "If",          "With",
                                                         "AsyncWith",   "Match",
                                                         "Raise",       "Try",
                                                         "TryStar",     "Assert",
                                                         "Import",      "ImportFrom",
                                                         "Global",      "Nonlocal",
                                                         "Expr",        "Pass",
                                                         "Break",       "Continue"};
constexpr std::array<std::string_view, 8> kPatternNames = {
    "MatchValue", "MatchSingleton", "MatchSequence", "MatchMapping",
    "MatchClass", "MatchStar",      "MatchAs",       "MatchOr"};
constexpr std::array<std::string_view, 13> kBinaryOperators = {
    "Add",    "Sub",    "Mult",  "MatMult", "Div",    "Mod",     "Pow",
    "LShift", "RShift", "BitOr", "BitXor",  "BitAnd", "FloorDiv"};
constexpr std::array<std::string_view, 4> kUnaryOperators = {"Invert", "Not", "UAdd", "USub"};
constexpr std::array<std::string_view, 10> kCompareOperators = {
    "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn"};
constexpr std::array<std::string_view, 3> kContexts = {"Load", "Store", "Del"};
constexpr std::array<std::string_view, 3> kTypeParamNames = {"TypeVar", "ParamSpec",
                                                             "TypeVarTuple"};

template <std::size_t kSize, typename Enum>
std::string_view NameOf(const std::array<std::string_view, kSize>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

// Writes one line: the class, the position and the fields of one node.
class Line {
 public:
  Line(std::string& out, DumpPositions positions) : out_(out), positions_(positions) {}

  void Write(NodeRef node);

 private:
  void Begin(std::string_view name, SourceSpan span = {}) {
    out_ += name;
    if (positions_ == DumpPositions::kOmit || !span.known()) return;
    Position('@', span.line, span.column);
    Position('-', span.end_line, span.end_column);
  }
  void Position(char before, std::uint32_t line, std::uint32_t column) {
    out_ += before;
    Decimal(line);
    out_ += ':';
    Decimal(column);
  }
  template <typename Integer>
  void Decimal(Integer value, int base = 10) {
    std::array<char, 24> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base);
    out_.append(buffer.data(), result.ptr);
  }

  void Word(std::string_view word) {
    out_ += ' ';
    out_ += word;
  }
  void Identifier(std::string_view name) {
    if (name.data() == nullptr) return Word("~");
    out_ += " '";
    out_ += name;
  }
  void Identifiers(List<std::string_view> names) {
    out_ += " [";
    Decimal(names.size());
    for (const std::string_view name : names) Identifier(name);
  }
  void Number(int value) {
    out_ += " #";
    Decimal(value);
  }
  template <typename T>
  void One(const T* child) {
    Word(child == nullptr ? "~" : "1");
  }
  template <typename T>
  void All(List<T*> children) {
    out_ += " [";
    Decimal(children.size());
    const auto is_null = [](const T* child) { return child == nullptr; };
    if (std::none_of(children.begin(), children.end(), is_null)) return;
    out_ += ':';
    for (const T* child : children) out_ += is_null(child) ? '0' : '1';
  }
  template <typename... Fields>
  void Each(Fields... fields) {
    (One(fields), ...);
  }

  void Hex(std::string_view bytes) {
    for (const char byte : bytes) {
      const auto value = static_cast<unsigned char>(byte);
      out_ += "0123456789abcdef"[value >> 4];
      out_ += "0123456789abcdef"[value & 0xF];
    }
  }
  void Bits(double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    for (int shift = 60; shift >= 0; shift -= 4) out_ += "0123456789abcdef"[(bits >> shift) & 0xF];
  }

  void WriteConstant(ConstantKind kind);
  void WriteLiteral(const Constant& constant);
  void WriteExpr(const Expr& expr);
  void WriteStmt(const Stmt& stmt);
  void WritePattern(const Pattern& pattern);
  void WriteArguments(const Arguments& args);
  void WriteFunction(const FunctionDef& function);
  void WriteClass(const ClassDef& definition);
  void WriteTry(const Try& stmt);

  std::string& out_;
  DumpPositions positions_;
};

void Line::WriteConstant(ConstantKind kind) {
  switch (kind) {
    case ConstantKind::kTrue:
      return Word("True");
    case ConstantKind::kFalse:
      return Word("False");
    case ConstantKind::kEllipsis:
      return Word("...");
    default:
      return Word("None");
  }
}

void Line::WriteLiteral(const Constant& constant) {
  switch (constant.constant) {
    case ConstantKind::kInt:
      out_ += " i";
      Decimal(constant.integer, 16);
      break;
    case ConstantKind::kBigInt:
      out_ += " i";
      out_ += constant.text;
      break;
    case ConstantKind::kFloat:
      out_ += " f";
      Bits(constant.number);
      break;
    case ConstantKind::kComplex:
      out_ += " j";
      Bits(constant.number);
      break;
    case ConstantKind::kStr:
      out_ += " s";
      Hex(constant.text);
      break;
    case ConstantKind::kBytes:
      out_ += " b";
      Hex(constant.text);
      break;
    default:
      WriteConstant(constant.constant);
      break;
  }
  Word(constant.unicode_prefix ? "'u" : "~");
}

void Line::WriteExpr(const Expr& expr) {
  Begin(NameOf(kExprNames, expr.kind), expr.span);
  switch (expr.kind) {
    case ExprKind::kBoolOp:
      Word(As<BoolOp>(&expr)->op == BoolOperator::kAnd ? "And" : "Or");
      return All(As<BoolOp>(&expr)->values);
    case ExprKind::kNamedExpr:
      return Each(As<NamedExpr>(&expr)->target, As<NamedExpr>(&expr)->value);
    case ExprKind::kBinOp:
      One(As<BinOp>(&expr)->left);
      Word(NameOf(kBinaryOperators, As<BinOp>(&expr)->op));
      return One(As<BinOp>(&expr)->right);
    case ExprKind::kUnaryOp:
      Word(NameOf(kUnaryOperators, As<UnaryOp>(&expr)->op));
      return One(As<UnaryOp>(&expr)->operand);
    case ExprKind::kLambda:
      return Each(As<Lambda>(&expr)->args, As<Lambda>(&expr)->body);
    case ExprKind::kIfExp: {
      const auto& choice = *As<IfExp>(&expr);
      return Each(choice.test, choice.body, choice.orelse);
    }
    case ExprKind::kDict:
      All(As<Dict>(&expr)->keys);
      return All(As<Dict>(&expr)->values);
    case ExprKind::kSet:
      return All(As<Set>(&expr)->elts);
    case ExprKind::kListComp:
      One(As<ListComp>(&expr)->elt);
      return All(As<ListComp>(&expr)->generators);
    case ExprKind::kSetComp:
      One(As<SetComp>(&expr)->elt);
      return All(As<SetComp>(&expr)->generators);
    case ExprKind::kDictComp:
      Each(As<DictComp>(&expr)->key, As<DictComp>(&expr)->value);
      return All(As<DictComp>(&expr)->generators);
    case ExprKind::kGeneratorExp:
      One(As<GeneratorExp>(&expr)->elt);
      return All(As<GeneratorExp>(&expr)->generators);
    case ExprKind::kAwait:
      return One(As<Await>(&expr)->value);
    case ExprKind::kYield:
      return One(As<Yield>(&expr)->value);
    case ExprKind::kYieldFrom:
      return One(As<YieldFrom>(&expr)->value);
    case ExprKind::kCompare: {
      const auto& compare = *As<Compare>(&expr);
      One(compare.left);
      out_ += " [";
      Decimal(compare.ops.size());
      for (const CompareOperator op : compare.ops) Word(NameOf(kCompareOperators, op));
      return All(compare.comparators);
    }
    case ExprKind::kCall:
      One(As<Call>(&expr)->func);
      All(As<Call>(&expr)->args);
      return All(As<Call>(&expr)->keywords);
    case ExprKind::kFormattedValue:
      One(As<FormattedValue>(&expr)->value);
      Number(As<FormattedValue>(&expr)->conversion);
      return One(As<FormattedValue>(&expr)->format_spec);
    case ExprKind::kJoinedStr:
      return All(As<JoinedStr>(&expr)->values);
    case ExprKind::kConstant:
      return WriteLiteral(*As<Constant>(&expr));
    case ExprKind::kAttribute:
      One(As<Attribute>(&expr)->value);
      Identifier(As<Attribute>(&expr)->attr);
      return Word(NameOf(kContexts, As<Attribute>(&expr)->ctx));
    case ExprKind::kSubscript:
      Each(As<Subscript>(&expr)->value, As<Subscript>(&expr)->slice);
      return Word(NameOf(kContexts, As<Subscript>(&expr)->ctx));
    case ExprKind::kStarred:
      One(As<Starred>(&expr)->value);
      return Word(NameOf(kContexts, As<Starred>(&expr)->ctx));
    case ExprKind::kName:
      Identifier(As<Name>(&expr)->id);
      return Word(NameOf(kContexts, As<Name>(&expr)->ctx));
    case ExprKind::kList:
      All(As<ListExpr>(&expr)->elts);
      return Word(NameOf(kContexts, As<ListExpr>(&expr)->ctx));
    case ExprKind::kTuple:
      All(As<Tuple>(&expr)->elts);
      return Word(NameOf(kContexts, As<Tuple>(&expr)->ctx));
    case ExprKind::kSlice: {
      const auto& slice = *As<Slice>(&expr);
      return Each(slice.lower, slice.upper, slice.step);
    }
  }
}

void Line::WriteFunction(const FunctionDef& function) {
  Identifier(function.name);
  One(function.args);
  All(function.body);
  All(function.decorator_list);
  One(function.returns);
  All(function.type_params);
}

void Line::WriteClass(const ClassDef& definition) {
  Identifier(definition.name);
  All(definition.bases);
  All(definition.keywords);
  All(definition.body);
  All(definition.decorator_list);
  All(definition.type_params);
}

void Line::WriteTry(const Try& stmt) {
  All(stmt.body);
  All(stmt.handlers);
  All(stmt.orelse);
  All(stmt.finalbody);
}

void Line::WriteStmt(const Stmt& stmt) {
  Begin(NameOf(kStmtNames, stmt.kind), stmt.span);
  switch (stmt.kind) {
    case StmtKind::kFunctionDef:
    case StmtKind::kAsyncFunctionDef:
      return WriteFunction(*As<FunctionDef>(&stmt));
    case StmtKind::kClassDef:
      return WriteClass(*As<ClassDef>(&stmt));
    case StmtKind::kReturn:
      return One(As<Return>(&stmt)->value);
    case StmtKind::kDelete:
      return All(As<Delete>(&stmt)->targets);
    case StmtKind::kAssign:
      All(As<Assign>(&stmt)->targets);
      return One(As<Assign>(&stmt)->value);
    case StmtKind::kTypeAlias:
      One(As<TypeAlias>(&stmt)->name);
      All(As<TypeAlias>(&stmt)->type_params);
      return One(As<TypeAlias>(&stmt)->value);
    case StmtKind::kAugAssign:
      One(As<AugAssign>(&stmt)->target);
      Word(NameOf(kBinaryOperators, As<AugAssign>(&stmt)->op));
      return One(As<AugAssign>(&stmt)->value);
    case StmtKind::kAnnAssign: {
      const auto& assign = *As<AnnAssign>(&stmt);
      Each(assign.target, assign.annotation, assign.value);
      return Number(assign.simple ? 1 : 0);
    }
    case StmtKind::kFor:
    case StmtKind::kAsyncFor:
      Each(As<For>(&stmt)->target, As<For>(&stmt)->iter);
      All(As<For>(&stmt)->body);
      return All(As<For>(&stmt)->orelse);
    case StmtKind::kWhile:
      One(As<While>(&stmt)->test);
      All(As<While>(&stmt)->body);
      return All(As<While>(&stmt)->orelse);
    case StmtKind::kIf:
      One(As<If>(&stmt)->test);
      All(As<If>(&stmt)->body);
      return All(As<If>(&stmt)->orelse);
    case StmtKind::kWith:
    case StmtKind::kAsyncWith:
      All(As<With>(&stmt)->items);
      return All(As<With>(&stmt)->body);
    case StmtKind::kMatch:
      One(As<Match>(&stmt)->subject);
      return All(As<Match>(&stmt)->cases);
    case StmtKind::kRaise:
      return Each(As<Raise>(&stmt)->exc, As<Raise>(&stmt)->cause);
    case StmtKind::kTry:
    case StmtKind::kTryStar:
      return WriteTry(*As<Try>(&stmt));
    case StmtKind::kAssert:
      return Each(As<Assert>(&stmt)->test, As<Assert>(&stmt)->msg);
    case StmtKind::kImport:
      return All(As<Import>(&stmt)->names);
    case StmtKind::kImportFrom:
      Identifier(As<ImportFrom>(&stmt)->module);
      All(As<ImportFrom>(&stmt)->names);
      return Number(As<ImportFrom>(&stmt)->level);
    case StmtKind::kGlobal:
      return Identifiers(As<Global>(&stmt)->names);
    case StmtKind::kNonlocal:
      return Identifiers(As<Nonlocal>(&stmt)->names);
    case StmtKind::kExpr:
      return One(As<ExprStmt>(&stmt)->value);
    case StmtKind::kPass:
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      return;
  }
}

void Line::WritePattern(const Pattern& pattern) {
  Begin(NameOf(kPatternNames, pattern.kind), pattern.span);
  switch (pattern.kind) {
    case PatternKind::kMatchValue:
      return One(As<MatchValue>(&pattern)->value);
    case PatternKind::kMatchSingleton:
      return WriteConstant(As<MatchSingleton>(&pattern)->value);
    case PatternKind::kMatchSequence:
      return All(As<MatchSequence>(&pattern)->patterns);
    case PatternKind::kMatchMapping:
      All(As<MatchMapping>(&pattern)->keys);
      All(As<MatchMapping>(&pattern)->patterns);
      return Identifier(As<MatchMapping>(&pattern)->rest);
    case PatternKind::kMatchClass:
      One(As<MatchClass>(&pattern)->cls);
      All(As<MatchClass>(&pattern)->patterns);
      Identifiers(As<MatchClass>(&pattern)->kwd_attrs);
      return All(As<MatchClass>(&pattern)->kwd_patterns);
    case PatternKind::kMatchStar:
      return Identifier(As<MatchStar>(&pattern)->name);
    case PatternKind::kMatchAs:
      One(As<MatchAs>(&pattern)->pattern);
      return Identifier(As<MatchAs>(&pattern)->name);
    case PatternKind::kMatchOr:
      return All(As<MatchOr>(&pattern)->patterns);
  }
}

void Line::WriteArguments(const Arguments& args) {
  Begin("arguments");
  All(args.posonlyargs);
  All(args.args);
  One(args.vararg);
  All(args.kwonlyargs);
  All(args.kw_defaults);
  One(args.kwarg);
  All(args.defaults);
}

void Line::Write(NodeRef node) {
  switch (node.kind()) {
    case NodeRef::Kind::kModule:
      Begin("Module");
      return All(node.module()->body);
    case NodeRef::Kind::kStmt:
      return WriteStmt(*node.stmt());
    case NodeRef::Kind::kExpr:
      return WriteExpr(*node.expr());
    case NodeRef::Kind::kPattern:
      return WritePattern(*node.pattern());
    case NodeRef::Kind::kArguments:
      return WriteArguments(*node.arguments());
    case NodeRef::Kind::kArg:
      Begin("arg", node.span());
      Identifier(node.arg()->arg);
      return One(node.arg()->annotation);
    case NodeRef::Kind::kKeyword:
      Begin("keyword", node.span());
      Identifier(node.keyword()->arg);
      return One(node.keyword()->value);
    case NodeRef::Kind::kComprehension:
      Begin("comprehension");
      Each(node.comprehension()->target, node.comprehension()->iter);
      All(node.comprehension()->ifs);
      return Number(node.comprehension()->is_async ? 1 : 0);
    case NodeRef::Kind::kAlias:
      Begin("alias", node.span());
      Identifier(node.alias()->name);
      return Identifier(node.alias()->asname);
    case NodeRef::Kind::kWithItem:
      Begin("withitem");
      return Each(node.with_item()->context_expr, node.with_item()->optional_vars);
    case NodeRef::Kind::kExceptHandler:
      Begin("ExceptHandler", node.span());
      One(node.except_handler()->type);
      Identifier(node.except_handler()->name);
      return All(node.except_handler()->body);
    case NodeRef::Kind::kMatchCase:
      Begin("match_case");
      Each(node.match_case()->pattern, node.match_case()->guard);
      return All(node.match_case()->body);
    case NodeRef::Kind::kTypeParam:
      Begin(NameOf(kTypeParamNames, node.type_param()->kind), node.span());
      Identifier(node.type_param()->name);
      if (node.type_param()->kind == TypeParamKind::kTypeVar) One(node.type_param()->bound);
      return;
  }
}

}  // namespace

std::string DumpAst(NodeRef root, DumpPositions positions) {
  std::string out;
  Line line(out, positions);
  std::vector<NodeRef> pending{root};
  while (!pending.empty()) {
    const NodeRef node = pending.back();
    pending.pop_back();
    line.Write(node);
    out += '\n';
    const auto first_child = static_cast<std::ptrdiff_t>(pending.size());
    ForEachChild(node, [&pending](NodeRef child) { pending.push_back(child); });
    std::reverse(pending.begin() + first_child, pending.end());
  }
  return out;
}

}  // namespace caisson::python
