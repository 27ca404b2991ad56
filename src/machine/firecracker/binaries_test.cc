// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/binaries.h"

#include <gtest/gtest.h>

#include <string>

#include "errors/machine.h"
#include "machine/firecracker/test_doubles.h"

namespace caisson::machine::firecracker {
namespace {

TEST(FirecrackerVersions, AreReadFromReleasesAlone) {
  EXPECT_EQ(ToText(ParseVersion("Firecracker", "Firecracker v1.12.1\n\nmore").value()), "1.12.1");
  EXPECT_EQ(ToText(ParseVersion("Jailer", "Jailer v1.10.0").value()), "1.10.0");
  for (const char* text : {"", "Firecracker", "Firecracker v1.12", "Firecracker v1.12.1-dirty",
                           "Firecracker 1.12.1", "Jailer v1.12.1", "Firecracker v1.12.x"}) {
    const auto version = ParseVersion("Firecracker", text);
    ASSERT_FALSE(version) << text;
    EXPECT_EQ(version.error().code, errors::kMachineUnavailable);
  }
}

TEST(FirecrackerBinaries, MustBothBeThereAndOfOneKnownVersion) {
  const Doubles doubles;
  const auto why = [&](const std::string& firecracker, const std::string& jailer) {
    const auto found = FindBinaries(firecracker, jailer);
    return found ? "" : found.error().message;
  };
  const auto found = FindBinaries(doubles.firecracker(), doubles.jailer());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(ToText(found->version), "1.12.1");
  EXPECT_NE(why("no-such-firecracker", doubles.jailer()).find("no program no-such-firecracker"),
            std::string::npos);
  EXPECT_NE(why(doubles.firecracker(), "no-such-jailer").find("no program no-such-jailer"),
            std::string::npos);
  EXPECT_NE(why(doubles.jailer(), doubles.firecracker()).find("is no version"), std::string::npos);
  doubles.Wish("jailer_version", "v1.12.0");
  EXPECT_NE(why(doubles.firecracker(), doubles.jailer()).find("both of one release"),
            std::string::npos);
  for (const char* version : {"v1.9.1", "v1.17.0", "v2.0.0", "v0.25.0"}) {
    doubles.Wish("version", version);
    EXPECT_NE(why(doubles.firecracker(), doubles.jailer()).find("the driver knows 1.10.0"),
              std::string::npos)
        << version;
  }
}

}  // namespace
}  // namespace caisson::machine::firecracker
