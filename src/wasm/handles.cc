// SPDX-License-Identifier: Apache-2.0
#include "wasm/handles.h"

#include "errors/wasm.h"

namespace caisson::wasm {
namespace {

std::string Take(wasm_name_t& text) {
  std::string result(text.data, text.size);
  if (!result.empty() && result.back() == '\0') result.pop_back();
  wasm_byte_vec_delete(&text);
  return result;
}

}  // namespace

std::string Describe(const wasmtime_error_t* error) {
  wasm_name_t text;
  wasmtime_error_message(error, &text);
  return Take(text);
}

std::string Describe(const wasm_trap_t* trap) {
  wasm_message_t text;
  wasm_trap_message(trap, &text);
  return Take(text);
}

Status EngineFailure(const std::string& doing, const ErrorHandle& error, const TrapHandle& trap) {
  std::string cause = "no cause given";
  if (error) {
    cause = Describe(error.get());
  } else if (trap) {
    cause = Describe(trap.get());
  }
  return Status{errors::kWasmEngine, doing + ": " + cause};
}

}  // namespace caisson::wasm
