// SPDX-License-Identifier: Apache-2.0
#include "wasm/cache_directory.h"

#include <cstdlib>

namespace caisson::wasm {

std::string DefaultCacheDir() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string own = variable("CAISSON_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/')) {
    return xdg + "/caisson";
  }
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/caisson";
  return "";
}

}  // namespace caisson::wasm
