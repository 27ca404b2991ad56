// SPDX-License-Identifier: Apache-2.0
#include "wasm/artifact.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "errors/wasm.h"
#include "os/fd.h"
#include "os/syscall_error.h"
#include "wasm/file.h"
#include "wasm/sha256.h"

namespace caisson::wasm {

Result<std::string> LoadArtifact(const std::string& path, std::string_view sha256) {
  const os::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return Fail(errors::kWasmArtifact,
                fmt::format("The artifact {} cannot be read: {}. Run ./dev setup, or set "
                            "CAISSON_DATA_DIR to the directory that holds it.",
                            path, os::ErrnoText(errno)));
  }
  Result<std::string> bytes = ReadWhole(fd.get());
  if (!bytes) {
    return Fail(errors::kWasmArtifact,
                fmt::format("The artifact {} cannot be read: {}.", path, bytes.error().message));
  }
  if (const std::string actual = Sha256Hex(*bytes); actual != sha256) {
    return Fail(errors::kWasmArtifact,
                fmt::format("The artifact {} has sha256 {}, its pin says {}; it is not used. Run "
                            "./dev setup to fetch it again.",
                            path, actual, sha256));
  }
  return bytes;
}

}  // namespace caisson::wasm
