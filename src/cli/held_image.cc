// SPDX-License-Identifier: Apache-2.0
#include "cli/held_image.h"

#include <utility>

#include "errors/images.h"

namespace caisson::cli {

Result<images::HeldImage> HoldImage(const std::string& name_or_id) {
  CAISSON_ASSIGN(const images::Store store, images::Store::Open(images::Store::DefaultDirectory()));
  auto held = store.Hold(name_or_id);
  if (held || held.error().code != errors::kImagesUnknown) return held;
  return Fail(errors::kImagesUnknown, "there is no image '" + name_or_id + "' in " +
                                          store.directory() +
                                          "; build it with `sudo caisson images build " +
                                          name_or_id + "`, or name a root with --root");
}

}  // namespace caisson::cli
