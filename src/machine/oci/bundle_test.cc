// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/bundle.h"

#include <gtest/gtest.h>

#include "images/files.h"
#include "images/test_directory.h"
#include "json/reader.h"

namespace caisson::machine::oci {
namespace {

TEST(Bundle, HasTheImagesRootAndNoOtherEnvironment) {
  const images::Image image{.id = "0123", .root = "/store/0123/root"};
  const json::Value config = BundleConfig(image, {"/usr/bin/python3", "-I", "-"});
  EXPECT_EQ(config.Find("root")->Find("path")->as_string(), "/store/0123/root");
  EXPECT_EQ(config.Find("process")->Find("env")->as_array().size(), 2U);
  EXPECT_EQ(config.Find("annotations")->Find("caisson.image")->as_string(), "0123");
  EXPECT_NE(config.Find("linux")->Find("seccomp"), nullptr);
}

TEST(Bundle, IsWrittenIntoAnEmptyDirectoryOnly) {
  images::TestDirectory directory;
  const images::Image image{.id = "0123", .root = "/store/0123/root"};
  const std::string place = directory.path() + "/bundle";
  auto written = WriteBundle(image, {"/x"}, place);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_TRUE(json::Read(*images::ReadFile(place + "/config.json")));
  EXPECT_FALSE(WriteBundle(image, {"/x"}, place));
  EXPECT_FALSE(WriteBundle(image, {"/x"}, directory.path() + "/no/such"));
}

}  // namespace
}  // namespace caisson::machine::oci
