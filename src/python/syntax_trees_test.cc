// SPDX-License-Identifier: Apache-2.0
// The trees of tests/golden/syntax_trees, which a CPython 3.12 made of our sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "python/ast_dump.h"
#include "python/parser.h"

namespace caisson::python {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> Sources() {
  std::vector<fs::path> paths;
  for (const auto& entry :
       fs::directory_iterator(CAISSON_SOURCE_DIR "/tests/golden/syntax_trees")) {
    if (entry.path().extension() == ".py" && entry.path().stem() != "bless") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The first line in which the two differ, for a readable failure.
std::string Difference(const std::string& expected, const std::string& actual) {
  std::istringstream left(expected);
  std::istringstream right(actual);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(left, a));
    const bool more_b = static_cast<bool>(std::getline(right, b));
    if (!more_a && !more_b) return {};
    if (!more_a || !more_b || a != b) {
      return "line " + std::to_string(line) + ": expected " + (more_a ? a : "nothing") + ", got " +
             (more_b ? b : "nothing");
    }
  }
}

TEST(SyntaxTrees, AreThoseOfCPythonWithItsPositions) {
  const std::vector<fs::path> sources = Sources();
  ASSERT_GE(sources.size(), 12u);
  for (fs::path path : sources) {
    const auto tree = Parse(ReadFile(path));
    ASSERT_TRUE(tree.has_value()) << path << ": " << tree.error().message << " on line "
                                  << tree.error().span.line;
    const std::string dump = DumpAst(&tree->module());
    EXPECT_EQ(Difference(ReadFile(path.replace_extension(".ast")), dump), "") << path;
  }
}

}  // namespace
}  // namespace caisson::python
