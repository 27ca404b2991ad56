// SPDX-License-Identifier: Apache-2.0
#include "python/parser.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace caisson::python {
namespace {

std::string Repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

const Expr* FirstExpr(const Tree& tree) { return IsA<ExprStmt>(tree.module().body[0])->value; }

std::string ErrorOf(std::string_view source, const ParseOptions& options = {}) {
  const auto tree = Parse(source, options);
  return tree ? "accepted" : tree.error().message;
}

bool IsTooDeep(std::string_view source) {
  const auto tree = Parse(source);
  return !tree && tree.error().type == SyntaxError::Type::kTooDeep;
}

// ---- ownership ----

TEST(Parser, TreesSurviveBeingMoved) {
  auto parsed = Parse("x.y");
  ASSERT_TRUE(parsed.has_value());
  Tree tree = std::move(*parsed);
  const Tree moved = std::move(tree);
  const auto* attribute = IsA<Attribute>(FirstExpr(moved));
  ASSERT_NE(attribute, nullptr);
  EXPECT_EQ(attribute->attr, "y");
  EXPECT_EQ(IsA<Name>(attribute->value)->id, "x");
  EXPECT_EQ(moved.source(), "x.y");
}

TEST(Parser, KeepsTheSourceAsWritten) {
  const auto tree = Parse("a\r\nb\rc");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->source(), "a\r\nb\rc");
  EXPECT_EQ(tree->module().body.size(), 3u);
}

TEST(Parser, DoesNotNeedTheCallersBuffer) {
  std::string source = "name = 'value'";
  const auto tree = Parse(source);
  source.assign(source.size(), '#');
  ASSERT_TRUE(tree.has_value());
  const auto* assign = IsA<Assign>(tree->module().body[0]);
  EXPECT_EQ(IsA<Name>(assign->targets[0])->id, "name");
  EXPECT_EQ(IsA<Constant>(assign->value)->text, "value");
}

// ---- values ----

TEST(Parser, IntegersOfAnySizeKeepTheirValue) {
  const auto big = [](std::string_view source) {
    const auto tree = Parse(source);
    const auto* constant = IsA<Constant>(FirstExpr(*tree));
    return constant->constant == ConstantKind::kBigInt ? std::string(constant->text)
                                                       : std::to_string(constant->integer);
  };
  EXPECT_EQ(big("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(big("9223372036854775808"), "8000000000000000");
  EXPECT_EQ(big("0xFFFF_FFFF_FFFF_FFFF"), "ffffffffffffffff");
  EXPECT_EQ(big("0b1" + std::string(64, '0')), "10000000000000000");
  EXPECT_EQ(big("0o1" + std::string(24, '0')), "1" + std::string(18, '0'));
  EXPECT_EQ(big("1" + std::string(30, '0')), "c9f2c9cd04674edea40000000");
  EXPECT_EQ(big("0x" + std::string(10000, 'f')), std::string(10000, 'f'));
}

TEST(Parser, DecimalIntegersHaveTheDigitLimitOfCPython) {
  EXPECT_EQ(ErrorOf(std::string(4300, '9')), "accepted");
  EXPECT_NE(ErrorOf(std::string(4301, '9')).find("value has 4301 digits"), std::string::npos);
  EXPECT_EQ(ErrorOf("0x" + std::string(4301, '9')), "accepted");
}

TEST(Parser, IdentifiersAreNormalised) {
  const auto tree = Parse("\xEF\xAC\x81");  // LATIN SMALL LIGATURE FI
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(IsA<Name>(FirstExpr(*tree))->id, "fi");
  EXPECT_EQ(FirstExpr(*tree)->span, (SourceSpan{1, 0, 1, 3}));
}

TEST(Parser, LoneSurrogatesKeepTheirThreeBytes) {
  const auto tree = Parse(R"("\ud83d\ude00")");
  EXPECT_EQ(IsA<Constant>(FirstExpr(*tree))->text, "\xED\xA0\xBD\xED\xB8\x80");
}

// ---- encodings ----

TEST(Parser, FilesHaveByteOrderMarksAndCookies) {
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBFx = 1"), "accepted");
  EXPECT_EQ(ErrorOf("# coding: latin-1\nx\xE9 = 1"), "accepted");
  EXPECT_EQ(ErrorOf("\n# -*- coding: ISO_8859_1 -*-\nx\xE9 = 1"), "accepted");
  EXPECT_EQ(ErrorOf("# coding: ascii\nx = 1"), "accepted");
  EXPECT_EQ(ErrorOf("# coding: ascii\nx\xC3\xA9 = 1"),
            "'ascii' codec can't decode byte 0xc3 in position 17: ordinal not in range(128)");
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF# coding: latin-1\n"), "encoding problem: iso-8859-1 with BOM");
  EXPECT_EQ(ErrorOf("# coding: klingon\n"), "unknown encoding: klingon");
  EXPECT_EQ(ErrorOf("# coding: cp1252\n"),
            "the encoding cp1252 is not supported: save the file as UTF-8");
  EXPECT_EQ(ErrorOf("a\nb\n# coding: klingon\n"), "accepted");
  EXPECT_EQ(ErrorOf("a\n# coding: klingon\n"), "accepted");
}

TEST(Parser, TextHasNeither) {
  const ParseOptions text{.is_text = true};
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBFx = 1", text), "invalid non-printable character U+FEFF");
  EXPECT_EQ(ErrorOf("# coding: klingon\nx = '\xC3\xA9'", text), "accepted");
}

TEST(Parser, SourceThatIsNotUtf8IsRefusedWithItsPlace) {
  const auto tree = Parse("a = 1\nb\xE9 = 2\n");
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().message,
            "(unicode error) 'utf-8' codec can't decode byte 0xe9 in position 1: unexpected end of "
            "data");
  EXPECT_EQ(tree.error().span.line, 2u);
  EXPECT_EQ(tree.error().span.column, 1u);
  EXPECT_NE(ErrorOf("# \xED\xA0\x80"), "accepted");
}

// ---- bounds ----

TEST(Parser, ThreeThousandLevelsOfAnythingEndInADiagnostic) {
  for (const auto& [open, middle, close] : {std::array<std::string_view, 3>{"-", "1", ""},
                                            {"not ", "1", ""},
                                            {"~", "1", ""},
                                            {"lambda: ", "1", ""},
                                            {"a if b else ", "c", ""},
                                            {"a ** ", "b", ""}}) {
    EXPECT_TRUE(IsTooDeep(Repeat(open, 3000) + std::string(middle))) << open;
    EXPECT_TRUE(IsTooDeep(Repeat(open, 100000) + std::string(middle))) << open;
    EXPECT_EQ(ErrorOf(Repeat(open, 2900) + std::string(middle)), "accepted") << open;
  }
  for (const auto& [first, more] :
       {std::pair{"a", "+a"}, {"a", ".a"}, {"a", "()"}, {"a", "[0]"}, {"a", "@a"}}) {
    EXPECT_TRUE(IsTooDeep(first + Repeat(more, 3000))) << more;
    EXPECT_TRUE(IsTooDeep(first + Repeat(more, 100000))) << more;
    EXPECT_EQ(ErrorOf(first + Repeat(more, 2900)), "accepted") << more;
  }
  EXPECT_TRUE(IsTooDeep("if a: b\n" + Repeat("elif a: b\n", 3000)));
  EXPECT_EQ(ErrorOf("if a: b\n" + Repeat("elif a: b\n", 2900)), "accepted");
}

TEST(Parser, ThePlaceOfWhatIsTooDeepIsGiven) {
  const auto tree = Parse("x = 1\ny = a" + Repeat("+a", 4000));
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().span.line, 2u);
}

TEST(Parser, BracketsIndentsAndFStringsHaveTheLimitsOfCPython) {
  for (const auto& [open, close] :
       {std::pair{"(", ")"}, {"[", "]"}, {"{", "}"}, {"f(", ")"}, {"a[", "]"}, {"{a: ", "}"}}) {
    EXPECT_EQ(ErrorOf(Repeat(open, 3000) + "1" + Repeat(close, 3000)),
              "too many nested parentheses");
    EXPECT_EQ(ErrorOf(Repeat(open, 100000)), "too many nested parentheses");
    EXPECT_EQ(ErrorOf(Repeat(open, 200) + "1" + Repeat(close, 200)), "accepted");
  }
  std::string blocks;
  for (int i = 0; i < 3000; ++i) blocks += std::string(i, ' ') + "if a:\n";
  EXPECT_EQ(ErrorOf(blocks), "too many levels of indentation");
  EXPECT_EQ(ErrorOf(Repeat("f'{", 3000) + "1" + Repeat("}'", 3000)), "too many nested f-strings");
}

TEST(Parser, LongFlatSourceIsNoProblem) {
  for (const auto& [first, more] : {std::pair{"a", " and a"},
                                    {"a", " < a"},
                                    {"'a'", " 'a'"},
                                    {"a", ", a"},
                                    {"a", "; a"},
                                    {"a = b", " = b"}}) {
    EXPECT_EQ(ErrorOf(first + Repeat(more, 100000)), "accepted") << more;
  }
  EXPECT_EQ(ErrorOf(Repeat("x = [1, {2: 'three'}]\n", 20000)), "accepted");
}

TEST(Parser, ErrorsFarDownALongFileAreFoundSoon) {
  EXPECT_EQ(ErrorOf(Repeat("if a:\n  b\n", 100000) + "x y"), "invalid syntax");
  EXPECT_EQ(ErrorOf("class C:\n" + Repeat(" def f(self): return self.x\n", 20000) + " x y"),
            "invalid syntax");
}

TEST(Parser, NestedMistakesAreNotExponential) {
  for (const auto& [open, close] : {std::pair{"(", ")"},
                                    {"[", "]"},
                                    {"{", "}"},
                                    {"f(", ")"},
                                    {"a[", "]"},
                                    {"{a: ", "}"},
                                    {"(lambda a=", ")"},
                                    {"f(a=", ")"},
                                    {"(a if ", " else b)"}}) {
    const std::string source = Repeat(open, 190) + "a = b = c" + Repeat(close, 190);
    EXPECT_NE(ErrorOf(source), "accepted") << open;
    EXPECT_NE(ErrorOf(Repeat(open, 190)), "accepted") << open;
  }
  for (const std::string_view line : {"try:\n", "if a:\n", "with a:\n", "for a in b:\n"}) {
    std::string source;
    for (int i = 0; i < 98; ++i) source += std::string(i, ' ') + std::string(line);
    EXPECT_NE(ErrorOf(source + std::string(98, ' ') + "x y"), "accepted") << line;
  }
}

TEST(Parser, SourceBeyondTheSizeLimitIsRefused) {
  const auto tree = Parse("x = 1", {.max_bytes = 4});
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().type, SyntaxError::Type::kTooLarge);
  EXPECT_EQ(ErrorOf("x = 1", {.max_bytes = 5}), "accepted");
}

TEST(Parser, EveryPrefixOfASourceIsParsedOrRefused) {
  constexpr std::string_view kSource =
      "@d\nasync def f[T](a, /, *b: int, c=(1, 'x\\x41'), **d) -> f'{a!r:>{w}}':\n"
      "\tmatch a:\n\t\tcase {'k': [x, *_], **r} if x: return lambda: {**a, 0x1F: -1.5j}\n"
      "\ttry: await b\n\texcept* E as e: raise e from None\n";
  for (std::size_t size = 0; size <= kSource.size(); ++size) {
    const auto tree = Parse(kSource.substr(0, size));
    EXPECT_TRUE(tree.has_value() || !tree.error().message.empty()) << size;
  }
  EXPECT_TRUE(Parse(kSource).has_value()) << ErrorOf(kSource);
}

TEST(Parser, EveryByteIsParsedOrRefusedAnywhere) {
  constexpr std::string_view kSource = "def f(a): return f'{a:>4}' + \"b\" if [1, 0x2] else None\n";
  for (std::size_t at = 0; at < kSource.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string source(kSource);
      source[at] = static_cast<char>(byte);
      const auto tree = Parse(source);
      EXPECT_TRUE(tree.has_value() || !tree.error().message.empty()) << source;
    }
  }
}

}  // namespace
}  // namespace caisson::python
