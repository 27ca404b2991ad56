// SPDX-License-Identifier: Apache-2.0
// Every path of an image with type, permissions, size and sha256. The sha256 of the manifest's text
// is the id of the image. Owner and times are not listed, since they are the same for all: root,
// and the epoch of the first line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace caisson::images {

struct Manifest {
  std::string text;         // one JSON object a line, the first about the image, then by path
  std::string id;           // sha256 of the text
  std::uint64_t bytes = 0;  // of all files together
  std::uint64_t files = 0;
};

// Fails with images.store, and with images.tree (a path that is no UTF-8, a device).
Result<Manifest> MakeManifest(const std::string& root, std::int64_t epoch);

struct Difference {
  std::string path;
  std::string what;  // "only in the first", "only in the second", "differs in sha256"
};
// By path. Both texts must be manifests; fails with images.store when one is not.
Result<std::vector<Difference>> CompareManifests(const std::string& first,
                                                 const std::string& second);

}  // namespace caisson::images
