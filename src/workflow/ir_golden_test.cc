// SPDX-License-Identifier: Apache-2.0
// tests/golden/{schema,body,ir}/<case>/: an input and expected.json, all that is said of it.
// bad_... is refused, warn_... passes with a warning, ok_... passes. With CAISSON_BLESS=1 in the
// environment the expectations are rewritten instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "json/writer.h"
#include "python/parser.h"
#include "workflow/body.h"
#include "workflow/body_check.h"
#include "workflow/body_text.h"
#include "workflow/loader.h"
#include "workflow/schema.h"

namespace caisson::workflow {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

json::Value DiagnosticsJson(const std::vector<Diagnostic>& diagnostics) {
  json::Array items;
  for (const Diagnostic& each : diagnostics) {
    json::Object item{{"severity", each.severity == Severity::kError ? "error" : "warning"},
                      {"code", each.code.name},
                      {"message", each.message}};
    if (!each.hint.empty()) item.Set("hint", each.hint);
    if (!each.path.empty()) item.Set("path", each.path);
    if (each.span.known()) {
      item.Set("span", std::to_string(each.span.line) + ":" + std::to_string(each.span.column) +
                           "-" + std::to_string(each.span.end_line) + ":" +
                           std::to_string(each.span.end_column));
    }
    if (each.severity == Severity::kError) {
      if (each.peer_accepts) {
        item.Set("peer_accepts", true);
      } else {
        item.Set("peer_line", each.peer_line);
      }
    }
    items.emplace_back(std::move(item));
  }
  return items;
}

bool HasErrors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(
      diagnostics, [](const Diagnostic& each) { return each.severity == Severity::kError; });
}

struct Report {
  json::Object json;
  bool refused;
  bool silent;
};

// Class S of the file, and the grammar of all schema classes in it.
Report ReportSchema(const fs::path& folder) {
  const auto tree = python::Parse(ReadFile(folder / "schema.py"), {.is_text = true});
  if (!tree) return {{{"syntax", tree.error().message}}, true, false};
  std::vector<Diagnostic> diagnostics;
  for (const python::Stmt* stmt : tree->module().body) {
    const auto* cls = python::IsA<python::ClassDef>(stmt);
    if (cls != nullptr && IsSchemaClass(*cls)) Schemas::CheckGrammar(*cls, diagnostics);
  }
  const auto schema = Schemas(tree->module()).Lower("S", diagnostics);
  json::Object report{{"diagnostics", DiagnosticsJson(diagnostics)}};
  if (schema) report.Set("schema", *schema);
  return {std::move(report), HasErrors(diagnostics) || !schema, diagnostics.empty()};
}

const python::FunctionDef* FindRun(const python::Module& module) {
  const auto* cls = python::IsA<python::ClassDef>(module.body.front());
  for (const python::Stmt* member : cls->body) {
    if (member->kind == python::StmtKind::kFunctionDef ||
        member->kind == python::StmtKind::kAsyncFunctionDef) {
      return python::As<python::FunctionDef>(member);
    }
  }
  return nullptr;
}

// The run function of the file's one class, with the fields `labels` and `threshold`.
Report ReportBody(const fs::path& folder) {
  const auto tree = python::Parse(ReadFile(folder / "body.py"), {.is_text = true});
  if (!tree) return {{{"syntax", tree.error().message}}, true, false};
  const python::FunctionDef* run = FindRun(tree->module());
  const std::vector<std::string> injected = {"labels", "threshold"};
  std::vector<Diagnostic> diagnostics;
  CheckBody(*run, "n", injected, {}, diagnostics);
  json::Object report{{"diagnostics", DiagnosticsJson(diagnostics)}};
  const bool refused = HasErrors(diagnostics);
  if (!refused) {
    const BodyTextResult text = BodyText(*run, SourceLines(tree->source()));
    report.Set("body", text.text);
    report.Set("first_line", text.first_line);
    const auto runnable = PrepareBody({"n", {}, injected, text.text});
    EXPECT_TRUE(runnable) << "a body that passed cannot be prepared";
    if (runnable) {
      report.Set("runnable", runnable->source);
      json::Array lines;
      for (const std::uint32_t line : runnable->body_lines) lines.emplace_back(line);
      report.Set("body_lines", std::move(lines));
    }
  }
  return {std::move(report), refused, diagnostics.empty()};
}

Report ReportIr(const fs::path& folder) {
  const LoadResult loaded = LoadIr(std::string_view(ReadFile(folder / "ir.json")));
  json::Object report{{"diagnostics", DiagnosticsJson(loaded.diagnostics)}};
  if (loaded.graph) {
    report.Set("content_id", ContentId(*loaded.graph).value_or("none"));
    report.Set("ir", ToJson(*loaded.graph));
  }
  return {std::move(report), loaded.graph == nullptr, loaded.diagnostics.empty()};
}

Report ReportOf(const fs::path& folder) {
  if (fs::exists(folder / "schema.py")) return ReportSchema(folder);
  if (fs::exists(folder / "body.py")) return ReportBody(folder);
  return ReportIr(folder);
}

class IrGolden : public testing::TestWithParam<fs::path> {};

TEST_P(IrGolden, SaysWhatIsExpected) {
  const Report report = ReportOf(GetParam());
  const Result<std::string> actual = json::Write(report.json, {.indent = 1});
  ASSERT_TRUE(actual) << actual.error().message;
  const std::string name = GetParam().filename().string();
  EXPECT_EQ(report.refused, name.starts_with("bad_")) << *actual;
  EXPECT_EQ(report.silent, name.starts_with("ok_")) << *actual;
  const fs::path expected = GetParam() / "expected.json";
  if (std::getenv("CAISSON_BLESS") != nullptr) {
    std::ofstream(expected, std::ios::binary) << *actual << '\n';
    return;
  }
  EXPECT_EQ(*actual + '\n', ReadFile(expected)) << "CAISSON_BLESS=1 rewrites the expectation";
}

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const char* area : {"schema", "body", "ir"}) {
    const fs::path root = fs::path(CAISSON_SOURCE_DIR) / "tests" / "golden" / area;
    for (const auto& entry : fs::directory_iterator(root)) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Workflow, IrGolden, testing::ValuesIn(Cases()), [](const auto& param) {
  return param.param.parent_path().filename().string() + "_" + param.param.filename().string();
});

}  // namespace
}  // namespace caisson::workflow
