// SPDX-License-Identifier: Apache-2.0
// Modules compiled ahead of time, kept in a directory that belongs to the caller alone (0700, files
// 0600). Compiled code is native code: an entry is used only from such a directory, only when its
// recorded sha256 holds, and only for the very engine, flags and CPU it was made for; anything else
// is compiled anew and replaced. Thread-safe; processes may share a directory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wasm/cache_directory.h"
#include "wasm/checked_files.h"
#include "wasm/engine.h"
#include "wasm/handles.h"

namespace caisson::wasm {

// A binary to compile, and a note that is kept beside the compiled code.
struct ModuleSource {
  std::string binary;
  std::string note;
};

struct CachedModule {
  ModuleHandle module;
  std::string note;
  bool compiled = false;  // not found in the cache
};

class ModuleCache {
 public:
  // Makes the directory when it is missing. Fails with wasm.cache when it belongs to someone else,
  // is open to group or others, or cannot be made.
  static Result<ModuleCache> Open(const std::string& directory);

  // The module for `identity`, which must name everything that `make` depends on. `make` is called
  // only when the cache has no good entry. Fails with what `make` fails with, wasm.engine,
  // wasm.cache (the new entry cannot be written).
  Result<CachedModule> Load(const Engine& engine, std::string_view identity,
                            const std::function<Result<ModuleSource>()>& make) const;

  // Large modules: compiled beforehand, in some other process, and mapped from the file that holds
  // the code, so that all processes share one copy. `checked` sees to the file's sha256.
  //
  // Fails with isolate.not_prepared when there is no good entry, wasm.engine.
  Result<ModuleHandle> LoadMapped(const Engine& engine, std::string_view identity,
                                  CheckedFiles& checked) const;
  // Whether LoadMapped has something to load; false, too, of code that cannot be read.
  bool HasMapped(const Engine& engine, std::string_view identity, CheckedFiles& checked) const;
  // Compiles and stores: minutes, gigabytes, all cores. Nothing is to be seen of it until it is
  // complete. Fails with wasm.engine, wasm.cache.
  Result<void> CompileMapped(const Engine& engine, std::string_view identity,
                             std::string_view binary) const;

  const std::string& directory() const { return directory_; }

 private:
  explicit ModuleCache(std::string directory) : directory_(std::move(directory)) {}
  std::string PathFor(const Engine& engine, std::string_view identity) const;

  std::string directory_;
};

Result<ModuleHandle> Compile(const Engine& engine, std::string_view binary);

}  // namespace caisson::wasm
