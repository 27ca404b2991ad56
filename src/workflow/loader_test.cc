// SPDX-License-Identifier: Apache-2.0
#include "workflow/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "errors/ir.h"
#include "errors/policy.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::workflow {
namespace {

json::Value Node(int i) {
  return json::Object{{"kind", "builtin"},
                      {"id", "n" + std::to_string(i)},
                      {"type", "NoOpTaskNode"},
                      {"config", json::Object{}}};
}

json::Value Chain(int length) {
  json::Array nodes, edges;
  edges.emplace_back(json::Object{{"source", std::string(kStart)}, {"target", "n0"}});
  for (int i = 0; i < length; ++i) {
    nodes.push_back(Node(i));
    if (i > 0) {
      edges.emplace_back(json::Object{{"source", "n" + std::to_string(i - 1)},
                                      {"target", "n" + std::to_string(i)}});
    }
  }
  return json::Object{{"entrypoint", "n0"}, {"nodes", nodes}, {"edges", edges}};
}

TEST(Loader, TakesAHundredThousandNodes) {
  const std::string text = json::Write(Chain(100'000)).value_or("");
  const LoadResult loaded = LoadIr(std::string_view(text));
  ASSERT_NE(loaded.graph, nullptr);
  EXPECT_EQ(loaded.graph->nodes.size(), 100'000u);
  EXPECT_EQ(loaded.graph->edges.size(), 100'000u);
}

TEST(Loader, CollectsErrorsWithoutBound) {
  json::Value document = Chain(1000);
  for (json::Value& node : document.mutable_object().FindMutable("nodes")->mutable_array()) {
    node.mutable_object().Set("unknown", 1);
  }
  const LoadResult loaded = LoadIr(document);
  EXPECT_EQ(loaded.graph, nullptr);
  EXPECT_EQ(loaded.diagnostics.size(), 200u) << "form errors are cut off";
}

TEST(Loader, ReportsEveryUnknownNode) {
  json::Value document = Chain(10);
  for (json::Value& edge : document.mutable_object().FindMutable("edges")->mutable_array()) {
    edge.mutable_object().Set("target", "nowhere");
  }
  const LoadResult loaded = LoadIr(document);
  EXPECT_EQ(loaded.diagnostics.size(), 10u);
  for (const Diagnostic& each : loaded.diagnostics) EXPECT_EQ(each.code, errors::kIrUnknownNode);
}

TEST(Loader, PolicyCanBeOffForTrustedSources) {
  json::Value document = Chain(1);
  document.mutable_object().FindMutable("nodes")->mutable_array()[0].mutable_object().Set(
      "type", "PostgresNode");
  EXPECT_EQ(LoadIr(document).diagnostics.at(0).code, errors::kPolicyNodeRestricted);
  EXPECT_NE(LoadIr(document, {.enforce_node_policy = false}).graph, nullptr);
}

TEST(Loader, CapabilitiesDependOnTheRuntime) {
  json::Value document = Chain(1);
  document.mutable_object().FindMutable("nodes")->mutable_array().emplace_back(
      json::Object{{"kind", "code"}, {"id", "c"}, {"body", "return {**state}"}});
  EXPECT_EQ(LoadIr(document).graph, nullptr);
  EXPECT_NE(LoadIr(document, {.runtimes = {.all = CodeRuntime::kCPython}}).graph, nullptr);
}

// The IRs of the corpus, written again, give the same graph and the same bytes.
TEST(Loader, RoundTripsTheCorpus) {
  const std::filesystem::path root =
      std::filesystem::path(CAISSON_SOURCE_DIR) / "tests" / "corpora" / "workflows";
  int loaded_count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto answer = json::Read(text);
    ASSERT_TRUE(answer) << entry.path();
    const json::Value* ir = answer->Find("ir");
    if (ir == nullptr) continue;
    const LoadResult loaded = LoadIr(*ir);
    ASSERT_NE(loaded.graph, nullptr) << entry.path() << loaded.diagnostics.at(0).message;
    EXPECT_EQ(json::Write(ToJson(*loaded.graph)).value_or(""), json::Write(*ir).value_or("?"));
    const std::string bytes = CanonicalBytes(*loaded.graph).value_or("");
    EXPECT_EQ(bytes, CanonicalBytes(*LoadIr(std::string_view(bytes)).graph).value_or("?"));
    ++loaded_count;
  }
  EXPECT_GE(loaded_count, 10);
}

TEST(Loader, DeepConfigIsNoTrouble) {
  std::string text =
      R"({"entrypoint":"a","nodes":[{"kind":"builtin","id":"a","type":"NoOpTaskNode",)"
      R"("config":{"x":)" +
      std::string(900, '[') + std::string(900, ']') + "}}]}";
  EXPECT_NE(LoadIr(std::string_view(text)).graph, nullptr);
}

}  // namespace
}  // namespace caisson::workflow
