// SPDX-License-Identifier: Apache-2.0
#include "images/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "images/files.h"
#include "images/test_directory.h"
#include "json/reader.h"

namespace caisson::images {
namespace {

const json::Value* At(const json::Value* value, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) value = value == nullptr ? nullptr : value->Find(key);
  return value;
}

TEST(Bundle, grants_nothing) {
  const Image image{.id = "0123", .root = "/store/0123/root"};
  const json::Value config = BundleConfig(image, {.arguments = {"/usr/bin/python3", "-I", "-"}});
  EXPECT_EQ(At(&config, {"root", "path"})->as_string(), "/store/0123/root");
  EXPECT_TRUE(At(&config, {"root", "readonly"})->as_bool());
  EXPECT_TRUE(At(&config, {"process", "noNewPrivileges"})->as_bool());
  EXPECT_EQ(At(&config, {"process", "user", "uid"})->as_int(), 1001);
  EXPECT_EQ(At(&config, {"process", "user", "gid"})->as_int(), 1001);
  EXPECT_EQ(At(&config, {"process", "env"})->as_array().size(), 2U);
  EXPECT_EQ(At(&config, {"process", "rlimits"}), nullptr);
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    EXPECT_TRUE(At(&config, {"process", "capabilities", set})->as_array().empty()) << set;
  }
  EXPECT_EQ(At(&config, {"linux", "resources", "memory", "limit"})->as_int(), 512 << 20);
  EXPECT_EQ(At(&config, {"linux", "resources", "memory", "swap"})->as_int(), 512 << 20);
  EXPECT_EQ(At(&config, {"linux", "resources", "pids", "limit"})->as_int(), 128);
  EXPECT_EQ(At(&config, {"linux", "resources", "cpu", "quota"})->as_int(), 100'000);
}

TEST(Bundle, is_written_into_an_empty_directory_only) {
  TestDirectory directory;
  const Image image{.id = "0123", .root = "/store/0123/root"};
  const std::string place = directory.path() + "/bundle";
  auto written = WriteBundle(image, {.arguments = {"/x"}}, place);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_TRUE(json::Read(*ReadFile(place + "/config.json")));
  EXPECT_FALSE(WriteBundle(image, {.arguments = {"/x"}}, place));
  EXPECT_FALSE(WriteBundle(image, {.arguments = {"/x"}}, directory.path() + "/no/such"));
}

}  // namespace
}  // namespace caisson::images
