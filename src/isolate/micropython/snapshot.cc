// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "errors/isolate.h"
#include "errors/wasm.h"
#include "isolate/micropython/boot.h"
#include "isolate/micropython/layout.h"
#include "wasm/binary.h"
#include "wasm/record.h"

namespace caisson::isolate {
namespace {

constexpr std::uint32_t kPage = 4096;
constexpr std::string_view kCallExport = "caisson_call";
constexpr std::string_view kFailedExport = "caisson_failed_allocation";
constexpr std::string_view kMemoryExport = "memory";

using wasm::EngineFailure;
using wasm::ErrorHandle;
using wasm::TrapHandle;

wasm_trap_t* RefuseHostCall(void*, wasmtime_caller_t*, wasmtime_val_raw_t*, std::size_t) {
  constexpr std::string_view kText = "the guest called a host function";
  return wasmtime_trap_new(kText.data(), kText.size());
}

// The note: one line of numbers, then one line per word of the tail.
std::string NoteOf(const BootImage& image) {
  std::string note = fmt::format("{} {} {} {} {} {}\n", image.memory_bytes, image.load, image.call,
                                 image.check, image.builtins, image.stack_pointer);
  for (const auto& [address, word] : image.tail) note += fmt::format("{} {}\n", address, word);
  return note;
}

std::optional<std::vector<std::uint64_t>> Numbers(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size()) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return numbers;
}

// The engine's words end in the cause, behind a trace of the artifact's own functions.
std::string Cause(std::string text) {
  constexpr std::string_view kMark = "Caused by:\n";
  if (const std::size_t at = text.rfind(kMark); at != std::string::npos) {
    text.erase(0, at + kMark.size());
  }
  const std::size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  const std::size_t end = text.find_last_not_of(" \n");
  return end == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

}  // namespace

Result<std::unique_ptr<Snapshot>> Snapshot::Make(wasm::Engine& engine,
                                                 const wasm::ModuleCache& cache,
                                                 std::string_view artifact,
                                                 const SnapshotOptions& options) {
  const auto make = [&]() -> Result<wasm::ModuleSource> {
    CAISSON_ASSIGN(const BootImage image,
                   Boot(engine, artifact, options.heap_bytes, options.restricted));
    wasm::Rewrite rewrite;
    rewrite.exports = {
        {std::string(kCallExport), wasm::ExternKind::kFunction, layout::kCallFunctionIndex}};
    rewrite.replace_memory = true;
    rewrite.segments = wasm::NonZeroSegments(image.memory);
    rewrite.memory_bytes = image.memory_bytes;
    rewrite.global0 = image.stack_pointer;
    CAISSON_ASSIGN(const std::string frozen, wasm::Apply(artifact, rewrite));
    CAISSON_ASSIGN(std::string binary,
                   wasm::RecordArgument(frozen, layout::kAllocationFailedFunction, kFailedExport));
    return wasm::ModuleSource{std::move(binary), NoteOf(image)};
  };
  CAISSON_ASSIGN(wasm::CachedModule cached,
                 cache.Load(engine, BootIdentity(options.heap_bytes, options.restricted), make));
  std::unique_ptr<Snapshot> snapshot(new Snapshot(options));
  CAISSON_TRY(snapshot->Adopt(engine, std::move(cached)));
  return snapshot;
}

Result<void> Snapshot::Adopt(wasm::Engine& engine, wasm::CachedModule cached) {
  const std::optional<std::vector<std::uint64_t>> note = Numbers(cached.note);
  if (!note || note->size() < 6 || note->size() % 2 != 0) {
    return Fail(errors::kWasmEngine,
                "A snapshot in the module cache has a note of another form; "
                "remove the cache directory.");
  }
  memory_bytes_ = (*note)[0];
  load_ = static_cast<std::uint32_t>((*note)[1]);
  call_ = static_cast<std::uint32_t>((*note)[2]);
  check_ = static_cast<std::uint32_t>((*note)[3]);
  builtins_ = static_cast<std::uint32_t>((*note)[4]);
  stack_pointer_ = static_cast<std::uint32_t>((*note)[5]);
  for (std::size_t i = 6; i < note->size(); i += 2) {
    tail_.emplace_back(static_cast<std::uint32_t>((*note)[i]),
                       static_cast<std::uint32_t>((*note)[i + 1]));
  }
  compiled_ = cached.compiled;
  module_ = std::move(cached.module);
  linker_.reset(wasmtime_linker_new(engine.get()));
  CAISSON_TRY(wasm::DefineWasi(linker_.get(), module_.get()));
  CAISSON_TRY(DefineHostFunctions(linker_.get(), RefuseHostCall));
  wasmtime_instance_pre_t* pre = nullptr;
  ErrorHandle error(wasmtime_linker_instantiate_pre(linker_.get(), module_.get(), &pre));
  if (error) return Fail(EngineFailure("The snapshot cannot be linked", error, nullptr));
  pre_.reset(pre);

  wasm::WasiContext context;
  CAISSON_ASSIGN(const std::unique_ptr<Instance> instance,
                 Instance::Make(engine, *this, memory_bytes_, context));
  const GuestMemory memory = instance->memory();
  const std::uint64_t end =
      std::uint64_t{memory.Word(layout::kPoolStart)} +
      (std::uint64_t{memory.Word(layout::kLastUsedBlock)} + 1) * layout::kBlockBytes;
  image_ = memory.Bytes(0, std::min(memory.size(), (end + kPage - 1) / kPage * kPage));
  return {};
}

Result<std::unique_ptr<Instance>> Instance::Make(wasm::Engine& engine, const Snapshot& snapshot,
                                                 std::uint64_t memory_limit,
                                                 wasm::WasiContext& context) {
  std::unique_ptr<Instance> instance(new Instance(snapshot, context));
  instance->store_.reset(wasmtime_store_new(engine.get(), &context, nullptr));
  wasmtime_context_t* store = wasmtime_store_context(instance->store_.get());
  instance->store_context_ = store;
  constexpr std::int64_t kTableElements = 10'000;
  wasmtime_store_limiter(instance->store_.get(), static_cast<std::int64_t>(memory_limit),
                         kTableElements, 1, 1, 2);
  instance->SetFuel(0);
  instance->SetDeadline(UINT32_MAX);
  wasmtime_instance_t made;
  wasm_trap_t* raw_trap = nullptr;
  const ErrorHandle error(
      wasmtime_instance_pre_instantiate(snapshot.pre_.get(), store, &made, &raw_trap));
  const TrapHandle trap(raw_trap);
  if (error || trap) return Fail(EngineFailure("An instance cannot be made", error, trap));
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(store, &made, kMemoryExport.data(), kMemoryExport.size(),
                                    &item)) {
    return Fail(errors::kWasmEngine, "The snapshot exports no memory.");
  }
  instance->memory_ = item.of.memory;
  if (!wasmtime_instance_export_get(store, &made, kCallExport.data(), kCallExport.size(), &item)) {
    return Fail(errors::kWasmEngine, "The snapshot exports no entry.");
  }
  instance->call_ = item.of.func;
  if (!wasmtime_instance_export_get(store, &made, kFailedExport.data(), kFailedExport.size(),
                                    &item)) {
    return Fail(errors::kWasmEngine, "The snapshot does not record failed allocations.");
  }
  instance->failed_allocation_ = item.of.global;
  const GuestMemory memory = instance->memory();
  for (const auto& [address, word] : snapshot.tail_) memory.Write(address, word);
  return instance;
}

GuestMemory Instance::memory() {
  return {wasmtime_memory_data(store_context_, &memory_),
          wasmtime_memory_data_size(store_context_, &memory_)};
}

void Instance::Apply(const PageDelta& delta) {
  const GuestMemory target = memory();
  for (std::size_t i = 0; i < delta.addresses.size(); ++i) {
    target.WriteBytes(delta.addresses[i], std::string_view(delta.bytes).substr(i * kPage, kPage));
  }
}

PageDelta Instance::Difference() {
  static constexpr std::array<char, kPage> kZero{};
  const GuestMemory guest = memory();
  const std::uint64_t used =
      std::uint64_t{guest.Word(layout::kPoolStart)} +
      (std::uint64_t{guest.Word(layout::kLastUsedBlock)} + 1) * layout::kBlockBytes;
  const std::string& image = snapshot_.image_;
  PageDelta delta;
  const std::uint64_t end = std::max<std::uint64_t>(used, image.size());
  for (std::uint64_t at = 0; at < end && guest.Holds(at, kPage); at += kPage) {
    const char* const before = at < image.size() ? image.data() + at : kZero.data();
    const std::string_view page = guest.Bytes(at, kPage);
    if (std::memcmp(page.data(), before, kPage) == 0) continue;
    delta.addresses.push_back(static_cast<std::uint32_t>(at));
    delta.bytes += page;
  }
  return delta;
}

std::uint32_t Instance::failed_allocation() {
  wasmtime_val_t value;
  wasmtime_global_get(store_context_, &failed_allocation_, &value);
  return static_cast<std::uint32_t>(value.of.i32);
}

void Instance::SetFuel(std::uint64_t fuel) {
  // Only fails when the engine does not count fuel; ours always does.
  const ErrorHandle error(wasmtime_context_set_fuel(store_context_, fuel == 0 ? UINT64_MAX : fuel));
}

std::uint64_t Instance::fuel() {
  std::uint64_t left = 0;
  const ErrorHandle error(wasmtime_context_get_fuel(store_context_, &left));
  return left;
}

void Instance::SetDeadline(std::uint64_t epochs) {
  wasmtime_context_set_epoch_deadline(store_context_, epochs);
}

CallResult Instance::Call(std::uint32_t function, const std::vector<std::uint32_t>& arguments) {
  // The array stands above the stack pointer, where the collector looks for roots.
  const std::uint32_t array = snapshot_.stack_pointer();
  const GuestMemory target = memory();
  const std::size_t count = std::min(arguments.size(), kMaxArguments);
  for (std::size_t i = 0; i < kMaxArguments; ++i) {
    target.Write(array + 4 * i, i < count ? arguments[i] : 0u);
  }
  std::array<wasmtime_val_raw_t, 4> values{};
  values[0].i32 = static_cast<std::int32_t>(function);
  values[1].i32 = static_cast<std::int32_t>(count);
  values[2].i32 = 0;
  values[3].i32 = static_cast<std::int32_t>(array);
  wasm_trap_t* raw_trap = nullptr;
  const ErrorHandle error(wasmtime_func_call_unchecked(store_context_, &call_, values.data(),
                                                       values.size(), &raw_trap));
  const TrapHandle trap(raw_trap);
  if (!error && !trap) return {CallEnd::kReturned, static_cast<std::uint32_t>(values[0].i32), {}};
  if (context_.exit_code)
    return {CallEnd::kExit, 0, fmt::format("exit code {}", *context_.exit_code)};
  if (error) return {CallEnd::kTrap, 0, Cause(wasm::Describe(error.get()))};
  wasmtime_trap_code_t code = 0;
  if (!wasmtime_trap_code(trap.get(), &code))
    return {CallEnd::kTrap, 0, Cause(wasm::Describe(trap.get()))};
  switch (code) {
    case WASMTIME_TRAP_CODE_OUT_OF_FUEL:
      return {CallEnd::kFuel, 0, {}};
    case WASMTIME_TRAP_CODE_INTERRUPT:
      return {CallEnd::kDeadline, 0, {}};
    case WASMTIME_TRAP_CODE_STACK_OVERFLOW:
      return {CallEnd::kStack, 0, Cause(wasm::Describe(trap.get()))};
    default:
      return {CallEnd::kTrap, 0, Cause(wasm::Describe(trap.get()))};
  }
}

}  // namespace caisson::isolate
