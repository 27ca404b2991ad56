// SPDX-License-Identifier: Apache-2.0
// The corpus: workflows with the peer's answers, its IR or its first error and that error's line.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "json/reader.h"
#include "json/writer.h"
#include "workflow/compiler.h"
#include "workflow/ir.h"

namespace caisson::workflow {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string PeerText(const Diagnostic& diagnostic) {
  if (diagnostic.peer_line == 0) return diagnostic.message;
  return "line " + std::to_string(diagnostic.peer_line) + ": " + diagnostic.message;
}

std::string Canonical(const json::Value& value) {
  return json::Write(value, {.indent = 1, .sort_keys = true}).value_or("(not JSON)");
}

class Corpus : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Corpus, GivesThePeersAnswer) {
  const CompileResult result = Compile(ReadFile(GetParam()));
  std::filesystem::path answer = GetParam();
  const Result<json::Value> peer = json::Read(ReadFile(answer.replace_extension(".json")));
  ASSERT_TRUE(peer) << answer;
  if (peer->Find("ok")->as_bool()) {
    ASSERT_TRUE(result.ok()) << result.diagnostics.front().message;
    EXPECT_EQ(Canonical(ToJson(*result.graph)), Canonical(*peer->Find("ir")));
  } else {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(PeerText(result.diagnostics.front()), peer->Find("error")->as_string());
    EXPECT_FALSE(result.diagnostics.front().peer_accepts);
  }
}

std::vector<std::filesystem::path> Workflows() {
  std::vector<std::filesystem::path> paths;
  const auto directory = std::filesystem::path(CAISSON_TESTS_DIR) / "corpora" / "workflows";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".py") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Workflows, Corpus, testing::ValuesIn(Workflows()),
                         [](const auto& param) { return param.param.stem().string(); });

}  // namespace
}  // namespace caisson::workflow
