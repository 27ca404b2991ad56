// SPDX-License-Identifier: Apache-2.0
#include "block/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace caisson::block {
namespace {

Result<Environment> Read(const std::map<std::string, std::string>& variables) {
  return ReadEnvironment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string ErrorOf(const std::string& name, const std::string& value) {
  auto environment = Read({{"PYTHON_SANDBOX_" + name, value}});
  return environment ? "accepted" : environment.error().message;
}

TEST(Environment, IsEmptyWhereNothingIsSet) {
  const auto environment = Read({{"PYTHON_SANDBOX_IMAGE", ""}, {"PYTHON_SANDBOX_MODE", ""}});
  ASSERT_TRUE(environment);
  EXPECT_FALSE(environment->runtime || environment->timeout || environment->image ||
               environment->auto_runtime);
}

TEST(Environment, ReadsEveryVariable) {
  const auto environment = Read({{"PYTHON_SANDBOX_MODE", "docker"},
                                 {"PYTHON_SANDBOX_TIMEOUT_MS", "5000"},
                                 {"PYTHON_SANDBOX_IMAGE", "guardian/python-sandbox:latest"},
                                 {"PYTHON_SANDBOX_MEMORY", "512m"},
                                 {"PYTHON_SANDBOX_CPUS", "1.5"},
                                 {"PYTHON_SANDBOX_PIDS", "128"},
                                 {"PYTHON_SANDBOX_HEAP_MB", "512"}});
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->runtime, RuntimeId::kOci);
  EXPECT_EQ(environment->timeout, std::chrono::seconds(5));
  EXPECT_EQ(environment->image, "guardian/python-sandbox:latest");
  EXPECT_EQ(environment->container_memory, 512U << 20);
  EXPECT_EQ(environment->cpus, 1.5);
  EXPECT_EQ(environment->pids, 128U);
  EXPECT_EQ(environment->heap_bytes, 512U << 20);
}

TEST(Environment, KnowsUpstreamsNamesOfModes) {
  EXPECT_EQ(Read({{"PYTHON_SANDBOX_MODE", "pyodide"}})->runtime, RuntimeId::kCpython);
  EXPECT_EQ(Read({{"PYTHON_SANDBOX_MODE", "native"}})->runtime, RuntimeId::kNative);
  EXPECT_TRUE(Read({{"PYTHON_SANDBOX_MODE", "auto"}})->auto_runtime);
  EXPECT_EQ(ErrorOf("MODE", "Docker"),
            "Invalid PYTHON_SANDBOX_MODE value: Docker (pyodide or cpython, native, docker or oci, "
            "auto)");
}

TEST(Environment, RefusesMalformedValuesInTheWordsThatClientsMatch) {
  for (const char* value : {"", "0", "-1", "1.5", "1e3", " 1", "abc", "99999999999999999999"}) {
    EXPECT_EQ(ErrorOf("TIMEOUT_MS", value),
              "PYTHON_SANDBOX_TIMEOUT_MS is not configured (must be a positive integer)");
  }
  for (const char* value : {"512mb", "m", "-1m", "0", "1 g", "9999999999999g"}) {
    EXPECT_EQ(ErrorOf("MEMORY", value),
              std::string("Invalid PYTHON_SANDBOX_MEMORY value: ") + value);
  }
  for (const char* value : {"1k", "1", "15m", "1025g"}) {
    EXPECT_EQ(ErrorOf("MEMORY", value), std::string("Invalid PYTHON_SANDBOX_MEMORY value: ") +
                                            value + " (from 16m to 1024g)");
  }
  EXPECT_EQ(ErrorOf("CPUS", "0.001"),
            "Invalid PYTHON_SANDBOX_CPUS value: 0.001 (the kernel shares out no less than 0.01)");
  for (const char* value : {"0", "-1", "1,5", "1e1", "inf", "2000", "1.0 --privileged"}) {
    EXPECT_EQ(ErrorOf("CPUS", value), std::string("Invalid PYTHON_SANDBOX_CPUS value: ") + value);
  }
  for (const char* value : {"0", "-1", "1.0", "99999999999"}) {
    EXPECT_EQ(ErrorOf("PIDS", value), std::string("Invalid PYTHON_SANDBOX_PIDS value: ") + value);
  }
  for (const char* value : {"1g", "0", "-512"}) {
    EXPECT_EQ(ErrorOf("HEAP_MB", value),
              std::string("Invalid PYTHON_SANDBOX_HEAP_MB value: ") + value);
  }
  for (const char* value : {"1", "15", "1048577", "9223372036854775807"}) {
    EXPECT_EQ(ErrorOf("HEAP_MB", value), std::string("Invalid PYTHON_SANDBOX_HEAP_MB value: ") +
                                             value + " (from 16 to 1048576)");
  }
  for (const char* value : {"16", "1048576"}) EXPECT_EQ(ErrorOf("HEAP_MB", value), "accepted");
}

TEST(Environment, TakesImagesWithPortsAndDigests) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  for (const std::string& image : std::vector<std::string>{
           "a:b", "a/b/c:1.0-x_y", "host:5000/a/b:c", "a/b" + digest, "a:b" + digest}) {
    EXPECT_EQ(ErrorOf("IMAGE", image), "accepted") << image;
  }
  for (const std::string& image :
       std::vector<std::string>{"a", "-v:/a", "a:b c", "a:b;c", "a:", "a/:b/", "a:b@sha256:12",
                                "a@md5:" + std::string(64, 'a'), "a:b:c:d", "a:$(x)"}) {
    EXPECT_EQ(ErrorOf("IMAGE", image), "Invalid sandbox image name: " + image) << image;
  }
}

}  // namespace
}  // namespace caisson::block
