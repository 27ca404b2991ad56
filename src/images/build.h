// SPDX-License-Identifier: Apache-2.0
// Builds an image from a definition: Debian packages are extracted (their scripts do not run) or
// installed (they do, in a chroot), wheels unpacked, bytecode compiled, everything brought into one
// form, and a manifest made. Fetches by the host's own configuration of apt and pip; nothing here
// names where from. Trusts what the locks name by hash.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "images/definition.h"
#include "images/manifest.h"
#include "images/store.h"

namespace caisson::images {

struct BuildOptions {
  // Take the packages that apt chooses now, and write them into the lock; else what apt has must be
  // what the lock says.
  bool update_lock = false;
  // Where an archive no longer has a locked version, take its newer one; the image is another one
  // then. No effect with update_lock.
  bool allow_newer = false;
  bool erofs = false;                    // also make root.erofs
  std::vector<std::string> apt_sources;  // files; empty: those of the host that offer the suite
  // For `apt` inside of an image with a package manager: files; empty: those it is built from.
  std::vector<std::string> guest_apt_sources;
  std::string programs_directory;  // where our own programs are; needed when one goes in
  std::function<void(std::string_view)> progress;  // one line for every step
  std::stop_token stop;
};

// Builds and publishes. Fails with images.privilege (not root), images.tool_missing,
// images.tool_failed (the details hold its last lines), images.sources, images.lock,
// images.definition, images.tree, images.store, images.interrupted.
Result<Image> Build(const Store& store, const Definition& definition, const BuildOptions& options);

// Builds twice from nothing and publishes the first; what differs is returned.
struct Verified {
  Image image;
  std::vector<Difference> differences;
};
Result<Verified> BuildTwice(const Store& store, const Definition& definition,
                            const BuildOptions& options);

}  // namespace caisson::images
