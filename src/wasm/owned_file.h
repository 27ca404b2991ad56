// SPDX-License-Identifier: Apache-2.0
// Files of a cache that must be its owner's alone: what somebody else could have written is as good
// as missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::wasm {

// Invalid when the file is missing, a link, no regular file (which is never waited for), somebody
// else's, or open to group or others.
os::UniqueFd OpenOwned(const std::string& path);
// Nothing, too, when it does not begin with `magic`, which is looked at before the rest is read (a
// sparse file may claim any size), or is larger than kMaxFileBytes.
std::optional<std::string> ReadOwned(const std::string& path, std::string_view magic = {});

// Mode 0600; nobody sees a part of it. Fails with wasm.cache.
Result<void> WriteOwned(const std::string& directory, const std::string& path,
                        std::string_view bytes);
// The same for bytes of which many are zeros.
Result<void> WriteOwnedSparse(const std::string& directory, const std::string& path,
                              std::string_view bytes);

// wasm.cache, with why this directory cannot be used.
std::unexpected<Status> CacheFailure(const std::string& directory, std::string_view why);

}  // namespace caisson::wasm
