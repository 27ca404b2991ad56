// SPDX-License-Identifier: Apache-2.0
#include "wasm/wasi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace caisson::wasm {
namespace {

constexpr std::string_view kModule = "wasi_snapshot_preview1";

enum Errno : std::int32_t { kSuccess = 0, kBadFd = 8, kFault = 21, kInvalid = 28, kNoSys = 52 };

struct Call {
  WasiContext& context;
  MemoryView memory;
  const wasmtime_val_raw_t* args;

  std::uint32_t u32(int index) const { return static_cast<std::uint32_t>(args[index].i32); }

  template <typename T>
  bool Store(std::uint32_t address, T value) const {
    if (!memory.Holds(address, sizeof value)) return false;
    std::memcpy(memory.data + address, &value, sizeof value);
    return true;
  }
  std::optional<std::uint32_t> Load(std::uint64_t address) const {
    if (!memory.Holds(address, 4)) return std::nullopt;
    std::uint32_t value = 0;
    std::memcpy(&value, memory.data + address, sizeof value);
    return value;
  }
};

Errno ArgsSizesGet(const Call& call) {
  std::uint32_t bytes = 0;
  for (const std::string& arg : call.context.args)
    bytes += static_cast<std::uint32_t>(arg.size()) + 1;
  const auto count = static_cast<std::uint32_t>(call.context.args.size());
  return call.Store(call.u32(0), count) && call.Store(call.u32(1), bytes) ? kSuccess : kFault;
}

Errno ArgsGet(const Call& call) {
  std::uint32_t pointer = call.u32(0);
  std::uint32_t text = call.u32(1);
  for (const std::string& arg : call.context.args) {
    const std::size_t size = arg.size() + 1;
    if (!call.Store(pointer, text) || !call.memory.Holds(text, size)) return kFault;
    std::memcpy(call.memory.data + text, arg.c_str(), size);
    pointer += 4;
    text += static_cast<std::uint32_t>(size);
  }
  return kSuccess;
}

Errno EnvironSizesGet(const Call& call) {
  return call.Store(call.u32(0), 0u) && call.Store(call.u32(1), 0u) ? kSuccess : kFault;
}

Errno EnvironGet(const Call&) { return kSuccess; }

Errno ClockTimeGet(const Call& call) {
  return call.Store(call.u32(2), std::uint64_t{0}) ? kSuccess : kFault;
}

void Capture(WasiContext& context, std::string_view text) {
  const std::uint64_t room =
      context.output_limit - std::min<std::uint64_t>(context.output_limit, context.output.size());
  const std::size_t kept = std::min<std::uint64_t>(room, text.size());
  context.output += text.substr(0, kept);
  context.output_dropped += text.size() - kept;
}

Errno FdWrite(const Call& call) {
  if (call.u32(0) != 1 && call.u32(0) != 2) return kBadFd;
  std::uint32_t written = 0;
  const std::uint32_t count = call.u32(2);
  if (count > 1024) return kInvalid;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t vector = std::uint64_t{call.u32(1)} + std::uint64_t{i} * 8;
    const std::optional<std::uint32_t> address = call.Load(vector);
    const std::optional<std::uint32_t> size = call.Load(vector + 4);
    if (!address || !size || !call.memory.Holds(*address, *size)) return kFault;
    Capture(call.context, {reinterpret_cast<const char*>(call.memory.data + *address), *size});
    written += *size;
  }
  return call.Store(call.u32(3), written) ? kSuccess : kFault;
}

Errno Yield(const Call&) { return kSuccess; }
Errno NoSuchFd(const Call&) { return kBadFd; }
Errno NotOffered(const Call&) { return kNoSys; }

using Handler = Errno (*)(const Call&);

constexpr std::array<std::pair<std::string_view, Handler>, 7> kHandlers = {{
    {"args_sizes_get", ArgsSizesGet},
    {"args_get", ArgsGet},
    {"environ_sizes_get", EnvironSizesGet},
    {"environ_get", EnvironGet},
    {"clock_time_get", ClockTimeGet},
    {"fd_write", FdWrite},
    {"sched_yield", Yield},
}};

Handler HandlerFor(std::string_view name) {
  for (const auto& [known, handler] : kHandlers) {
    if (known == name) return handler;
  }
  return name.starts_with("fd_") ? NoSuchFd : NotOffered;
}

WasiContext& ContextOf(wasmtime_caller_t* caller) {
  return *static_cast<WasiContext*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
}

wasm_trap_t* Dispatch(void* handler, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                      std::size_t) {
  const Call call{ContextOf(caller), CallerMemory(caller), values};
  values[0].i32 = reinterpret_cast<Handler>(handler)(call);
  return nullptr;
}

wasm_trap_t* ProcExit(void*, wasmtime_caller_t* caller, wasmtime_val_raw_t* values, std::size_t) {
  ContextOf(caller).exit_code = static_cast<std::uint32_t>(values[0].i32);
  constexpr std::string_view kText = "the guest ended itself";
  return wasmtime_trap_new(kText.data(), kText.size());
}

std::string_view View(const wasm_name_t* name) { return {name->data, name->size}; }

Result<void> Define(wasmtime_linker_t* linker, const wasm_importtype_t* import) {
  const std::string_view name = View(wasm_importtype_name(import));
  const wasm_functype_t* type = wasm_externtype_as_functype_const(wasm_importtype_type(import));
  if (type == nullptr) {
    return Fail(EngineFailure(fmt::format("The import {} is no function", name), nullptr, nullptr));
  }
  const bool exits = name == "proc_exit";
  const wasmtime_func_unchecked_callback_t callback = exits ? ProcExit : Dispatch;
  void* handler = exits ? nullptr : reinterpret_cast<void*>(HandlerFor(name));
  const ErrorHandle error(
      wasmtime_linker_define_func_unchecked(linker, kModule.data(), kModule.size(), name.data(),
                                            name.size(), type, callback, handler, nullptr));
  if (error) return Fail(EngineFailure("A WASI function cannot be defined", error, nullptr));
  return {};
}

}  // namespace

MemoryView CallerMemory(wasmtime_caller_t* caller) {
  wasmtime_extern_t item;
  constexpr std::string_view kName = "memory";
  if (!wasmtime_caller_export_get(caller, kName.data(), kName.size(), &item) ||
      item.kind != WASMTIME_EXTERN_MEMORY) {
    return {};
  }
  wasmtime_context_t* context = wasmtime_caller_context(caller);
  return {wasmtime_memory_data(context, &item.of.memory),
          wasmtime_memory_data_size(context, &item.of.memory)};
}

Result<void> DefineWasi(wasmtime_linker_t* linker, const wasmtime_module_t* module) {
  wasm_importtype_vec_t imports;
  wasmtime_module_imports(module, &imports);
  Result<void> result;
  for (std::size_t i = 0; i < imports.size && result; ++i) {
    if (View(wasm_importtype_module(imports.data[i])) != kModule) continue;
    result = Define(linker, imports.data[i]);
  }
  wasm_importtype_vec_delete(&imports);
  return result;
}

}  // namespace caisson::wasm
