// SPDX-License-Identifier: Apache-2.0
// Files as the store and the builder need them: whole reads, atomic writes, digests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::images {

// Fails with images.store; also when there are more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, std::size_t limit = 64u << 20);
// Replaces `path` in one step, with these permissions. Fails with images.store.
Result<void> WriteFile(const std::string& path, std::string_view text, unsigned mode = 0644);

// SHA-256 as lower-case hex, without following a link. Fails with images.store.
Result<std::string> DigestOfFile(const std::string& path);

// An images.store Status: "<what> <path>: <errno>". Takes errno.
std::unexpected<Status> FileError(std::string_view what, const std::string& path);

}  // namespace caisson::images
