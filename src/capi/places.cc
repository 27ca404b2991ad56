// SPDX-License-Identifier: Apache-2.0
#include "capi/places.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/isolation.h"
#include "errors/cli.h"

namespace caisson::capi {
namespace {

namespace fs = std::filesystem;

fs::path LibraryDirectory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LibraryDirectory), &info) == 0) return {};
  std::error_code error;
  const fs::path path = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : path.parent_path();
}

}  // namespace

Result<std::string> IsolateProgram(const std::string& given) {
  if (!given.empty()) return cli::FindIsolateProgram(given);
  const fs::path own = LibraryDirectory();
  for (const fs::path& directory : {own, own.parent_path() / "bin"}) {
    const std::string program = (directory / "caisson-isolate").string();
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return Fail(errors::kCliIsolateMissing, "caisson-isolate is neither beside the library in " +
                                              own.string() +
                                              " nor in ../bin of it; name it with the option "
                                              "'isolate'");
}

std::string DataDirectory(const std::string& given) {
  if (!given.empty()) return given;
  const char* variable = std::getenv("CAISSON_DATA_DIR");
  if (variable != nullptr && *variable != '\0') return "";
  const fs::path own = LibraryDirectory();
  for (const fs::path& directory : {own, own.parent_path() / "share" / "caisson"}) {
    std::error_code error;
    if (fs::exists(directory / "micropython" / "derived.wasm", error)) return directory.string();
  }
  return "";
}

}  // namespace caisson::capi
