// SPDX-License-Identifier: Apache-2.0
// Owning handles for the objects of the Wasmtime C API, and its errors as Status.
#pragma once

#include <wasm.h>
#include <wasmtime.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace caisson::wasm {

template <auto Delete>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Delete(object);
  }
};

using EngineHandle = std::unique_ptr<wasm_engine_t, Deleter<wasm_engine_delete>>;
using StoreHandle = std::unique_ptr<wasmtime_store_t, Deleter<wasmtime_store_delete>>;
using ModuleHandle = std::unique_ptr<wasmtime_module_t, Deleter<wasmtime_module_delete>>;
using LinkerHandle = std::unique_ptr<wasmtime_linker_t, Deleter<wasmtime_linker_delete>>;
using InstancePreHandle =
    std::unique_ptr<wasmtime_instance_pre_t, Deleter<wasmtime_instance_pre_delete>>;
using ErrorHandle = std::unique_ptr<wasmtime_error_t, Deleter<wasmtime_error_delete>>;
using TrapHandle = std::unique_ptr<wasm_trap_t, Deleter<wasm_trap_delete>>;
using FuncTypeHandle = std::unique_ptr<wasm_functype_t, Deleter<wasm_functype_delete>>;

// The text of an error or a trap; consumes nothing.
std::string Describe(const wasmtime_error_t* error);
std::string Describe(const wasm_trap_t* trap);

// wasm.engine with `doing` and the engine's own words. Takes whichever of the two is set.
Status EngineFailure(const std::string& doing, const ErrorHandle& error, const TrapHandle& trap);

}  // namespace caisson::wasm
