// SPDX-License-Identifier: Apache-2.0
// Trees that no parser makes, and the line map. Everything that can be parsed is printed in
// parse_print_test.cc and tests/python/.
#include "python/printer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "python/arena.h"

namespace caisson::python {
namespace {

class PrinterTest : public testing::Test {
 protected:
  template <typename T>
  T* New() {
    auto* node = arena_.New<T>();
    node->kind = T::kKind;
    return node;
  }
  template <typename T>
  List<T*> ListOf(std::vector<T*> items) {
    return arena_.Copy(std::span<T* const>(items));
  }
  Constant* Int(std::int64_t value) {
    auto* constant = New<Constant>();
    constant->constant = ConstantKind::kInt;
    constant->integer = value;
    return constant;
  }
  Constant* Real(double value, ConstantKind kind = ConstantKind::kFloat) {
    auto* constant = New<Constant>();
    constant->constant = kind;
    constant->number = value;
    return constant;
  }
  Constant* Str(std::string_view text, ConstantKind kind = ConstantKind::kStr) {
    auto* constant = New<Constant>();
    constant->constant = kind;
    constant->text = text;
    return constant;
  }
  Name* Var(std::string_view id) {
    auto* name = New<Name>();
    name->id = id;
    return name;
  }
  Attribute* Dot(Expr* value, std::string_view attr) {
    auto* attribute = New<Attribute>();
    attribute->value = value;
    attribute->attr = attr;
    return attribute;
  }
  BinOp* Binary(Expr* left, BinaryOperator op, Expr* right) {
    auto* expr = New<BinOp>();
    expr->left = left;
    expr->op = op;
    expr->right = right;
    return expr;
  }
  Stmt* Statement(Expr* value, std::uint32_t line = 1) {
    auto* stmt = New<ExprStmt>();
    stmt->value = value;
    stmt->span.line = line;
    return stmt;
  }

  Arena arena_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_F(PrinterTest, NegativeConstantsBindLikeUnaryMinus) {
  EXPECT_EQ(Print(*Int(-1)), "-1");
  EXPECT_EQ(Print(*Dot(Int(-1), "real")), "(-1).real");
  EXPECT_EQ(Print(*Binary(Int(-1), BinaryOperator::kPow, Int(2))), "(-1) ** 2");
  EXPECT_EQ(Print(*Binary(Int(2), BinaryOperator::kPow, Int(-1))), "2 ** -1");
  EXPECT_EQ(Print(*Binary(Real(-0.0), BinaryOperator::kMult, Real(-2.0, ConstantKind::kComplex))),
            "-0.0 * -2j");
  EXPECT_EQ(Print(*Int(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
}

TEST_F(PrinterTest, NumbersWithoutALiteralAreWrittenAsExpressions) {
  EXPECT_EQ(Print(*Real(kInfinity)), "1e309");
  EXPECT_EQ(Print(*Real(-kInfinity)), "-1e309");
  EXPECT_EQ(Print(*Real(kInfinity, ConstantKind::kComplex)), "1e309j");
  EXPECT_EQ(Print(*Real(std::nan(""))), "(1e309 - 1e309)");
  EXPECT_EQ(Print(*Real(-std::nan(""), ConstantKind::kComplex)), "(1e309j - 1e309j)");
}

TEST_F(PrinterTest, FloatsAreWrittenShortestAndStayFloats) {
  EXPECT_EQ(Print(*Real(1)), "1.0");
  EXPECT_EQ(Print(*Real(0.1)), "0.1");
  EXPECT_EQ(Print(*Real(1e22)), "1e+22");
  EXPECT_EQ(Print(*Real(5e-324)), "5e-324");
  EXPECT_EQ(Print(*Dot(Real(1), "real")), "(1.0).real");
}

TEST_F(PrinterTest, AStringIsAlwaysOneLineOfAscii) {
  EXPECT_EQ(Print(*Str("a\nb\r\t\\'\x7F\x01")), R"("a\nb\r\t\\'\x7f\x01")");
  EXPECT_EQ(Print(*Str("'\"")), R"('\'"')");
  EXPECT_EQ(Print(*Str("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xED\xA0\x80 \xE2\x80\xA8")),
            R"('\xe9 \u20ac \U0001f600 \ud800 \u2028')");
  EXPECT_EQ(Print(*Str(std::string_view("\0\xFF'", 3), ConstantKind::kBytes)), R"(b"\x00\xff'")");
}

TEST_F(PrinterTest, TextThatIsNotUtf8DoesNotReadPastItsEnd) {
  EXPECT_EQ(Print(*Str("\xE2\x82")).front(), '\'');
  EXPECT_EQ(Print(*Str("\x80")), R"('\x80')");
}

TEST_F(PrinterTest, NamesSpelledLikeKeywordsAreWrittenInLettersThatNormaliseToThem) {
  EXPECT_EQ(Print(*Var("if")),
            "\xF0\x9D\x90\xA2"
            "f");
  EXPECT_EQ(Print(*Dot(Var("x"), "None")),
            "x.\xF0\x9D\x90\x8D"
            "one");
  EXPECT_EQ(Print(*Var("match")), "match");
}

TEST_F(PrinterTest, AnEmptySetDisplayEvaluatesToAnEmptySet) {
  EXPECT_EQ(Print(*New<Set>()), "{*()}");
}

TEST_F(PrinterTest, AFieldWithoutItsStringIsPrintedAsOne) {
  auto* field = New<FormattedValue>();
  field->value = Var("x");
  field->conversion = 'r';
  EXPECT_EQ(Print(*field), "f'{x!r}'");
}

TEST_F(PrinterTest, AnEmptyBlockIsPrintedAsPass) {
  auto* loop = New<While>();
  loop->test = Var("x");
  loop->span.line = 4;
  const PrintedSource printed = Print(ListOf<Stmt>({loop}));
  EXPECT_EQ(printed.text, "while x:\n    pass\n");
  EXPECT_EQ(printed.source_lines, (std::vector<std::uint32_t>{4, 0}));
}

TEST_F(PrinterTest, AChainOfAMillionOperatorsDoesNotOverflowTheStack) {
  Expr* chain = Var("a");
  for (int i = 0; i < 1'000'000; ++i) chain = Binary(chain, BinaryOperator::kAdd, Var("a"));
  EXPECT_EQ(Print(*chain).size(), 4'000'001u);
  chain = Var("a");
  for (int i = 0; i < 1'000'000; ++i) chain = Dot(chain, "b");
  EXPECT_EQ(Print(*chain).size(), 2'000'001u);
}

TEST_F(PrinterTest, AChainOfElifDoesNotOverflowTheStack) {
  List<Stmt*> orelse;
  for (int i = 0; i < 100'000; ++i) {
    auto* branch = New<If>();
    branch->test = Var("a");
    branch->body = ListOf<Stmt>({Statement(Var("b"))});
    branch->orelse = orelse;
    orelse = ListOf<Stmt>({branch});
  }
  EXPECT_EQ(Print(orelse).source_lines.size(), 200'000u);
}

TEST_F(PrinterTest, TheLineMapNamesTheAuthorsLines) {
  auto* decorator = Var("d");
  decorator->span.line = 3;
  auto* function = New<FunctionDef>();
  function->name = "f";
  function->args = arena_.New<Arguments>();
  function->decorator_list = ListOf<Expr>({decorator});
  function->body = ListOf<Stmt>({Statement(Str("two\nlines"), 6), Statement(Var("x"), 9)});
  function->span.line = 4;
  const PrintedSource printed = Print(ListOf<Stmt>({function}), 2);
  EXPECT_EQ(printed.text,
            "        @d\n        def f():\n            'two\\nlines'\n            x\n");
  EXPECT_EQ(printed.source_lines, (std::vector<std::uint32_t>{3, 4, 6, 9}));
}

}  // namespace
}  // namespace caisson::python
