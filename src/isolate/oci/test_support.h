// SPDX-License-Identifier: Apache-2.0
// For tests that run containers: they need root, a container runtime (CAISSON_OCI_RUNTIME, runc by
// default) and the root file system of tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "isolate/oci/oci.h"
#include "jail/test_root.h"
#include "machine/oci/runtime.h"

namespace caisson::isolate::oci {

inline Result<machine::oci::Runtime> RuntimeForTests() {
  const char* name = std::getenv("CAISSON_OCI_RUNTIME");
  const auto kind = machine::oci::FindRuntimeKind(name == nullptr ? "runc" : name);
  return machine::oci::ProbeRuntime(kind.value_or(machine::oci::RuntimeKind::kRunc));
}

#define CAISSON_NEEDS_CONTAINERS() \
  CAISSON_NEEDS_ROOT();            \
  if (const auto found = RuntimeForTests(); !found) GTEST_SKIP() << found.error().message

// The state of one test.
class StateFolder {
 public:
  StateFolder() {
    std::string pattern = "/tmp/caisson-oci-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~StateFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::unique_ptr<OciRuntime> MakeOci(const StateFolder& folder, OciOptions options = {}) {
  auto runtime = RuntimeForTests();
  EXPECT_TRUE(runtime) << runtime.error().message;
  if (!runtime) return nullptr;
  options.runtime = *std::move(runtime);
  options.state = folder.path();
  options.root = jail::RootForTests();
  auto made = OciRuntime::Create(std::move(options));
  EXPECT_TRUE(made) << made.error().message;
  if (!made) return nullptr;
  auto prepared = (*made)->Prepare();
  EXPECT_TRUE(prepared) << prepared.error().message << "\n" << prepared.error().details;
  return prepared ? *std::move(made) : nullptr;
}

}  // namespace caisson::isolate::oci
