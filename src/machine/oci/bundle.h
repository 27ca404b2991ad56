// SPDX-License-Identifier: Apache-2.0
// A bundle of an image for whoever runs runc by hand: a directory with config.json whose root is
// the image's own directory in the store, read-only, so that nothing is copied. The image must stay
// in the store as long as the bundle is used.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "json/value.h"

namespace caisson::machine::oci {

// ContainerPolicy's own limits, and the seccomp list of interpreters. `arguments` run in it, by
// absolute path.
json::Value BundleConfig(const images::Image& image, const std::vector<std::string>& arguments);

// Makes `directory`, or takes one that is empty. Fails with images.store.
Result<void> WriteBundle(const images::Image& image, const std::vector<std::string>& arguments,
                         const std::string& directory);

}  // namespace caisson::machine::oci
