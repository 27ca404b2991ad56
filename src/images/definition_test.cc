// SPDX-License-Identifier: Apache-2.0
#include "images/definition.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "errors/images.h"
#include "images/files.h"
#include "images/test_directory.h"

namespace caisson::images {
namespace {

constexpr char kDigest[] = "769ce790f1f78ef77ff92fbc9fbb2038c34984862e6c3733c459d7abefece872";

std::string Minimal(const std::string& more = "") {
  return R"({"format": 1, "name": "tiny", "suite": "bookworm", "architecture": "amd64",
            "epoch": 1767225600, "packages": ["base-files"], "packages_lock": "tiny.lock")" +
         more + "}";
}

class DefinitionTest : public ::testing::Test {
 protected:
  Result<Definition> Load(const std::string& text, const std::string& name = "tiny") {
    EXPECT_TRUE(WriteFile(directory_.path() + "/" + name + ".json", text));
    return LoadDefinition(directory_.path(), name);
  }
  // The message of the refusal.
  std::string Refusal(const std::string& text) {
    auto definition = Load(text);
    if (definition) return "accepted";
    EXPECT_EQ(definition.error().code, errors::kImagesDefinition);
    return definition.error().message;
  }
  TestDirectory directory_;
};

TEST_F(DefinitionTest, reads_a_definition_without_a_lock) {
  auto definition = Load(Minimal());
  ASSERT_TRUE(definition) << definition.error().message;
  EXPECT_EQ(definition->packages, std::vector<std::string>{"base-files"});
  EXPECT_EQ(definition->lock_path, directory_.path() + "/tiny.lock");
  EXPECT_TRUE(definition->lock.empty());
  EXPECT_FALSE(definition->python);
}

TEST_F(DefinitionTest, reads_its_locks_and_hashes_them) {
  auto before = Load(Minimal());
  ASSERT_TRUE(WriteFile(directory_.path() + "/tiny.lock",
                        "# made by apt\nbase-files=12.4+deb12u12 " + std::string(kDigest) + "\n"));
  auto after = Load(Minimal());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->lock.at("base-files").version, "12.4+deb12u12");
  EXPECT_NE(before->digest, after->digest);
}

TEST_F(DefinitionTest, names_file_and_place_of_every_mistake) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([])", "$ must be an object"},
      {R"({"format": 2})", "$.format must be an integer from 1 to 1"},
      {Minimal(R"(, "colour": 1)"), "$.colour is no known member"},
      {Minimal(R"(, "remove": ["../etc"])"), "$.remove[0] must be a pattern"},
      {Minimal(R"(, "remove": ["a/**/b/c"])"), "$.remove[0] must be a pattern"},
      {Minimal(R"(, "directories": ["/etc"])"), "$.directories[0] must be a path inside"},
      {Minimal(R"(, "links": [{"path": "a//b", "target": "c"}])"), "$.links[0].path must be"},
      {Minimal(R"(, "files": [{"path": "a"}])"), "$.files[0].text is missing"},
      {Minimal(R"(, "files": [{"path": "a", "text": "", "executable": 1}])"),
       "$.files[0].executable must be true or false"},
      {Minimal(R"(, "python": {"program": "usr/bin/../x"})"), "$.python.program must be a path"},
      {Minimal(R"(, "name": "other")"), "the key occurs twice"},
      {Minimal() + "x", "line"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = Refusal(text);
    EXPECT_TRUE(message.find("tiny.json: ") != std::string::npos &&
                message.find(expected) != std::string::npos)
        << text << "\n"
        << message;
  }
}

TEST_F(DefinitionTest, refuses_a_package_name_that_is_an_option_or_a_pattern) {
  for (const char* name : {"-o", "a", "a,b", "?essential", "~n", "Base", "a b"}) {
    std::string text = Minimal();
    text.replace(text.find("base-files"), 10, name);
    EXPECT_NE(Refusal(text).find("$.packages[0] must be the name of a Debian package"),
              std::string::npos)
        << name;
  }
}

TEST_F(DefinitionTest, refuses_a_name_that_is_not_the_files) {
  auto definition = Load(Minimal(), "small");
  ASSERT_FALSE(definition);
  EXPECT_NE(definition.error().message.find("must be the file's own, 'small'"), std::string::npos);
}

TEST(ImageName, has_a_tag_or_none) {
  for (const char* name : {"devbox", "devbox:1", "debian:12", "a.b-c_d:v1.2", "python-science"}) {
    EXPECT_TRUE(IsImageName(name)) << name;
  }
  for (const char* name : {"", ":1", "devbox:", "devbox:1:2", "1box", "a/b", "../a", "a:../b",
                           "a:/b", "devbox:-1", "a@1", "a b", ".a", "devbox: 1"}) {
    EXPECT_FALSE(IsImageName(name)) << name;
  }
  EXPECT_FALSE(IsImageName(std::string(65, 'a')));
}

TEST_F(DefinitionTest, of_a_name_with_a_tag_has_a_file_name_without_a_colon) {
  std::string text = Minimal();
  text.replace(text.find("tiny"), 4, "tiny:1");
  ASSERT_TRUE(WriteFile(directory_.path() + "/tiny@1.json", text));
  EXPECT_EQ(DefinitionNames(directory_.path()), std::vector<std::string>{"tiny:1"});
  const auto definition = LoadDefinition(directory_.path(), "tiny:1");
  ASSERT_TRUE(definition) << definition.error().message;
  EXPECT_EQ(definition->name, "tiny:1");
}

TEST_F(DefinitionTest, reads_programs_of_ours_and_whether_packages_are_installed) {
  auto definition = Load(Minimal(
      R"(, "installed": true, "programs": [{"path": "usr/libexec/x", "program": "caisson-agent"}])"));
  ASSERT_TRUE(definition) << definition.error().message;
  EXPECT_TRUE(definition->installed);
  EXPECT_EQ(definition->programs.at(0).path, "usr/libexec/x");
  EXPECT_EQ(definition->programs.at(0).program, "caisson-agent");
  EXPECT_FALSE(Load(Minimal())->installed);
  EXPECT_NE(Refusal(Minimal(R"(, "programs": [{"path": "x", "program": "../sh"}])"))
                .find("$.programs[0].program must be the name of a program"),
            std::string::npos);
}

TEST_F(DefinitionTest, lists_what_exists_when_a_name_is_unknown) {
  ASSERT_TRUE(Load(Minimal()));
  for (const char* name : {"huge", "../tiny", ""}) {
    auto definition = LoadDefinition(directory_.path(), name);
    ASSERT_FALSE(definition) << name;
    EXPECT_EQ(definition.error().code, errors::kImagesUnknown);
    EXPECT_NE(definition.error().message.find("there are: tiny"), std::string::npos);
  }
}

TEST(PackageLock, survives_a_round_trip) {
  const PackageLock lock = {{"libc6", {"2.36-9+deb12u14", kDigest}},
                            {"zlib1g", {"1:1.2.13.dfsg-1", kDigest}}};
  auto read = ParsePackageLock(FormatPackageLock(lock), "a.lock");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, lock);
}

TEST(PackageLock, names_the_line_of_a_mistake) {
  const std::string good = "libc6=1 " + std::string(kDigest) + "\n";
  for (const std::string& line :
       {std::string("libc6"), std::string("libc6=1"), std::string("libc6=1 abc"),
        "libc6 =1 " + std::string(kDigest), "libc6=1  " + std::string(kDigest),
        "libc6=$(x) " + std::string(kDigest), good}) {
    auto lock = ParsePackageLock(good + line, "a.lock");
    ASSERT_FALSE(lock) << line;
    EXPECT_TRUE(lock.error().message.starts_with("a.lock:2: ")) << lock.error().message;
  }
}

TEST(Definitions, of_the_source_tree_are_good) {
  const std::string directory = std::string(CAISSON_SOURCE_DIR) + "/runtimes/images";
  const std::vector<std::string> names = DefinitionNames(directory);
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) {
    auto definition = LoadDefinition(directory, name);
    EXPECT_TRUE(definition) << definition.error().message;
  }
}

}  // namespace
}  // namespace caisson::images
