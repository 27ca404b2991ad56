// SPDX-License-Identifier: Apache-2.0
// The service's store, for commands that work on it beside the service or before it.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace caisson::cli {

// Acts as the owner of `directory`, which is made when it is missing: the files that a store gains
// must belong to the service's user.
Result<std::unique_ptr<store::Store>> OpenServiceStore(const std::string& directory);

}  // namespace caisson::cli
