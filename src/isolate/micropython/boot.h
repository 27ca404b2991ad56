// SPDX-License-Identifier: Apache-2.0
// Starts the artifact once, runs the harness to its last line, and gives the memory at that point,
// made ready for re-entry: C stack moved behind the heap and enlarged, builtins cut down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "wasm/engine.h"

namespace caisson::isolate {

struct BootImage {
  std::string memory;  // from address 0 to the last block in use; behind it only the tail
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tail;  // address, word
  std::uint64_t memory_bytes = 0;
  std::uint32_t load = 0;  // function objects of the harness
  std::uint32_t call = 0;
  std::uint32_t check = 0;
  std::uint32_t builtins = 0;  // the module object
  std::uint32_t stack_pointer = 0;
};

// Fails with wasm.engine, or isolate.self_test when the artifact does not behave as the layout
// says.
Result<BootImage> Boot(wasm::Engine& engine, std::string_view artifact, std::uint64_t heap_bytes,
                       bool restricted);

// Names everything that the image depends on, for the module cache.
std::string BootIdentity(std::uint64_t heap_bytes, bool restricted);

// The artifact's own imports besides WASI. host_result_cap is answered 0 once `call` refuses.
Result<void> DefineHostFunctions(wasmtime_linker_t* linker,
                                 wasmtime_func_unchecked_callback_t call);

}  // namespace caisson::isolate
