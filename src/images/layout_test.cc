// SPDX-License-Identifier: Apache-2.0
#include "images/layout.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <cstdlib>
#include <filesystem>

#include "images/files.h"
#include "images/test_directory.h"
#include "json/reader.h"

namespace caisson::images {
namespace {

class LayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    image_.id = "0123";
    image_.root = directory_.path() + "/root";
    image_.info = json::Object{{"architecture", "amd64"}, {"python", "/usr/bin/python3.11"}};
    std::filesystem::create_directories(image_.root + "/usr/bin");
    ASSERT_TRUE(WriteFile(image_.root + "/usr/bin/tool", "#!x\n", 0755));
    for (const char* path : {"/usr/bin/tool", "/usr/bin", "/usr", ""}) {
      const utimbuf times{1'767'225'600, 1'767'225'600};
      ::utime((image_.root + path).c_str(), &times);
    }
  }
  Result<Layout> Write(const std::string& name) {
    return WriteLayout(image_, {.name = "tiny", .destination = directory_.path() + "/" + name});
  }
  json::Value ReadJson(const std::string& name) {
    auto text = ReadFile(directory_.path() + "/" + name);
    EXPECT_TRUE(text) << name;
    return json::Read(text.value_or("null")).value_or(nullptr);
  }
  // Each digest must be that of its file.
  std::string Blob(const std::string& layout, const json::Value& descriptor) {
    const std::string digest = descriptor.Find("digest")->as_string();
    const std::string path = layout + "/blobs/sha256/" + digest.substr(7);
    auto actual = DigestOfFile(directory_.path() + "/" + path);
    EXPECT_EQ("sha256:" + actual.value_or(""), digest);
    EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(directory_.path() + "/" + path)),
              descriptor.Find("size")->as_int());
    return path;
  }

  TestDirectory directory_;
  Image image_;
};

TEST_F(LayoutTest, leads_from_the_index_to_the_layer) {
  const auto layout = Write("out");
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(ReadJson("out/oci-layout").Find("imageLayoutVersion")->as_string(), "1.0.0");
  const json::Value manifest =
      ReadJson(Blob("out", ReadJson("out/index.json").Find("manifests")->as_array().at(0)));
  const json::Value config = ReadJson(Blob("out", *manifest.Find("config")));
  EXPECT_EQ(config.Find("config")->Find("User")->as_string(), "1001:1001");
  EXPECT_EQ(config.Find("config")->Find("Entrypoint")->as_array().at(0).as_string(),
            "/usr/bin/python3.11");
  const json::Value& layer = manifest.Find("layers")->as_array().at(0);
  EXPECT_EQ(config.Find("rootfs")->Find("diff_ids")->as_array().at(0), *layer.Find("digest"));
  const std::string unpacked = directory_.path() + "/unpacked";
  std::filesystem::create_directory(unpacked);
  ASSERT_EQ(
      std::system(
          ("tar -xf " + directory_.path() + "/" + Blob("out", layer) + " -C " + unpacked).c_str()),
      0);
  struct stat info{};
  ASSERT_EQ(::stat((unpacked + "/usr/bin/tool").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755U);
  EXPECT_EQ(info.st_mtime, 1'767'225'600);
}

TEST_F(LayoutTest, is_the_same_for_the_same_image) {
  const auto first = Write("first");
  const auto second = Write("second");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->image_digest, second->image_digest);
  EXPECT_EQ(*ReadFile(directory_.path() + "/first/index.json"),
            *ReadFile(directory_.path() + "/second/index.json"));
}

TEST_F(LayoutTest, can_be_an_archive_and_leaves_nothing_else) {
  ASSERT_TRUE(Write("out.tar"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/out.tar.draft"));
  EXPECT_EQ(
      std::system(("tar -tf " + directory_.path() + "/out.tar | grep -qx manifest.json").c_str()),
      0);
}

TEST_F(LayoutTest, replaces_no_directory) {
  std::filesystem::create_directory(directory_.path() + "/out");
  EXPECT_FALSE(Write("out"));
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/out"));
}

}  // namespace
}  // namespace caisson::images
