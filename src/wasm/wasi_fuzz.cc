// SPDX-License-Identifier: Apache-2.0
// Any sequence of calls with any arguments over any memory: nothing outside the guest's memory is
// touched, and what it may use of files and descriptors is not exceeded.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "wasm/wasi_system.h"

namespace caisson::wasm {
namespace {

constexpr std::size_t kMemory = 16u << 10;
constexpr std::size_t kMaxArguments = 16;
constexpr FileLimits kLimits{.bytes = 64u << 10, .nodes = 24, .descriptors = 12};
constexpr std::string_view kLibrary = "bytes of the library";

void Require(bool condition) {
  if (!condition) std::abort();
}

// Mostly descriptors and addresses that exist, or nearly.
std::int64_t Argument(FuzzedDataProvider& in) {
  switch (in.ConsumeIntegralInRange(0, 5)) {
    case 0:
      return in.ConsumeIntegralInRange(0, 15);
    case 1:
      return in.ConsumeIntegralInRange<std::int64_t>(0, kMemory + 8);
    case 2:
      return in.ConsumeIntegral<std::uint8_t>();
    case 3:
      return -1 - in.ConsumeIntegral<std::uint8_t>();
    case 4:
      return in.ConsumeIntegral<std::uint32_t>();
    default:
      return in.ConsumeIntegral<std::int64_t>();
  }
}

void Run(FuzzedDataProvider& in) {
  WasiSystem system({.arguments = {"python", "-c"},
                     .environment = {"HOME=/workspace"},
                     .files = kLimits,
                     .clock = ClockPolicy::kFixed});
  std::vector<std::uint8_t> memory(kMemory);
  system.set_memory([&] { return MemoryView{memory.data(), memory.size()}; });
  system.set_time_left([] { return std::chrono::seconds(1); });
  std::size_t written = 0;
  system.set_output([&](WasiSystem::Stream, std::string_view text) { written += text.size(); });
  system.files().AddView("/usr/lib/python.zip", kLibrary);
  system.files().AddDirectory("/tmp", true);
  system.OpenRoot();

  const auto initial =
      in.ConsumeBytes<std::uint8_t>(in.ConsumeIntegralInRange<std::size_t>(0, kMemory));
  std::ranges::copy(initial, memory.begin());
  while (in.remaining_bytes() > 0 && !system.exit_code()) {
    const auto index = in.ConsumeIntegralInRange<std::size_t>(0, WasiSystem::function_count() - 1);
    std::array<wasmtime_val_raw_t, kMaxArguments> arguments{};
    const unsigned count = WasiSystem::argument_count(index);
    Require(count <= arguments.size());
    for (unsigned i = 0; i < count; ++i) arguments[i].i64 = Argument(in);
    system.Call(index, arguments.data());
    const FileUse& use = system.files().use();
    Require(use.bytes <= kLimits.bytes && use.nodes <= kLimits.nodes);
    // Three streams and the root come with the instance.
    Require(system.open_descriptors() <= kLimits.descriptors + 4);
  }
  const auto library = system.files().Find(system.files().root(), "usr/lib/python.zip");
  Require(library.has_value() && (*library)->bytes() == kLibrary);
}

}  // namespace
}  // namespace caisson::wasm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  caisson::wasm::Run(in);
  return 0;
}
