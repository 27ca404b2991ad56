// SPDX-License-Identifier: Apache-2.0
#include "python/print_expr.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "python/print_literals.h"

namespace caisson::python {
namespace {

// "" the first time, ", " from then on.
class Separator {
 public:
  std::string_view operator()() { return std::exchange(first_, false) ? "" : ", "; }

 private:
  bool first_ = true;
};

Precedence Tighter(Precedence precedence) {
  return static_cast<Precedence>(static_cast<std::uint8_t>(precedence) + 1);
}

std::string_view Spelling(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return " + ";
    case BinaryOperator::kSub:
      return " - ";
    case BinaryOperator::kMult:
      return " * ";
    case BinaryOperator::kMatMult:
      return " @ ";
    case BinaryOperator::kDiv:
      return " / ";
    case BinaryOperator::kMod:
      return " % ";
    case BinaryOperator::kPow:
      return " ** ";
    case BinaryOperator::kLShift:
      return " << ";
    case BinaryOperator::kRShift:
      return " >> ";
    case BinaryOperator::kBitOr:
      return " | ";
    case BinaryOperator::kBitXor:
      return " ^ ";
    case BinaryOperator::kBitAnd:
      return " & ";
    case BinaryOperator::kFloorDiv:
      return " // ";
  }
  return {};
}

std::string_view Spelling(CompareOperator op) {
  switch (op) {
    case CompareOperator::kEq:
      return " == ";
    case CompareOperator::kNotEq:
      return " != ";
    case CompareOperator::kLt:
      return " < ";
    case CompareOperator::kLtE:
      return " <= ";
    case CompareOperator::kGt:
      return " > ";
    case CompareOperator::kGtE:
      return " >= ";
    case CompareOperator::kIs:
      return " is ";
    case CompareOperator::kIsNot:
      return " is not ";
    case CompareOperator::kIn:
      return " in ";
    case CompareOperator::kNotIn:
      return " not in ";
  }
  return {};
}

std::string_view Spelling(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::kInvert:
      return "~";
    case UnaryOperator::kNot:
      return "not ";
    case UnaryOperator::kUAdd:
      return "+";
    case UnaryOperator::kUSub:
      return "-";
  }
  return {};
}

Precedence PrecedenceOf(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
    case BinaryOperator::kSub:
      return Precedence::kSum;
    case BinaryOperator::kMult:
    case BinaryOperator::kMatMult:
    case BinaryOperator::kDiv:
    case BinaryOperator::kMod:
    case BinaryOperator::kFloorDiv:
      return Precedence::kTerm;
    case BinaryOperator::kPow:
      return Precedence::kPower;
    case BinaryOperator::kLShift:
    case BinaryOperator::kRShift:
      return Precedence::kShift;
    case BinaryOperator::kBitOr:
      return Precedence::kBitOr;
    case BinaryOperator::kBitXor:
      return Precedence::kBitXor;
    case BinaryOperator::kBitAnd:
      return Precedence::kBitAnd;
  }
  return Precedence::kPrimary;
}

Precedence PrecedenceOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kBoolOp:
      return As<BoolOp>(&expr)->op == BoolOperator::kOr ? Precedence::kOr : Precedence::kAnd;
    case ExprKind::kNamedExpr:
      return Precedence::kNamed;
    case ExprKind::kBinOp:
      return PrecedenceOf(As<BinOp>(&expr)->op);
    case ExprKind::kUnaryOp:
      return As<UnaryOp>(&expr)->op == UnaryOperator::kNot ? Precedence::kNot : Precedence::kFactor;
    case ExprKind::kLambda:
    case ExprKind::kIfExp:
      return Precedence::kTest;
    case ExprKind::kAwait:
      return Precedence::kAwait;
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return Precedence::kStatement;
    case ExprKind::kCompare:
      return Precedence::kComparison;
    case ExprKind::kConstant:
      return IsNegativeNumber(*As<Constant>(&expr)) ? Precedence::kFactor : Precedence::kPrimary;
    case ExprKind::kTuple:
      return As<Tuple>(&expr)->elts.empty() ? Precedence::kPrimary : Precedence::kTuple;
    default:
      return Precedence::kPrimary;
  }
}

Precedence LeftOperand(BinaryOperator op) {
  return op == BinaryOperator::kPow ? Precedence::kAwait : PrecedenceOf(op);
}

Precedence RightOperand(BinaryOperator op) {
  return op == BinaryOperator::kPow ? Precedence::kFactor : Tighter(PrecedenceOf(op));
}

bool IsPostfix(const Expr& expr) {
  return expr.kind == ExprKind::kAttribute || expr.kind == ExprKind::kSubscript ||
         expr.kind == ExprKind::kCall;
}

const Expr& PostfixBase(const Expr& expr) {
  if (const auto* attribute = IsA<Attribute>(&expr)) return *attribute->value;
  if (const auto* subscript = IsA<Subscript>(&expr)) return *subscript->value;
  return *As<Call>(&expr)->func;
}

}  // namespace

template <typename Body>
void ExprPrinter::Bracketed(char open, char close, Body body) {
  const FieldSyntax outside = field_;
  if (field_ == FieldSyntax::kBare) field_ = FieldSyntax::kBracketed;
  out_ += open;
  body();
  out_ += close;
  field_ = outside;
}

bool ExprPrinter::NeedsParentheses(const Expr& expr, Precedence least) const {
  // A tuple element, an assigned value or a statement takes no bare walrus, although a tuple and a
  // yield, which bind looser, may stand there.
  if (expr.kind == ExprKind::kNamedExpr) return least != Precedence::kNamed;
  if (expr.kind == ExprKind::kLambda && field_ == FieldSyntax::kBare) return true;
  return PrecedenceOf(expr) < least;
}

void ExprPrinter::Print(const Expr& expr, Precedence least) {
  if (NeedsParentheses(expr, least)) {
    Bracketed('(', ')', [&] { PrintBare(expr, true); });
  } else {
    PrintBare(expr, false);
  }
}

void ExprPrinter::PrintBare(const Expr& expr, bool parenthesised) {
  switch (expr.kind) {
    case ExprKind::kBoolOp:
      return PrintBoolOp(*As<BoolOp>(&expr));
    case ExprKind::kNamedExpr:
      Print(*As<NamedExpr>(&expr)->target, Precedence::kPrimary);
      out_ += " := ";
      return Print(*As<NamedExpr>(&expr)->value, Precedence::kTest);
    case ExprKind::kBinOp:
      return PrintBinOp(*As<BinOp>(&expr));
    case ExprKind::kUnaryOp:
      return PrintUnaryOp(*As<UnaryOp>(&expr));
    case ExprKind::kLambda:
      return PrintLambda(*As<Lambda>(&expr));
    case ExprKind::kIfExp:
      return PrintIfExp(*As<IfExp>(&expr));
    case ExprKind::kDict:
      return PrintDict(*As<Dict>(&expr));
    case ExprKind::kSet:
      return PrintSet(*As<Set>(&expr));
    case ExprKind::kListComp:
      return Bracketed('[', ']', [&] {
        Print(*As<ListComp>(&expr)->elt, Precedence::kNamed);
        PrintGenerators(As<ListComp>(&expr)->generators);
      });
    case ExprKind::kSetComp:
      return Bracketed('{', '}', [&] {
        Print(*As<SetComp>(&expr)->elt, Precedence::kNamed);
        PrintGenerators(As<SetComp>(&expr)->generators);
      });
    case ExprKind::kDictComp:
      return Bracketed('{', '}', [&] {
        Print(*As<DictComp>(&expr)->key, Precedence::kTest);
        out_ += ": ";
        Print(*As<DictComp>(&expr)->value, Precedence::kTest);
        PrintGenerators(As<DictComp>(&expr)->generators);
      });
    case ExprKind::kGeneratorExp:
      return Bracketed('(', ')', [&] {
        Print(*As<GeneratorExp>(&expr)->elt, Precedence::kNamed);
        PrintGenerators(As<GeneratorExp>(&expr)->generators);
      });
    case ExprKind::kAwait:
      out_ += "await ";
      return Print(*As<Await>(&expr)->value, Precedence::kPrimary);
    case ExprKind::kYield:
      return PrintYield("yield", As<Yield>(&expr)->value, Precedence::kTuple);
    case ExprKind::kYieldFrom:
      return PrintYield("yield from", As<YieldFrom>(&expr)->value, Precedence::kTest);
    case ExprKind::kCompare:
      return PrintCompare(*As<Compare>(&expr));
    case ExprKind::kCall:
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
      return PrintPostfix(expr);
    case ExprKind::kFormattedValue: {
      Expr* const self = const_cast<Expr*>(&expr);
      return PrintJoinedStr(List<Expr*>(&self, 1));
    }
    case ExprKind::kJoinedStr:
      return PrintJoinedStr(As<JoinedStr>(&expr)->values);
    case ExprKind::kConstant:
      return PrintConstant(*As<Constant>(&expr));
    case ExprKind::kStarred:
      out_ += '*';
      return Print(*As<Starred>(&expr)->value, Precedence::kBitOr);
    case ExprKind::kName:
      return AppendIdentifier(out_, As<Name>(&expr)->id);
    case ExprKind::kList:
      return Bracketed('[', ']', [&] { PrintList(As<ListExpr>(&expr)->elts, Precedence::kNamed); });
    case ExprKind::kTuple:
      return PrintTuple(*As<Tuple>(&expr), parenthesised ? Precedence::kNamed : Precedence::kTest);
    case ExprKind::kSlice:
      return PrintSlice(*As<Slice>(&expr));
  }
}

void ExprPrinter::PrintList(List<Expr*> items, Precedence least) {
  Separator comma;
  for (const Expr* item : items) {
    out_ += comma();
    Print(*item, least);
  }
}

// ---- operators ----------------------------------------------------------------------------------

void ExprPrinter::PrintBoolOp(const BoolOp& expr) {
  const bool is_or = expr.op == BoolOperator::kOr;
  bool first = true;
  for (const Expr* value : expr.values) {
    if (!std::exchange(first, false)) out_ += is_or ? " or " : " and ";
    Print(*value, is_or ? Precedence::kAnd : Precedence::kNot);
  }
}

// A chain like a + b + c leans to the left as far as the source is long, so it is unrolled.
void ExprPrinter::PrintBinOp(const BinOp& expr) {
  std::vector<const BinOp*> chain{&expr};
  for (;;) {
    const auto* left = IsA<BinOp>(chain.back()->left);
    if (left == nullptr || PrecedenceOf(left->op) < LeftOperand(chain.back()->op)) break;
    chain.push_back(left);
  }
  Print(*chain.back()->left, LeftOperand(chain.back()->op));
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    out_ += Spelling((*link)->op);
    Print(*(*link)->right, RightOperand((*link)->op));
  }
}

void ExprPrinter::PrintUnaryOp(const UnaryOp& expr) {
  out_ += Spelling(expr.op);
  Print(*expr.operand, expr.op == UnaryOperator::kNot ? Precedence::kNot : Precedence::kFactor);
}

void ExprPrinter::PrintCompare(const Compare& expr) {
  Print(*expr.left, Precedence::kBitOr);
  for (std::size_t i = 0; i < expr.comparators.size(); ++i) {
    out_ += Spelling(expr.ops[i]);
    Print(*expr.comparators[i], Precedence::kBitOr);
  }
}

void ExprPrinter::PrintIfExp(const IfExp& expr) {
  Print(*expr.body, Precedence::kOr);
  out_ += " if ";
  Print(*expr.test, Precedence::kOr);
  out_ += " else ";
  Print(*expr.orelse, Precedence::kTest);
}

void ExprPrinter::PrintLambda(const Lambda& expr) {
  out_ += "lambda";
  const std::size_t before = out_.size();
  out_ += ' ';
  PrintParameters(*expr.args);
  if (out_.size() == before + 1) out_.pop_back();
  out_ += ": ";
  Print(*expr.body, Precedence::kTest);
}

void ExprPrinter::PrintYield(std::string_view keyword, const Expr* value, Precedence least) {
  out_ += keyword;
  if (value == nullptr) return;
  out_ += ' ';
  Print(*value, least);
}

// ---- displays and comprehensions ----------------------------------------------------------------

void ExprPrinter::PrintTuple(const Tuple& expr, Precedence least) {
  if (expr.elts.empty()) {
    out_ += "()";
    return;
  }
  PrintList(expr.elts, least);
  if (expr.elts.size() == 1) out_ += ',';
}

void ExprPrinter::PrintSet(const Set& expr) {
  Bracketed('{', '}', [&] {
    // No source has an empty set display; this one evaluates to the same.
    if (expr.elts.empty()) out_ += "*()";
    PrintList(expr.elts, Precedence::kNamed);
  });
}

void ExprPrinter::PrintDict(const Dict& expr) {
  Bracketed('{', '}', [&] {
    Separator comma;
    for (std::size_t i = 0; i < expr.values.size(); ++i) {
      out_ += comma();
      if (expr.keys[i] == nullptr) {
        out_ += "**";
        Print(*expr.values[i], Precedence::kBitOr);
      } else {
        Print(*expr.keys[i], Precedence::kTest);
        out_ += ": ";
        Print(*expr.values[i], Precedence::kTest);
      }
    }
  });
}

void ExprPrinter::PrintGenerators(List<Comprehension*> generators) {
  for (const Comprehension* generator : generators) {
    out_ += generator->is_async ? " async for " : " for ";
    Print(*generator->target, Precedence::kTuple);
    out_ += " in ";
    Print(*generator->iter, Precedence::kOr);
    for (const Expr* condition : generator->ifs) {
      out_ += " if ";
      Print(*condition, Precedence::kOr);
    }
  }
}

// ---- attributes, subscripts and calls -----------------------------------------------------------

// Like operators, chains of calls lean to the left without a bound.
void ExprPrinter::PrintPostfix(const Expr& expr) {
  std::vector<const Expr*> chain;
  const Expr* base = &expr;
  for (; IsPostfix(*base); base = &PostfixBase(*base)) chain.push_back(base);
  const auto* number = IsA<Constant>(base);
  if (number != nullptr && IsNumber(*number)) {
    Bracketed('(', ')', [&] { PrintConstant(*number); });
  } else {
    Print(*base, Precedence::kPrimary);
  }
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) PrintSuffix(**link);
}

void ExprPrinter::PrintSuffix(const Expr& expr) {
  if (const auto* attribute = IsA<Attribute>(&expr)) {
    out_ += '.';
    AppendIdentifier(out_, attribute->attr);
  } else if (const auto* subscript = IsA<Subscript>(&expr)) {
    Bracketed('[', ']', [&] { PrintSubscript(*subscript->slice); });
  } else {
    const auto& call = *As<Call>(&expr);
    if (call.args.size() == 1 && call.keywords.empty() && IsA<GeneratorExp>(call.args[0])) {
      return Print(*call.args[0], Precedence::kPrimary);
    }
    Bracketed('(', ')', [&] { PrintCallArguments(call.args, call.keywords); });
  }
}

void ExprPrinter::PrintSubscript(const Expr& slice) {
  const auto* tuple = IsA<Tuple>(&slice);
  // MicroPython's grammar has no bare walrus here.
  if (tuple == nullptr || tuple->elts.empty()) return Print(slice, Precedence::kTest);
  Separator comma;
  for (const Expr* element : tuple->elts) {
    out_ += comma();
    PrintArgument(*element, Precedence::kTest);
  }
  if (tuple->elts.size() == 1 && !IsA<Starred>(tuple->elts[0])) out_ += ',';
}

void ExprPrinter::PrintSlice(const Slice& expr) {
  if (expr.lower != nullptr) Print(*expr.lower, Precedence::kTest);
  out_ += ':';
  if (expr.upper != nullptr) Print(*expr.upper, Precedence::kTest);
  if (expr.step == nullptr) return;
  out_ += ':';
  Print(*expr.step, Precedence::kTest);
}

// A call's argument or a subscript's element, where a star takes any expression.
void ExprPrinter::PrintArgument(const Expr& expr, Precedence least) {
  if (const auto* starred = IsA<Starred>(&expr)) {
    out_ += '*';
    Print(*starred->value, Precedence::kTest);
  } else {
    Print(expr, least);
  }
}

void ExprPrinter::PrintKeyword(const Keyword& keyword) {
  if (keyword.arg.empty()) {
    out_ += "**";
  } else {
    AppendIdentifier(out_, keyword.arg);
    out_ += '=';
  }
  Print(*keyword.value, Precedence::kTest);
}

void ExprPrinter::PrintCallArguments(List<Expr*> args, List<Keyword*> keywords) {
  Separator comma;
  for (const Expr* arg : args) {
    out_ += comma();
    PrintArgument(*arg, Precedence::kNamed);
  }
  for (const Keyword* keyword : keywords) {
    out_ += comma();
    PrintKeyword(*keyword);
  }
}

// ---- parameters ---------------------------------------------------------------------------------

void ExprPrinter::PrintParameter(const Arg& arg, const Expr* default_value) {
  AppendIdentifier(out_, arg.arg);
  if (arg.annotation != nullptr) {
    out_ += ": ";
    Print(*arg.annotation, Precedence::kTest);
  }
  if (default_value == nullptr) return;
  out_ += arg.annotation != nullptr ? " = " : "=";
  Print(*default_value, Precedence::kTest);
}

void ExprPrinter::PrintPositional(const Arguments& args) {
  Separator comma;
  const std::size_t positional_only = args.posonlyargs.size();
  const std::size_t total = positional_only + args.args.size();
  for (std::size_t i = 0; i < total; ++i) {
    const std::size_t from_end = total - i;
    const bool has_default = from_end <= args.defaults.size();
    out_ += comma();
    PrintParameter(i < positional_only ? *args.posonlyargs[i] : *args.args[i - positional_only],
                   has_default ? args.defaults[args.defaults.size() - from_end] : nullptr);
    if (i + 1 == positional_only) out_ += ", /";
  }
}

void ExprPrinter::PrintParameters(const Arguments& args) {
  PrintPositional(args);
  bool first = args.posonlyargs.empty() && args.args.empty();
  const auto comma = [&] { out_ += std::exchange(first, false) ? "" : ", "; };
  if (args.vararg != nullptr || !args.kwonlyargs.empty()) {
    comma();
    out_ += '*';
    if (args.vararg != nullptr) PrintParameter(*args.vararg, nullptr);
  }
  for (std::size_t i = 0; i < args.kwonlyargs.size(); ++i) {
    comma();
    PrintParameter(*args.kwonlyargs[i], args.kw_defaults[i]);
  }
  if (args.kwarg == nullptr) return;
  comma();
  out_ += "**";
  PrintParameter(*args.kwarg, nullptr);
}

void ExprPrinter::PrintTypeParams(List<TypeParam*> params) {
  if (params.empty()) return;
  Bracketed('[', ']', [&] {
    Separator comma;
    for (const TypeParam* param : params) {
      out_ += comma();
      if (param->kind == TypeParamKind::kTypeVarTuple) out_ += '*';
      if (param->kind == TypeParamKind::kParamSpec) out_ += "**";
      AppendIdentifier(out_, param->name);
      if (param->bound == nullptr) continue;
      out_ += ": ";
      Print(*param->bound, Precedence::kTest);
    }
  });
}

}  // namespace caisson::python
