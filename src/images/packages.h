// SPDX-License-Identifier: Apache-2.0
// The Debian part of an image: mmdebstrap fetches by the host's apt configuration, apt checks the
// archive's signatures, and what came is held against the lock. Packages are extracted, with none
// of their scripts run, unless the definition wants them installed.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/definition.h"

namespace caisson::images {

// The files of apt's configuration that offer `suite` and nothing of another release. Fails with
// images.sources.
Result<std::vector<std::string>> FindAptSources(const std::string& suite,
                                                const std::stop_token& stop);

// The same from the lines that apt prints, "<file>:<n> <release>" each.
Result<std::vector<std::string>> ChooseAptSources(const std::string& lines,
                                                  const std::string& suite);

enum class Versions : std::uint8_t {
  kLocked,
  kLockedOrNewer,  // what the archive has where it no longer has the locked one
  kAny,
};

struct PackagesWanted {
  const Definition& definition;
  std::vector<std::string> apt_sources;
  std::string root;  // does not exist yet; its directory does
  std::string work;  // an empty directory
  Versions versions = Versions::kLocked;
};

// Makes `root` of the packages and gives what it is made of. Fails with images.lock when that is
// not what the lock says (of versions that it decides), images.tool_missing, images.tool_failed,
// images.interrupted.
Result<PackageLock> ExtractPackages(const PackagesWanted& wanted, const std::stop_token& stop);

// Puts the sources into the root for apt inside of it, without comments. Fails with images.sources
// when one holds a password, or names a key that is not in the root.
Result<void> AddGuestSources(const std::vector<std::string>& sources, const std::string& root);

// Fails with images.lock, naming the first package that is missing, unknown or other than locked.
// What has the locked version has the locked hash, whatever versions are wanted.
Result<void> CheckAgainstLock(const PackageLock& lock, const PackageLock& found,
                              Versions versions = Versions::kLocked);

}  // namespace caisson::images
