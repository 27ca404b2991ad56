// SPDX-License-Identifier: Apache-2.0
#include "wasm/wasi_system.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>
#include <utility>

#include "wasm/wasi_calls.h"

namespace caisson::wasm {
namespace {

using std::chrono::nanoseconds;

constexpr std::string_view kModule = "wasi_snapshot_preview1";
constexpr std::uint32_t kRealtime = 0;
constexpr std::uint32_t kMonotonic = 1;
constexpr std::uint32_t kThreadCpu = 3;

// How long a sleep goes on without a look at whether it may.
constexpr nanoseconds kNap = std::chrono::milliseconds(5);

clockid_t HostClock(std::uint32_t clock) {
  switch (clock) {
    case kRealtime:
      return CLOCK_REALTIME;
    case kMonotonic:
      return CLOCK_MONOTONIC;
    default:
      return CLOCK_THREAD_CPUTIME_ID;  // a guest's process is a thread of ours
  }
}

}  // namespace

WasiSystem::WasiSystem(const WasiSystemOptions& options)
    : options_(options), files_(options.files) {
  descriptors_[0] = Descriptor{.can_read = true};
  descriptors_[1] = Descriptor{.can_write = true};
  descriptors_[2] = Descriptor{.can_write = true};
}

void WasiSystem::OpenRoot() {
  descriptors_[3] = Descriptor{.node = files_.root(), .can_read = true, .is_root = true};
}

nanoseconds WasiSystem::Now(std::uint32_t clock) const {
  if (options_.clock == ClockPolicy::kFixed) {
    return (clock == kRealtime ? options_.fixed_time : nanoseconds(0)) + slept_;
  }
  timespec now{};
  clock_gettime(HostClock(clock), &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

void WasiSystem::Sleep(nanoseconds duration) {
  if (options_.clock == ClockPolicy::kFixed) {
    constexpr nanoseconds kFar = std::chrono::hours(24 * 365 * 100);
    slept_ = std::min(kFar, slept_ + std::min(kFar, duration));
    return;
  }
  while (duration > nanoseconds(0)) {
    const nanoseconds left = time_left_ ? time_left_() : duration;
    const nanoseconds nap = std::min({kNap, duration, left});
    if (nap <= nanoseconds(0)) return;
    std::this_thread::sleep_for(nap);
    duration -= nap;
  }
}

Errno WasiCalls::StoreSizes(const std::vector<std::string>& texts) const {
  std::uint32_t bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<std::uint32_t>(text.size()) + 1;
  const auto count = static_cast<std::uint32_t>(texts.size());
  return Store(u32(0), count) && Store(u32(1), bytes) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::StoreTexts(const std::vector<std::string>& texts) const {
  std::uint64_t pointer = u32(0);
  std::uint64_t at = u32(1);
  for (const std::string& text : texts) {
    const std::string_view with_end(text.c_str(), text.size() + 1);
    if (!Store(pointer, static_cast<std::uint32_t>(at)) || !Put(at, with_end)) {
      return Errno::kFault;
    }
    pointer += 4;
    at += with_end.size();
  }
  return Errno::kSuccess;
}

Errno WasiCalls::ArgsSizesGet() { return StoreSizes(system.options_.arguments); }
Errno WasiCalls::ArgsGet() { return StoreTexts(system.options_.arguments); }
Errno WasiCalls::EnvironSizesGet() { return StoreSizes(system.options_.environment); }
Errno WasiCalls::EnvironGet() { return StoreTexts(system.options_.environment); }

Errno WasiCalls::ClockResGet() {
  if (u32(0) > kThreadCpu) return Errno::kInvalid;
  return Store(u32(1), std::uint64_t{1000}) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::ClockTimeGet() {
  if (u32(0) > kThreadCpu) return Errno::kInvalid;
  const auto now = static_cast<std::uint64_t>(Now(u32(0)).count());
  return Store(u32(2), now) ? Errno::kSuccess : Errno::kFault;
}

Errno WasiCalls::RandomGet() {
  if (!memory.Holds(u32(0), u32(1))) return Errno::kFault;
  std::uint8_t* at = memory.data + u32(0);
  std::size_t left = u32(1);
  while (left > 0) {
    // A short request: a long one could not be ended by a signal or a deadline.
    const ssize_t got = getrandom(at, std::min<std::size_t>(left, 1u << 16), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Errno::kIo;
    at += got;
    left -= static_cast<std::size_t>(got);
    if (system.time_left_ && left > 0 && system.time_left_() <= nanoseconds(0)) return Errno::kIo;
  }
  system.entropy_bytes_ += u32(1);
  return Errno::kSuccess;
}

Errno WasiCalls::SchedYield() { return Errno::kSuccess; }
Errno WasiCalls::NotSupported() { return Errno::kNotSupported; }
Errno WasiCalls::Nothing() { return Errno::kNoSys; }

Errno WasiCalls::ProcExit() {
  system.exit_code_ = u32(0);
  return Errno::kSuccess;
}

// Files and streams are always ready; else the nearest timeout is slept for.
Errno WasiCalls::PollOneoff() {
  constexpr std::uint64_t kSubscription = 48;
  constexpr std::uint64_t kEvent = 32;
  constexpr std::uint32_t kMostSubscriptions = 256;
  constexpr std::uint16_t kAbsolute = 1;
  const std::uint32_t count = u32(2);
  if (count == 0 || count > kMostSubscriptions) return Errno::kInvalid;
  if (!memory.Holds(u32(0), count * kSubscription) || !memory.Holds(u32(1), count * kEvent) ||
      !memory.Holds(u32(3), 4)) {
    return Errno::kFault;
  }
  struct Ready {
    std::uint64_t data;
    Errno error;
    std::uint8_t type;
  };
  std::vector<Ready> ready;
  std::optional<nanoseconds> nearest;
  std::vector<std::pair<nanoseconds, Ready>> timers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = u32(0) + i * kSubscription;
    const auto data = *Load<std::uint64_t>(at);
    const auto type = *Load<std::uint8_t>(at + 8);
    if (type == 1 || type == 2) {
      const bool open = Fd(*Load<std::uint32_t>(at + 16)) != nullptr;
      ready.push_back({data, open ? Errno::kSuccess : Errno::kBadFd, type});
      continue;
    }
    const auto clock = *Load<std::uint32_t>(at + 16);
    if (type != 0 || clock > kMonotonic) {
      ready.push_back({data, Errno::kInvalid, type});
      continue;
    }
    constexpr std::uint64_t kFar = std::uint64_t{1} << 62;
    nanoseconds wait(static_cast<std::int64_t>(std::min(*Load<std::uint64_t>(at + 24), kFar)));
    if ((*Load<std::uint16_t>(at + 40) & kAbsolute) != 0) wait -= Now(clock);
    timers.push_back({wait, {data, Errno::kSuccess, type}});
    if (!nearest || wait < *nearest) nearest = wait;
  }
  if (ready.empty() && nearest) {
    system.Sleep(*nearest);
    for (const auto& [wait, event] : timers) {
      if (wait <= *nearest) ready.push_back(event);
    }
  }
  std::uint64_t at = u32(1);
  for (const Ready& event : ready) {
    std::array<char, kEvent> bytes{};
    std::memcpy(bytes.data(), &event.data, sizeof event.data);
    std::memcpy(bytes.data() + 8, &event.error, sizeof event.error);
    bytes[10] = static_cast<char>(event.type);
    if (!Put(at, {bytes.data(), bytes.size()})) return Errno::kFault;
    at += kEvent;
  }
  return Store(u32(3), static_cast<std::uint32_t>(ready.size())) ? Errno::kSuccess : Errno::kFault;
}

struct WasiSystem::Function {
  std::string_view name;
  Errno (WasiCalls::*run)();
  unsigned arguments;
};

namespace {

using F = WasiSystem::Function;

}  // namespace

struct WasiLink {
  static constexpr std::array kFunctions = {
      F{"args_get", &WasiCalls::ArgsGet, 2},
      F{"args_sizes_get", &WasiCalls::ArgsSizesGet, 2},
      F{"environ_get", &WasiCalls::EnvironGet, 2},
      F{"environ_sizes_get", &WasiCalls::EnvironSizesGet, 2},
      F{"clock_res_get", &WasiCalls::ClockResGet, 2},
      F{"clock_time_get", &WasiCalls::ClockTimeGet, 3},
      F{"fd_advise", &WasiCalls::FdAdvise, 4},
      F{"fd_allocate", &WasiCalls::FdAllocate, 3},
      F{"fd_close", &WasiCalls::FdClose, 1},
      F{"fd_datasync", &WasiCalls::FdSync, 1},
      F{"fd_fdstat_get", &WasiCalls::FdFdstatGet, 2},
      F{"fd_fdstat_set_flags", &WasiCalls::FdFdstatSetFlags, 2},
      F{"fd_fdstat_set_rights", &WasiCalls::FdFdstatSetRights, 3},
      F{"fd_filestat_get", &WasiCalls::FdFilestatGet, 2},
      F{"fd_filestat_set_size", &WasiCalls::FdFilestatSetSize, 2},
      F{"fd_filestat_set_times", &WasiCalls::FdFilestatSetTimes, 4},
      F{"fd_pread", &WasiCalls::FdPread, 5},
      F{"fd_prestat_get", &WasiCalls::FdPrestatGet, 2},
      F{"fd_prestat_dir_name", &WasiCalls::FdPrestatDirName, 3},
      F{"fd_pwrite", &WasiCalls::FdPwrite, 5},
      F{"fd_read", &WasiCalls::FdRead, 4},
      F{"fd_readdir", &WasiCalls::FdReaddir, 5},
      F{"fd_renumber", &WasiCalls::FdRenumber, 2},
      F{"fd_seek", &WasiCalls::FdSeek, 4},
      F{"fd_sync", &WasiCalls::FdSync, 1},
      F{"fd_tell", &WasiCalls::FdTell, 2},
      F{"fd_write", &WasiCalls::FdWrite, 4},
      F{"path_create_directory", &WasiCalls::PathCreateDirectory, 3},
      F{"path_filestat_get", &WasiCalls::PathFilestatGet, 5},
      F{"path_filestat_set_times", &WasiCalls::PathFilestatSetTimes, 7},
      F{"path_link", &WasiCalls::NotSupported, 7},
      F{"path_open", &WasiCalls::PathOpen, 9},
      F{"path_readlink", &WasiCalls::PathReadlink, 6},
      F{"path_remove_directory", &WasiCalls::PathRemoveDirectory, 3},
      F{"path_rename", &WasiCalls::PathRename, 6},
      F{"path_symlink", &WasiCalls::NotSupported, 5},
      F{"path_unlink_file", &WasiCalls::PathUnlinkFile, 3},
      F{"poll_oneoff", &WasiCalls::PollOneoff, 4},
      F{"proc_exit", &WasiCalls::ProcExit, 1},
      F{"random_get", &WasiCalls::RandomGet, 2},
      F{"sched_yield", &WasiCalls::SchedYield, 0},
      F{"", &WasiCalls::Nothing, 0},  // sockets, signals, and what may come
  };
  static constexpr std::size_t kUnknown = kFunctions.size() - 1;

  static WasiSystem& SystemOf(wasmtime_caller_t* caller) {
    return *static_cast<WasiSystem*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
  }

  static wasm_trap_t* Dispatch(void* index, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                               std::size_t) {
    WasiSystem& system = SystemOf(caller);
    const auto number = reinterpret_cast<std::uintptr_t>(index);
    values[0].i32 = static_cast<std::int32_t>(system.Call(number, values));
    if (!system.exit_code_) return nullptr;
    constexpr std::string_view kText = "the guest ended itself";
    return wasmtime_trap_new(kText.data(), kText.size());
  }

  static Result<void> Define(wasmtime_linker_t* linker, const wasm_importtype_t* import) {
    const wasm_name_t* raw = wasm_importtype_name(import);
    const std::string_view name(raw->data, raw->size);
    const wasm_functype_t* type = wasm_externtype_as_functype_const(wasm_importtype_type(import));
    const std::size_t index = WasiSystem::Find(name).value_or(kUnknown);
    const std::size_t given = type == nullptr ? 0 : wasm_functype_params(type)->size;
    if (type == nullptr || (index != kUnknown && given != kFunctions[index].arguments)) {
      return Fail(
          EngineFailure(fmt::format("The import {} is no WASI function", name), nullptr, nullptr));
    }
    const ErrorHandle error(wasmtime_linker_define_func_unchecked(
        linker, kModule.data(), kModule.size(), name.data(), name.size(), type, Dispatch,
        reinterpret_cast<void*>(index), nullptr));
    if (error) return Fail(EngineFailure("A WASI function cannot be defined", error, nullptr));
    return {};
  }
};

Errno WasiSystem::Call(std::size_t index, const wasmtime_val_raw_t* arguments) {
  WasiCalls calls{*this, memory_ ? memory_() : MemoryView{}, arguments};
  return (calls.*WasiLink::kFunctions[std::min(index, WasiLink::kUnknown)].run)();
}

std::optional<std::size_t> WasiSystem::Find(std::string_view name) {
  for (std::size_t i = 0; i < WasiLink::kUnknown; ++i) {
    if (WasiLink::kFunctions[i].name == name) return i;
  }
  return std::nullopt;
}

std::size_t WasiSystem::function_count() { return WasiLink::kUnknown; }
std::string_view WasiSystem::function_name(std::size_t index) {
  return WasiLink::kFunctions[index].name;
}
unsigned WasiSystem::argument_count(std::size_t index) {
  return WasiLink::kFunctions[index].arguments;
}

Result<void> WasiSystem::Define(wasmtime_linker_t* linker, const wasmtime_module_t* module) {
  wasm_importtype_vec_t imports;
  wasmtime_module_imports(module, &imports);
  Result<void> result;
  for (std::size_t i = 0; i < imports.size && result; ++i) {
    const wasm_name_t* from = wasm_importtype_module(imports.data[i]);
    if (std::string_view(from->data, from->size) != kModule) continue;
    result = WasiLink::Define(linker, imports.data[i]);
  }
  wasm_importtype_vec_delete(&imports);
  return result;
}

}  // namespace caisson::wasm
