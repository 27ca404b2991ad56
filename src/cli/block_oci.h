// SPDX-License-Identifier: Apache-2.0
// The `oci` runtime of blocks as this command puts it together: which program makes containers, of
// which image, by options and PYTHON_SANDBOX_....
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "cli/block_arguments.h"
#include "images/store.h"
#include "isolate/oci/oci.h"

namespace caisson::cli {

// --container-runtime, else runc, else runsc; Docker and Podman only by name, since what they run
// is an image of their own. Fails with oci.…, images.unknown, block.environment.
struct BlockOci {
  std::optional<images::HeldImage> image;  // outlives the containers that run it
  std::unique_ptr<isolate::oci::OciRuntime> runtime;

  static Result<BlockOci> Open(const BlockRuntimeArguments& arguments, double cpus);
};

}  // namespace caisson::cli
