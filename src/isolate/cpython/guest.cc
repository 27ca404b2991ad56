// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/guest.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "errors/wasm.h"
#include "wasm/detach.h"
#include "wasm/memory_creator.h"

namespace caisson::isolate::cpython {
namespace {

using wasm::ErrorHandle;
using wasm::TrapHandle;

// Between two looks at whether a guest may go on.
constexpr std::uint64_t kEpochsBetweenLooks = 2;

constexpr std::string_view kHostModule = "host";
constexpr std::string_view kHostCall = "call";

// What the guest's side of _host.call makes of an answer.
constexpr std::int32_t kAnswered = 0;
constexpr std::int32_t kCallFaulted = -2;

GuestSystem& SystemOf(const wasmtime_context_t* context) {
  auto* system = static_cast<wasm::WasiSystem*>(
      wasmtime_context_get_data(const_cast<wasmtime_context_t*>(context)));
  return static_cast<GuestSystem&>(*system);
}

// host.call's arguments: request, its size, where the answer's address and size go.
class HostCallFrame {
 public:
  HostCallFrame(wasmtime_caller_t* caller, const wasmtime_val_raw_t* values) : caller_(caller) {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      arguments_[i] = static_cast<std::uint32_t>(values[i].i32);
    }
  }

  std::optional<std::string_view> Request() const {
    const wasm::MemoryView memory = wasm::CallerMemory(caller_);
    if (!memory.Holds(arguments_[0], arguments_[1])) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(memory.data + arguments_[0]),
                            arguments_[1]);
  }

  // A trap of the guest's allocator goes to `trap`.
  std::int32_t Answer(std::string_view bytes, wasm_trap_t*& trap) const {
    std::uint32_t at = 0;
    if (!bytes.empty()) {
      at = Allocate(bytes.size(), trap);
      if (trap != nullptr || at == 0) return kCallFaulted;
    }
    // Only now: the allocator may have let the memory grow.
    const wasm::MemoryView memory = wasm::CallerMemory(caller_);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (!memory.Holds(at, size) || !memory.Holds(arguments_[2], 4) ||
        !memory.Holds(arguments_[3], 4)) {
      return kCallFaulted;
    }
    if (!bytes.empty()) std::memcpy(memory.data + at, bytes.data(), size);
    std::memcpy(memory.data + arguments_[2], &at, 4);
    std::memcpy(memory.data + arguments_[3], &size, 4);
    return kAnswered;
  }

 private:
  std::uint32_t Allocate(std::size_t size, wasm_trap_t*& trap) const {
    wasmtime_extern_t item;
    constexpr std::string_view kName = "host_alloc";
    if (!wasmtime_caller_export_get(caller_, kName.data(), kName.size(), &item) ||
        item.kind != WASMTIME_EXTERN_FUNC) {
      return 0;
    }
    wasmtime_val_raw_t value;
    value.i32 = static_cast<std::int32_t>(size);
    const ErrorHandle error(wasmtime_func_call_unchecked(wasmtime_caller_context(caller_),
                                                         &item.of.func, &value, 1, &trap));
    return error || trap != nullptr ? 0 : static_cast<std::uint32_t>(value.i32);
  }

  wasmtime_caller_t* caller_;
  std::array<std::uint32_t, 4> arguments_{};
};

wasm_trap_t* OnHostCall(void*, wasmtime_caller_t* caller, wasmtime_val_raw_t* values, std::size_t) {
  const HostCallFrame frame(caller, values);
  const auto request = frame.Request();
  if (!request) {
    values[0].i32 = kCallFaulted;
    return nullptr;
  }
  const auto answer = SystemOf(wasmtime_caller_context(caller)).HostCall(*request);
  if (!answer) {
    constexpr std::string_view kText = "the host ended the run";
    return wasmtime_trap_new(kText.data(), kText.size());
  }
  wasm_trap_t* trap = nullptr;
  values[0].i32 = frame.Answer(*answer, trap);
  return trap;
}

wasmtime_error_t* OnEpoch(const wasmtime_context_t* context, void*, std::uint64_t* delta,
                          wasmtime_update_deadline_kind_t* kind) {
  if (!SystemOf(context).MayGoOn()) return wasmtime_error_new("the host ended the run");
  *delta = kEpochsBetweenLooks;
  *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return nullptr;
}

Result<void> DefineHostCall(wasmtime_linker_t* linker) {
  std::array<wasm_valtype_t*, 4> params{};
  for (auto& param : params) param = wasm_valtype_new(WASM_I32);
  wasm_valtype_t* result = wasm_valtype_new(WASM_I32);
  wasm_valtype_vec_t param_types;
  wasm_valtype_vec_t result_types;
  wasm_valtype_vec_new(&param_types, params.size(), params.data());
  wasm_valtype_vec_new(&result_types, 1, &result);
  const wasm::FuncTypeHandle type(wasm_functype_new(&param_types, &result_types));
  const ErrorHandle error(wasmtime_linker_define_func_unchecked(
      linker, kHostModule.data(), kHostModule.size(), kHostCall.data(), kHostCall.size(),
      type.get(), OnHostCall, nullptr, nullptr));
  if (error) return Fail(wasm::EngineFailure("host.call cannot be defined", error, nullptr));
  return {};
}

std::uint64_t LeastMemory(const wasmtime_module_t* module) {
  wasm_exporttype_vec_t exports;
  wasmtime_module_exports(module, &exports);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < exports.size; ++i) {
    const wasm_memorytype_t* memory =
        wasm_externtype_as_memorytype_const(wasm_exporttype_type(exports.data[i]));
    if (memory != nullptr) bytes = wasmtime_memorytype_minimum(memory) << 16;
  }
  wasm_exporttype_vec_delete(&exports);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<GuestModule>> GuestModule::Make(wasm::Engine& engine,
                                                       wasm::ModuleHandle module) {
  std::unique_ptr<GuestModule> made(new GuestModule(engine));
  made->module_ = std::move(module);
  made->least_memory_ = LeastMemory(made->module_.get());
  made->linker_.reset(wasmtime_linker_new(engine.get()));
  CAISSON_TRY(GuestSystem::Define(made->linker_.get(), made->module_.get()));
  CAISSON_TRY(DefineHostCall(made->linker_.get()));
  wasmtime_instance_pre_t* pre = nullptr;
  const ErrorHandle error(
      wasmtime_linker_instantiate_pre(made->linker_.get(), made->module_.get(), &pre));
  if (error) return Fail(wasm::EngineFailure("The interpreter cannot be linked", error, nullptr));
  made->pre_.reset(pre);
  return made;
}

Result<std::unique_ptr<Guest>> Guest::Make(const GuestModule& module, wasm::SlotPool& pool,
                                           GuestSystem& system, std::uint64_t memory_limit) {
  std::unique_ptr<Guest> guest(new Guest(system));
  CAISSON_ASSIGN(std::unique_ptr<wasm::MemorySlot> slot, pool.Take());
  slot->set_limit(memory_limit);
  guest->slot_ = slot.get();
  wasm::WasiSystem* data = &system;
  guest->store_.reset(wasmtime_store_new(module.engine_.get(), data, nullptr));
  guest->context_ = wasmtime_store_context(guest->store_.get());
  // The memory is limited by its slot, which remembers that it refused.
  constexpr std::int64_t kTableElements = 100'000;
  wasmtime_store_limiter(guest->store_.get(), -1, kTableElements, 1, 1, 2);
  wasmtime_store_epoch_deadline_callback(guest->store_.get(), OnEpoch, nullptr, nullptr);
  wasmtime_context_set_epoch_deadline(guest->context_, kEpochsBetweenLooks);
  const wasm::PlacedSlot placed(pool, std::move(slot), module.least_memory_);
  wasm_trap_t* raw_trap = nullptr;
  const ErrorHandle error(wasmtime_instance_pre_instantiate(module.pre_.get(), guest->context_,
                                                            &guest->instance_, &raw_trap));
  const TrapHandle trap(raw_trap);
  if (error || trap) {
    return Fail(wasm::EngineFailure("An interpreter cannot be made", error, trap));
  }
  if (!placed.taken()) {
    return Fail(errors::kWasmEngine, "The engine did not take the memory that was placed for it.");
  }
  CAISSON_ASSIGN(guest->turn_, guest->Function("turn"));
  CAISSON_ASSIGN(guest->allocate_, guest->Function("host_alloc"));
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(guest->context_, &guest->instance_,
                                    wasm::kStackPointerExport.data(),
                                    wasm::kStackPointerExport.size(), &item)) {
    return Fail(errors::kWasmEngine, "The interpreter does not show its stack's pointer.");
  }
  guest->stack_pointer_ = item.of.global;
  const wasm::MemorySlot* memory = guest->slot_;
  system.set_memory([memory] {
    return wasm::MemoryView{reinterpret_cast<std::uint8_t*>(memory->data()), memory->size()};
  });
  guest->ticking_.emplace(module.engine_);
  return guest;
}

Guest::~Guest() { system_.set_memory({}); }

Result<wasmtime_func_t> Guest::Function(std::string_view name) {
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(), &item) ||
      item.kind != WASMTIME_EXTERN_FUNC) {
    return Fail(errors::kWasmEngine, fmt::format("The interpreter exports no {}.", name));
  }
  return item.of.func;
}

GuestCall::End Guest::EndOf(const TrapHandle& trap) const {
  wasmtime_trap_code_t code = 0;
  const bool has_code = trap && wasmtime_trap_code(trap.get(), &code);
  if (has_code && code == WASMTIME_TRAP_CODE_STACK_OVERFLOW) return GuestCall::End::kStack;
  if (has_code && code == WASMTIME_TRAP_CODE_INTERRUPT) return GuestCall::End::kStopped;
  return GuestCall::End::kTrap;
}

GuestCall Guest::Call(const wasmtime_func_t& function, std::int32_t a, std::int32_t b) {
  std::array<wasmtime_val_raw_t, 2> values{};
  values[0].i32 = a;
  values[1].i32 = b;
  wasm_trap_t* raw_trap = nullptr;
  const ErrorHandle error(
      wasmtime_func_call_unchecked(context_, &function, values.data(), values.size(), &raw_trap));
  const TrapHandle trap(raw_trap);
  if (!error && !trap) return {GuestCall::End::kReturned, values[0].i32, {}};
  if (system_.exit_code()) return {GuestCall::End::kExit, 0, {}};
  return {EndOf(trap), 0, error ? wasm::Describe(error.get()) : wasm::Describe(trap.get())};
}

GuestCall Guest::Initialize() {
  const auto function = Function("_initialize");
  if (!function) return {GuestCall::End::kTrap, 0, function.error().message};
  return Call(*function, 0, 0);
}

std::uint32_t Guest::Place(std::string_view text) {
  const GuestCall call = Call(allocate_, static_cast<std::int32_t>(text.size()), 0);
  const auto at = static_cast<std::uint32_t>(call.value);
  if (!call.ok() || at == 0 || at > slot_->size() || text.size() > slot_->size() - at) return 0;
  std::memcpy(slot_->data() + at, text.data(), text.size());
  return at;
}

GuestCall Guest::Turn(std::uint32_t address, std::uint32_t size) {
  return Call(turn_, static_cast<std::int32_t>(address), static_cast<std::int32_t>(size));
}

GuestCall Guest::Turn(std::string_view source) {
  const std::uint32_t at = Place(source);
  if (at == 0) return {GuestCall::End::kTrap, 0, "the interpreter has no memory for the source"};
  return Turn(at, static_cast<std::uint32_t>(source.size()));
}

std::int32_t Guest::stack_pointer() const {
  wasmtime_val_t value;
  wasmtime_global_get(context_, &stack_pointer_, &value);
  return value.of.i32;
}

}  // namespace caisson::isolate::cpython
