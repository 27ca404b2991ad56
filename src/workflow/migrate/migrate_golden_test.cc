// SPDX-License-Identifier: Apache-2.0
// tests/golden/migrate/<case>/: workflow.py and expected.diff, the changes and after them what is
// said. left_... leaves something to decide, the others nothing. With CAISSON_BLESS=1 in the
// environment the expectations are rewritten instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "workflow/compiler.h"
#include "workflow/migrate/diff.h"
#include "workflow/migrate/migrate.h"

namespace caisson::workflow::migrate {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(CAISSON_SOURCE_DIR "/tests/golden/migrate")) {
    cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

class MigrateGolden : public testing::TestWithParam<fs::path> {};

TEST_P(MigrateGolden, GivesWhatIsExpected) {
  const fs::path& folder = GetParam();
  const std::string source = ReadFile(folder / "workflow.py");
  ASSERT_FALSE(source.empty());
  const Migration migration = Migrate(source);
  std::string report = UnifiedDiff(source, migration.text, "workflow.py", false);
  report += Render(migration.findings, "workflow.py", source, DiagnosticFormat::kText);
  EXPECT_EQ(migration.done, !folder.filename().string().starts_with("left_")) << report;
  if (migration.done) {
    EXPECT_TRUE(Compile(migration.text).ok());
    EXPECT_EQ(Migrate(migration.text).text, migration.text) << "migrating it again changes it";
  }
  const fs::path expected = folder / "expected.diff";
  if (std::getenv("CAISSON_BLESS") != nullptr) {
    std::ofstream(expected, std::ios::binary) << report;
    return;
  }
  EXPECT_EQ(report, ReadFile(expected)) << "CAISSON_BLESS=1 rewrites it";
}

INSTANTIATE_TEST_SUITE_P(Cases, MigrateGolden, testing::ValuesIn(Cases()),
                         [](const auto& each) { return each.param.filename().string(); });

}  // namespace
}  // namespace caisson::workflow::migrate
