// SPDX-License-Identifier: Apache-2.0
// Prints expressions, and the parts that statements and expressions share (parameter lists, call
// arguments, type parameters), with the parentheses that the grammar needs and no others. Appends
// to one string; knows nothing of lines and indentation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "python/ast.h"

namespace caisson::python {

// How tightly an expression binds, loosest first. As an argument it names what the place in the
// grammar takes as it is; anything looser goes into parentheses.
enum class Precedence : std::uint8_t {
  kStatement,  // a bare yield or tuple
  kTuple,      // a bare tuple
  kNamed,      // x := 1
  kTest,       // lambda, conditional
  kOr,
  kAnd,
  kNot,
  kComparison,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kTerm,
  kFactor,  // -x
  kPower,
  kAwait,
  kPrimary,
};

class ExprPrinter {
 public:
  // `out` outlives the printer.
  explicit ExprPrinter(std::string& out) : out_(out) {}

  void Print(const Expr& expr, Precedence least);
  void PrintParameters(const Arguments& args);
  // Without the parentheses around them.
  void PrintCallArguments(List<Expr*> args, List<Keyword*> keywords);
  // With brackets; nothing when there are none.
  void PrintTypeParams(List<TypeParam*> params);
  void PrintList(List<Expr*> items, Precedence least);

 private:
  enum class FieldSyntax : std::uint8_t { kNone, kBare, kBracketed };

  // Everything between brackets, where the colon of a lambda cannot end a replacement field.
  template <typename Body>
  void Bracketed(char open, char close, Body body);

  bool NeedsParentheses(const Expr& expr, Precedence least) const;
  void PrintBare(const Expr& expr, bool parenthesised);
  void PrintConstant(const Constant& constant);
  void PrintBinOp(const BinOp& expr);
  void PrintBoolOp(const BoolOp& expr);
  void PrintCompare(const Compare& expr);
  void PrintDict(const Dict& expr);
  void PrintIfExp(const IfExp& expr);
  void PrintKeyword(const Keyword& keyword);
  void PrintLambda(const Lambda& expr);
  void PrintParameter(const Arg& arg, const Expr* default_value);
  void PrintPositional(const Arguments& args);
  void PrintPostfix(const Expr& expr);
  void PrintSet(const Set& expr);
  void PrintSlice(const Slice& expr);
  void PrintSubscript(const Expr& slice);
  void PrintSuffix(const Expr& expr);
  void PrintTuple(const Tuple& expr, Precedence least);
  void PrintUnaryOp(const UnaryOp& expr);
  void PrintYield(std::string_view keyword, const Expr* value, Precedence least);
  void PrintArgument(const Expr& expr, Precedence least);
  void PrintGenerators(List<Comprehension*> generators);

  char ChooseQuote(std::string_view text) const;
  void PrintField(const FormattedValue& field, char quote, bool braces_may_meet);
  void PrintFormatSpec(const Expr& spec, char quote);
  void PrintJoinedStr(List<Expr*> values);
  void PrintJoinedRun(List<Expr*> values);

  std::string& out_;
  FieldSyntax field_ = FieldSyntax::kNone;  // where we are in the nearest replacement field
  bool single_quote_taken_ = false;         // an enclosing f-string uses it
  bool double_quote_taken_ = false;
};

}  // namespace caisson::python
