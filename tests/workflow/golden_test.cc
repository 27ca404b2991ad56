// SPDX-License-Identifier: Apache-2.0
// tests/golden/workflow/<case>/: workflow.py and expected.json, all that the compiler says of it.
// With CAISSON_BLESS=1 in the environment the expectations are rewritten instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "json/writer.h"
#include "report_json.h"

namespace caisson::workflow {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, SaysWhatIsExpected) {
  const CompileResult result = Compile(ReadFile(GetParam() / "workflow.py"));
  const Result<std::string> actual = json::Write(ReportJson(result), {.indent = 1});
  ASSERT_TRUE(actual) << actual.error().message;
  const std::filesystem::path expected = GetParam() / "expected.json";
  if (std::getenv("CAISSON_BLESS") != nullptr) {
    std::ofstream(expected, std::ios::binary) << *actual << '\n';
    return;
  }
  EXPECT_EQ(*actual + '\n', ReadFile(expected)) << "CAISSON_BLESS=1 rewrites the expectation";
}

// What a case's name promises: ok_... compiles, bad_... does not, warn_... compiles with a warning.
TEST_P(Golden, IsWhatItsNameSays) {
  const CompileResult result = Compile(ReadFile(GetParam() / "workflow.py"));
  const std::string name = GetParam().filename().string();
  EXPECT_EQ(result.ok(), !name.starts_with("bad_")) << name;
  if (result.ok()) {
    EXPECT_EQ(result.diagnostics.empty(), name.starts_with("ok_")) << name;
  }
}

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(CAISSON_TESTS_DIR) / "golden" / "workflow")) {
    if (std::filesystem::exists(entry.path() / "workflow.py")) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Workflow, Golden, testing::ValuesIn(Cases()),
                         [](const auto& param) { return param.param.filename().string(); });

}  // namespace
}  // namespace caisson::workflow
