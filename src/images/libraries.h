// SPDX-License-Identifier: Apache-2.0
// The Python part of an image: wheels by a lock with hashes, put in place by the pip of a throwaway
// environment, and bytecode that never looks at its source again.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "images/definition.h"

namespace caisson::images {

// Installs every requirement of the lock into the root. No code of a library runs. Fails with
// images.tool_missing, images.tool_failed (also when a hash does not hold), images.interrupted,
// images.store.
Result<void> InstallLibraries(const PythonLibraries& python, const std::string& root,
                              const std::string& work, const std::stop_token& stop);

// Compiles all sources of the root with its own interpreter, in an order and with hash seeds that
// are always the same. Needs root (chroot). Fails as above.
Result<void> CompileBytecode(const PythonLibraries& python, const std::string& root,
                             const std::string& work, const std::stop_token& stop);

// What a lock pins, "name==version ..." lines, as name -> version.
std::map<std::string, std::string> PinnedVersions(std::string_view requirements);

}  // namespace caisson::images
