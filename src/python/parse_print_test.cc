// SPDX-License-Identifier: Apache-2.0
// What sources look like after printing. tests/python/ shows on far more input that the tree stays
// the same; here it is the spelling.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "python/ast_dump.h"
#include "python/parser.h"
#include "python/printer.h"

namespace caisson::python {
namespace {

struct Case {
  std::string_view source;
  std::string_view printed;  // the same as the source when empty
};

// Without the final newline, if there is only one line.
std::string Printed(std::string_view source) {
  const auto parsed = Parse(source, {.is_text = true});
  if (!parsed) return "refused: " + parsed.error().message;
  std::string printed = Print(parsed->module());
  const auto again = Parse(printed, {.is_text = true});
  if (!again) return "refused when printed: " + printed;
  if (DumpAst(&parsed->module(), DumpPositions::kOmit) !=
      DumpAst(&again->module(), DumpPositions::kOmit)) {
    return "another tree when printed: " + printed;
  }
  if (printed.find('\n') == printed.size() - 1) printed.pop_back();
  return printed;
}

void ExpectPrinted(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    EXPECT_EQ(Printed(test.source), test.printed.empty() ? test.source : test.printed);
  }
}

TEST(ParsePrint, KeepsOnlyTheParenthesesThatTheOperatorsNeed) {
  ExpectPrinted({
      {"((a)) + ((b * c))", "a + b * c"},
      {"(a + b) * c"},
      {"a - (b - c)"},
      {"(a - b) - c", "a - b - c"},
      {"(a ** b) ** c"},
      {"a ** (b ** c)", "a ** b ** c"},
      {"-a ** -b"},
      {"(-a) ** b"},
      {"(await a) ** b", "await a ** b"},
      {"(await a).b"},
      {"not (a == b)", "not a == b"},
      {"(not a) == b"},
      {"(a or b) and c"},
      {"a or (b or c)"},
      {"(a < b) < c"},
      {"a < b < c"},
      {"(a if b else c) if d else e"},
      {"a if b else (c if d else e)", "a if b else c if d else e"},
      {"(lambda: a)()"},
      {"(lambda x, *y, z=1, **w: (x, y))", "lambda x, *y, z=1, **w: (x, y)"},
      {"~-+a"},
      {"a if (lambda: b) else c"},
      {"(yield)", "yield"},
      {"x = (yield a, b)", "x = yield a, b"},
      {"f((yield))"},
      {"(a := b)"},
      {"f(a := b, c=(d := e))"},
      {"x[(a := b)]"},
      {"[a := b, c]"},
      {"(a := b, c)", "(a := b), c"},
      {"f(((a := b), c))", "f((a := b, c))"},
  });
}

TEST(ParsePrint, WritesLiteralsInOneSpelling) {
  ExpectPrinted({
      {"0x1F, 0o17, 0b11, 1_000", "31, 15, 3, 1000"},
      {"18446744073709551616", "0x10000000000000000"},
      {"1e400", "1e309"},
      {"1E5, .5, 5., 1e-7, 2J", "1e+05, 0.5, 5.0, 1e-07, 2j"},
      {"1 .real", "(1).real"},
      {"'''a\nb''' \"c\"", "'a\\nbc'"},
      {"\"it's\""},
      {"r'\\d\"' b''[0]", "refused: cannot mix bytes and nonbytes literals"},
      {"rb'\\d'", "b'\\\\d'"},
      {"'\\N{BULLET}\\ud800\u00e9'", "'\\u2022\\ud800\\xe9'"},
      {"u'x', U'x'", "u'x', 'x'"},
      {"...", "..."},
  });
}

TEST(ParsePrint, WritesFStringsThatOlderReadersUnderstandToo) {
  ExpectPrinted({
      {"f'{a}{b!r}{c:>10}{d!s:{e}.{f}}'"},
      {"f'{x=}'", "f'x={x!r}'"},
      {"f'{x:>{y=}}'", "f'{x:>y={y!r}}'"},
      {"f'{{{x}}}'"},
      {"f\"{d['k']}\"", "f'{d[\"k\"]}'"},
      {"f\"it's {d['k']}\"", "f\"it's {d['k']}\""},
      {"f'{d['k']}'", "f'{d[\"k\"]}'"},
      {"f'{\":{}!\"}'", "f'{\"\\x3a\\x7b\\x7d\\x21\"}'"},
      {"f'{ {1: 2} }'", "f'{ {1: 2}}'"},
      {"f'{(lambda: 1)()}'"},
      {"f'{a if b else (lambda: c)}'"},
      {"f'{[lambda: c]}'"},
      {"f'{(a := b)}'"},
      {"f'{a, b}'", "f'{(a, b)}'"},
      {"f'{x:{y:{z}}}'"},
      {"f'{x:=5}{y::}'"},
      {"f'{x:{{y}}{ {z}}a{{w}}}'", "f'{x:{{y}}{ {z}}a{ {w}}}'"},
      {"f'{f'{f'{1}'}'}'", "f'{f\"{f'{1}'}\"}'"},
      {"'a' f'{x}' 'b'", "f'a{x}b'"},
      {"u'a' f'{x}' u'b'"},
      {"u'a' f''"},
      {"f''"},
      {"f'''{\nx}\n'''", "f'{x}\\n'"},
  });
}

TEST(ParsePrint, WritesDisplaysCallsAndSubscripts) {
  ExpectPrinted({
      {"()"},
      {"(a,)", "a,"},
      {"f((a,), ())"},
      {"[*a, b], {*a}, {**a, b: c}"},
      {"[*(a or b)]"},
      {"f(*a or b, **c)"},
      {"f(k=1, *a)", "f(*a, k=1)"},
      {"f(x for x in y)"},
      {"f((x for x in y), 1)"},
      {"[x for x, in y if (lambda: z) if w]"},
      {"{k: v async for k, v in (a if b else c)}"},
      {"x[1:2, ::3, ...]"},
      {"x[1:2]"},
      {"x[:]"},
      {"x[a,]"},
      {"x[*a]"},
      {"x[*a or b, c]"},
      {"x[()]"},
      {"x[(a, b)]", "x[a, b]"},
      {"a.b[c](d).e"},
  });
}

TEST(ParsePrint, WritesSimpleStatements) {
  ExpectPrinted({
      {"a = b, c = d = e, *f"},
      {"a = (*b,)", "a = *b,"},
      {"x: int = yield"},
      {"(x): int"},
      {"x.y: int = a, b"},
      {"x @= a, b"},
      {"del a, (b, c), [d]"},
      {"del (a, b)"},
      {"del ((a)), b", "del a, b"},
      {"raise a from b"},
      {"assert a, (b, c)"},
      {"import a.b.c as d, e"},
      {"from ....a import (b as c, d,)", "from ....a import b as c, d"},
      {"from . import *"},
      {"type X[T: int, *Ts, **P] = T | None"},
      {"\U0001D422f = x.\U0001D422f"},
      {"match(a)\ncase[b]\ntype * c", "match(a)\ncase[b]\ntype * c\n"},
  });
}

TEST(ParsePrint, WritesCompoundStatements) {
  ExpectPrinted({
      {"if a: b\nelif c: d\nelse: e", "if a:\n    b\nelif c:\n    d\nelse:\n    e\n"},
      {"if a:\n  b\nelse:\n  if c: d", "if a:\n    b\nelif c:\n    d\n"},
      {"if (a := b): c", "if a := b:\n    c\n"},
      {"with ((a, b)): c", "with ((a, b)):\n    c\n"},
      {"with (a as b, (c, d) as (e, f),): g", "with a as b, (c, d) as (e, f):\n    g\n"},
      {"with (yield): a", "with (yield):\n    a\n"},
      {"for x, *y in a, b: c\nelse: d", "for x, *y in a, b:\n    c\nelse:\n    d\n"},
      {"try: a\nexcept: b", "try:\n    a\nexcept:\n    b\n"},
      {"try: a\nexcept* (B, C) as d: e\nelse: f\nfinally: g",
       "try:\n    a\nexcept* (B, C) as d:\n    e\nelse:\n    f\nfinally:\n    g\n"},
      {"@a.b(c)\nasync def f[T](a: int, b=1, /, c: int = 2, *, d, e=3) -> x: pass",
       "@a.b(c)\nasync def f[T](a: int, b=1, /, c: int = 2, *, d, e=3) -> x:\n    pass\n"},
      {"def f(*args: *Ts, **kw: int): ...", "def f(*args: *Ts, **kw: int):\n    ...\n"},
      {"class A(B, *C, k=1, **d): x", "class A(B, *C, k=1, **d):\n    x\n"},
      {"class A(): x", "class A:\n    x\n"},
      {"while not a: b", "while not a:\n    b\n"},
  });
}

TEST(ParsePrint, WritesMatchStatements) {
  ExpectPrinted({
      {"match a, b:\n  case x, *_: pass", "match a, b:\n    case [x, *_]:\n        pass\n"},
      {"match (a := b):\n  case _ if c: pass", "match a := b:\n    case _ if c:\n        pass\n"},
      {"match a:\n  case (1 | 2) as x | (y as z): pass", "refused: invalid syntax"},
      {"match a:\n  case (1 | 2) as x: pass", "match a:\n    case 1 | 2 as x:\n        pass\n"},
      {"match a:\n  case (1 as x) | (2 as x): pass",
       "match a:\n    case (1 as x) | (2 as x):\n        pass\n"},
      {"match a:\n  case {'k': -1, b.c: 1 - 2j, **rest}: pass",
       "match a:\n    case {'k': -1, b.c: 1 - 2j, **rest}:\n        pass\n"},
      {"match a:\n  case A.B(1, k=None): pass",
       "match a:\n    case A.B(1, k=None):\n        pass\n"},
  });
}

TEST(ParsePrint, TheLineMapFollowsTheSource) {
  const auto parsed = Parse(
      "x = (\n"
      "  1)\n"
      "\n"
      "@d\n"
      "\n"
      "def f():\n"
      "  '''doc\n"
      "  string'''\n"
      "  try: a\n"
      "  except B: c\n"
      "  else:\n"
      "    d\n"
      "  if e: f\n"
      "  elif g: h; i\n"
      "match j:\n"
      "  case 1: k\n",
      {.is_text = true});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const PrintedSource printed = Print(parsed->module().body);
  EXPECT_EQ(printed.source_lines, (std::vector<std::uint32_t>{1, 4, 6, 7, 9, 9, 10, 10, 12, 12, 13,
                                                              13, 14, 14, 14, 15, 16, 16}))
      << printed.text;
}

}  // namespace
}  // namespace caisson::python
