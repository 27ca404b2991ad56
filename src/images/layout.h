// SPDX-License-Identifier: Apache-2.0
// An image as an OCI image layout: what `docker load`, `podman load` and registries take. One
// layer, which is the root with the image's own times and owners, so that the same image gives the
// same digests.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "images/store.h"

namespace caisson::images {

struct LayoutOptions {
  std::string name;  // "python-science"; its tag is `latest` unless it has one
  // A path that ends in .tar becomes an archive, any other a directory, which must not exist.
  std::string destination;
  std::function<void(std::string_view)> progress;
  std::stop_token stop;
};

struct Layout {
  std::string image_digest;  // of the configuration: the id that Docker shows, "sha256:…"
  std::string layer_digest;
  std::uint64_t bytes = 0;  // of the layer
};

// Fails with images.store, images.tool_missing, images.tool_failed, images.interrupted.
Result<Layout> WriteLayout(const Image& image, const LayoutOptions& options);

// The configuration of the image, as text: user, environment, program, layer.
Result<std::string> LayoutConfig(const Image& image, const std::string& layer_digest);

}  // namespace caisson::images
