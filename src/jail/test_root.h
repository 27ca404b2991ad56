// SPDX-License-Identifier: Apache-2.0
// The root file system of tests: the directory that CAISSON_NATIVE_ROOT names, else the image
// python-science that the test images.native_root has built (docs/images.md says how a store
// looks).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace caisson::jail {

// Empty where there is none.
inline std::string RootForTests() {
  if (const char* root = std::getenv("CAISSON_NATIVE_ROOT")) return root;
  const std::string store = CAISSON_IMAGES_DIR;
  std::ifstream name(store + "/names/python-science");
  std::string id;
  return name >> id ? store + "/" + id + "/root" : "";
}

#define CAISSON_NEEDS_ROOT()                                                              \
  if (caisson::jail::RootForTests().empty()) {                                            \
    GTEST_SKIP() << "there is no root file system; the test images.native_root says why"; \
  }

}  // namespace caisson::jail
