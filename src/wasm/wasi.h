// SPDX-License-Identifier: Apache-2.0
// A WASI (preview 1) with nothing of the host in it: arguments as given, an empty environment, a
// clock that stands still, standard output and error captured together up to a cap. No files, no
// randomness, no sleeping: every other call is answered EBADF or ENOSYS. proc_exit ends the guest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "wasm/handles.h"

namespace caisson::wasm {

// What one instance sees and leaves. Must be the store's data (wasmtime_store_new) and outlive it.
struct WasiContext {
  std::vector<std::string> args;
  std::uint64_t output_limit = 64u << 10;
  std::string output;
  std::uint64_t output_dropped = 0;        // bytes beyond the limit
  std::optional<std::uint32_t> exit_code;  // set by proc_exit
};

// Defines in `linker` every wasi_snapshot_preview1 function that `module` imports.
Result<void> DefineWasi(wasmtime_linker_t* linker, const wasmtime_module_t* module);

// The caller's exported memory; empty when it has none.
struct MemoryView {
  std::uint8_t* data = nullptr;
  std::uint64_t size = 0;

  bool Holds(std::uint64_t address, std::uint64_t length) const {
    return length <= size && address <= size - length;
  }
};
MemoryView CallerMemory(wasmtime_caller_t* caller);

}  // namespace caisson::wasm
