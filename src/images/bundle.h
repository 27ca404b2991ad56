// SPDX-License-Identifier: Apache-2.0
// An OCI runtime bundle of an image: a directory with config.json whose root is the image's own
// directory in the store, read-only, so that nothing is copied. For runc; the image must stay in
// the store as long as the bundle is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"

namespace caisson::images {

struct BundleOptions {
  std::vector<std::string> arguments;  // what runs in it, by absolute path
  std::uint64_t memory_bytes = 512ull << 20;
  double cpus = 1;
  std::uint64_t pids = 128;
  std::uint64_t tmp_bytes = 64ull << 20;
};

// config.json: no network but a loopback, no capability, no new privileges, user and group 1001,
// HOME and PATH alone, a small /tmp without exec, limits on memory, processors and processes.
json::Value BundleConfig(const Image& image, const BundleOptions& options);

// Makes `directory`, or takes one that is empty. Fails with images.store.
Result<void> WriteBundle(const Image& image, const BundleOptions& options,
                         const std::string& directory);

}  // namespace caisson::images
