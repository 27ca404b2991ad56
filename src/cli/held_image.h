// SPDX-License-Identifier: Apache-2.0
// Images of the default store, for what runs in them.
#pragma once

#include <string>

#include "base/status.h"
#include "images/store.h"

namespace caisson::cli {

// Fails with images.unknown (the message says how to build it), images.store.
Result<images::HeldImage> HoldImage(const std::string& name_or_id);

}  // namespace caisson::cli
