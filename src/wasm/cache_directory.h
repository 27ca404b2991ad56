// SPDX-License-Identifier: Apache-2.0
// Where the caches of this user are, for whoever does not link the engine.
#pragma once

#include <string>

namespace caisson::wasm {

// $CAISSON_CACHE_DIR, else $XDG_CACHE_HOME/caisson, else ~/.cache/caisson; empty when none is set.
std::string DefaultCacheDir();

}  // namespace caisson::wasm
