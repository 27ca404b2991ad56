// SPDX-License-Identifier: Apache-2.0
#include "block/check.h"

#include <gtest/gtest.h>

#include <string>

#include "block/runtimes.h"

namespace caisson::block {
namespace {

// "line:column code" per finding, '!' in front of errors.
std::string Findings(std::string_view source, std::optional<RuntimeId> id = RuntimeId::kCpython) {
  std::string all;
  for (const Finding& finding : CheckScript(ReadScript(source), id)) {
    if (!all.empty()) all += ' ';
    if (finding.severity == Severity::kError) all += '!';
    all += std::to_string(finding.span.line) + ":" + std::to_string(finding.span.column) + ":" +
           std::string(finding.code.name.substr(6));
  }
  return all;
}

std::string Imports(std::string_view source) {
  std::string all;
  for (const ImportedModule& import : ReadScript(source).imports) {
    all += (all.empty() ? "" : " ") + import.name + (import.certain ? "" : "?");
  }
  return all;
}

TEST(Check, FindsNothingWrongWithAGoodScript) {
  EXPECT_EQ(Findings("import math\nimport numpy as np\nfrom sklearn import tree\ndone(1)\n"), "");
}

TEST(Check, NamesSyntaxErrors) {
  EXPECT_EQ(Findings("x = (1\ndone(x)"), "!1:4:syntax");
  EXPECT_EQ(Findings("def f():\nreturn 1"), "!2:0:syntax");
}

TEST(Check, NamesWhatOnlyTheCompilerRefuses) {
  EXPECT_EQ(Findings("if not documents:\n    return\ndone(1)"), "!2:4:syntax");
  EXPECT_EQ(Findings("class A:\n    return 1\ndone(1)"), "!2:4:syntax");
  EXPECT_EQ(Findings("yield 1\ndone(1)"), "!1:0:syntax");
  EXPECT_EQ(Findings("break\ncontinue\ndone(1)"), "!1:0:syntax !2:0:syntax");
  EXPECT_EQ(Findings("for x in y:\n    def f():\n        break\ndone(1)"), "!3:8:syntax");
  EXPECT_EQ(Findings("nonlocal x\ndone(1)"), "!1:0:syntax");
  EXPECT_EQ(Findings("def f():\n    await g()\ndone(1)"), "!2:4:syntax");
  EXPECT_EQ(Findings("def f():\n    for x in y:\n        if x:\n            continue\n"
                     "        break\n    else:\n        return 1\n    yield 2\n"
                     "async def g():\n    await f()\n    async with h() as i:\n        pass\n"
                     "done(lambda: (yield))"),
            "");
}

TEST(Check, WarnsOfAwaitAtTheTopLevel) {
  EXPECT_EQ(Findings("x = await f()\ny = await f()\ndone(x)"), "1:4:top_level_await");
  EXPECT_EQ(Findings("async for x in f():\n    pass\ndone(1)"), "1:0:top_level_await");
  EXPECT_EQ(Findings("done([x async for x in f()])"), "1:18:top_level_await");
}

TEST(Check, WarnsWhenDoneIsMissing) {
  EXPECT_EQ(Findings("x = 1"), "0:0:no_done");
  EXPECT_EQ(Findings("def done_later(): pass"), "0:0:no_done");
  EXPECT_EQ(Findings("f(done)"), "");
  EXPECT_EQ(Findings("exec('do' + 'ne(1)')"), "");
}

TEST(Check, NamesImportsThatTheRuntimeLacks) {
  EXPECT_EQ(Findings("import rasterio\ndone(1)"), "!1:0:library_unavailable");
  EXPECT_EQ(Findings("import rasterio\ndone(1)", RuntimeId::kNative), "");
  EXPECT_EQ(Findings("import rasterio\ndone(1)", std::nullopt), "");
  const auto findings =
      CheckScript(ReadScript("from geopandas.tools import x\ndone(1)"), RuntimeId::kCpython);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].message,
            "the runtime cpython does not have 'geopandas' (shapely, pyproj and pyogrio are native "
            "code that the artifact does not hold)");
  EXPECT_EQ(findings[0].hint, "it is in native, oci");
}

TEST(Check, NamesRefusedAndUnknownImports) {
  EXPECT_EQ(Findings("import js, ctypes\nimport duckdb\ndone(1)"),
            "!1:0:import_refused !1:0:import_refused !2:0:import_refused");
  EXPECT_EQ(Findings("import joblib\ndone(1)"), "!1:0:import_refused");
  EXPECT_EQ(Findings("import tensorflow\ndone(1)"), "!1:0:unknown_library");
  EXPECT_EQ(Findings("import _thread\nfrom __future__ import annotations\ndone(1)"), "");
}

TEST(Check, KnowsTheStandardLibraryOfEachRuntime) {
  EXPECT_EQ(Findings("import cgi\ndone(1)"), "!1:0:library_unavailable");
  EXPECT_EQ(Findings("import cgi\ndone(1)", RuntimeId::kNative), "");
  EXPECT_EQ(Findings("import annotationlib\ndone(1)", RuntimeId::kNative),
            "!1:0:library_unavailable");
  EXPECT_EQ(Findings("import annotationlib\ndone(1)"), "");
}

TEST(Check, OnlyWarnsWhereAnImportMayNotMatter) {
  for (const char* source :
       {"try:\n    import rasterio\nexcept ImportError:\n    pass\ndone(1)",
        "try:\n    import rasterio\nexcept (KeyError, ModuleNotFoundError):\n    pass\ndone(1)",
        "try:\n    import rasterio\nexcept:\n    pass\ndone(1)",
        "if documents:\n\n\n\n    import rasterio\ndone(1)",
        "def f():\n    import rasterio\ndone(1)",
        "try:\n    pass\nexcept KeyError:\n    import rasterio\ndone(1)",
        "match x:\n    case 1:\n        import rasterio\ndone(1)"}) {
    EXPECT_EQ(Findings(source).find('!'), std::string::npos) << source;
    EXPECT_NE(Findings(source).find("library_unavailable"), std::string::npos) << source;
  }
  EXPECT_EQ(Findings("try:\n    import rasterio\nexcept KeyError:\n    pass\ndone(1)"),
            "!2:4:library_unavailable");
  EXPECT_EQ(Findings("with a:\n    import rasterio\ndone(1)"), "!2:4:library_unavailable");
}

TEST(Check, NamesSyntaxThatARuntimeIsTooOldFor) {
  for (const char* source :
       {"type X = int", "def f[T](x: T): pass", "class A[T]: pass", "f'{a['b']}'", "f'{'x'}'",
        R"(f"{'\n'.join(a)}")", "f'{a  # comment\n}'", "f'{\na}'", R"(f'{f'{a}'}')",
        R"(f"{a["b"]:{c["d"]}}")"}) {
    const std::string script = std::string(source) + "\ndone(1)\n";
    EXPECT_EQ(Findings(script), "") << source;
    EXPECT_NE(Findings(script, RuntimeId::kNative).find("newer_syntax"), std::string::npos)
        << source;
  }
  for (const char* source : {R"(f"{a['b']}")", R"(f'{a["b"]}\n')", "f'''{a\n['b']}'''",
                             R"(f"{f'{a}'}")", R"(f"{a:{'>'}10}\\")", R"(f'{{}}' "'")",
                             R"(f"{a!r}" + f'{b}')", R"("#" f"{a}#")", R"(rf"\d{a}")"}) {
    const std::string script = std::string(source) + "\ndone(1)\n";
    EXPECT_EQ(Findings(script, RuntimeId::kNative), "") << source;
  }
}

TEST(ScriptFacts, ListsImportsInTheOrderOfTheSource) {
  EXPECT_EQ(Imports("import numpy.linalg as n, os\nfrom pandas.io import x\nfrom . import y\n"
                    "from .z import w\nclass A:\n    import math\nif a:\n    import json\n"),
            "numpy os pandas math json?");
  EXPECT_EQ(ImportNames(ReadScript("import a, b\nimport a.c")),
            (std::vector<std::string>{"a", "b"}));
}

TEST(ScriptFacts, GuessesTheImportsOfWhatItCannotParse) {
  EXPECT_EQ(Imports("import numpy\nx = t'{a}'\n  from pandas.io import y\nimported = 1\nfrom x"),
            "numpy? pandas? x?");
  EXPECT_EQ(Imports("import \nfrom\n("), "");
}

class Double final : public isolate::ScriptRuntime {
 public:
  Result<isolate::ScriptOutcome> Run(const isolate::ScriptJob&, isolate::ScriptSink&,
                                     std::stop_token) override {
    return isolate::ScriptOutcome{};
  }
  json::Value Describe() const override { return {}; }
};

std::string Chosen(const RuntimeSet& set, std::string_view wish, std::string_view source) {
  auto chosen = ChooseRuntime(set, wish, ReadScript(source));
  return chosen ? std::string(RuntimeName(chosen->id)) : std::string(chosen.error().code.name);
}

TEST(Runtimes, ChoosesByNameAndByImports) {
  Double cpython;
  Double native;
  RuntimeSet set;
  set[RuntimeId::kCpython].runtime = &cpython;
  set[RuntimeId::kNative].runtime = &native;
  set[RuntimeId::kOci].reason = "not here";
  EXPECT_EQ(Chosen(set, "", "import numpy"), "cpython");
  EXPECT_EQ(Chosen(set, "native", "import numpy"), "native");
  EXPECT_EQ(Chosen(set, "oci", ""), "block.runtime_unavailable");
  EXPECT_EQ(Chosen(set, "", "import rasterio"), "block.library_unavailable");
  EXPECT_EQ(Chosen(set, "auto", "import rasterio"), "block.runtime_unavailable");
  set.allow_auto = true;
  EXPECT_EQ(Chosen(set, "auto", "import numpy"), "cpython");
  EXPECT_EQ(Chosen(set, "auto", "import rasterio"), "native");
  EXPECT_EQ(Chosen(set, "auto", "import rasterio\ntype X = int"), "block.library_unavailable");
  EXPECT_EQ(Chosen(set, "auto", "import duckdb"), "block.import_refused");
  EXPECT_EQ(Chosen(set, "auto", "import tensorflow"), "cpython");
  EXPECT_EQ(Chosen(set, "", "import tensorflow"), "cpython");
  set.auto_by_default = true;
  EXPECT_EQ(Chosen(set, "", "import rasterio"), "native");
  set[RuntimeId::kNative].runtime = nullptr;
  EXPECT_EQ(Chosen(set, "", "import rasterio"), "block.library_unavailable");
  set[RuntimeId::kCpython].runtime = nullptr;
  EXPECT_EQ(Chosen(set, "", ""), "block.runtime_unavailable");
}

TEST(Libraries, AreThoseOfTheList) {
  EXPECT_EQ(FindModule("sklearn").library->name, "scikit-learn");
  EXPECT_EQ(FindModule("pylab").library->name, "matplotlib");
  EXPECT_EQ(FindModule("scikit-learn").kind, ModuleKind::kUnknown);
  EXPECT_EQ(PythonMinor(RuntimeId::kCpython), 15);
  EXPECT_EQ(PythonMinor(RuntimeId::kOci), PythonMinor(RuntimeId::kNative));
  for (const Library& library : Libraries()) {
    for (const RuntimeId id : kRuntimeIds) {
      EXPECT_NE(library.IsIn(id), !library.missing[static_cast<std::size_t>(id)].empty())
          << library.name;
    }
  }
}

}  // namespace
}  // namespace caisson::block
