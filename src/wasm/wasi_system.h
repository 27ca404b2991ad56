// SPDX-License-Identifier: Apache-2.0
// A whole WASI (preview 1) for one instance, and nothing of the host in it: arguments and
// environment as given, files in memory, output to the embedder, a clock by policy, entropy from
// the kernel, sleep within the deadline. No sockets, links or other processes. (wasm/wasi.h is the
// smaller one, for a guest that needs no files.)
//
// Every address that the guest passes is checked against its memory before it is used; what has an
// address outside is answered kFault. For one thread. Must be the store's data
// (wasmtime_store_new) and outlive it.
#pragma once

#include <wasmtime.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "wasm/memory_files.h"
#include "wasm/wasi.h"

namespace caisson::wasm {

enum class ClockPolicy : std::uint8_t {
  kReal,
  kFixed,  // stands at `fixed_time`; sleeping moves it and takes no time
};

struct WasiSystemOptions {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value"
  FileLimits files;
  ClockPolicy clock = ClockPolicy::kReal;
  std::chrono::nanoseconds fixed_time{0};  // since 1970
};

class WasiSystem {
 public:
  enum class Stream : std::uint8_t { kOut = 1, kErr = 2 };
  // What is left until the guest must stop; asked during sleep, which ends then. Nothing or less:
  // at once.
  using TimeLeft = std::function<std::chrono::nanoseconds()>;
  using Output = std::function<void(Stream, std::string_view)>;

  explicit WasiSystem(const WasiSystemOptions& options);
  virtual ~WasiSystem() = default;
  WasiSystem(const WasiSystem&) = delete;
  WasiSystem& operator=(const WasiSystem&) = delete;

  void set_output(Output output) { output_ = std::move(output); }
  void set_time_left(TimeLeft time_left) { time_left_ = std::move(time_left); }
  // Where the guest's memory is and how large; asked at each call.
  void set_memory(std::function<MemoryView()> memory) { memory_ = std::move(memory); }

  FileTree& files() { return files_; }
  const FileTree& files() const { return files_; }
  // Opens descriptor 3 on the root. Once, when the tree's fixed part is there.
  void OpenRoot();
  std::size_t open_descriptors() const { return descriptors_.size(); }

  std::optional<std::uint32_t> exit_code() const { return exit_code_; }  // set by proc_exit
  std::uint64_t entropy_bytes() const { return entropy_bytes_; }

  // Runs the function `index` of AllFunctions() with raw arguments; the embedder's linker does so,
  // and tests may.
  Errno Call(std::size_t index, const wasmtime_val_raw_t* arguments);

  struct Function;
  static std::optional<std::size_t> Find(std::string_view name);
  static std::size_t function_count();
  static std::string_view function_name(std::size_t index);
  static unsigned argument_count(std::size_t index);

  // Defines in `linker` every wasi_snapshot_preview1 function that `module` imports. One that we do
  // not know answers kNoSys.
  static Result<void> Define(wasmtime_linker_t* linker, const wasmtime_module_t* module);

 private:
  friend struct WasiCalls;
  friend struct WasiLink;
  struct Descriptor {
    NodePtr node;  // null: a standard stream
    std::uint64_t position = 0;
    std::uint16_t flags = 0;  // append
    bool can_read = false;
    bool can_write = false;
    bool is_root = false;
    std::vector<std::pair<std::string, NodePtr>> listing;  // of a directory being read
  };

  std::chrono::nanoseconds Now(std::uint32_t clock) const;
  void Sleep(std::chrono::nanoseconds duration);

  WasiSystemOptions options_;
  FileTree files_;
  std::map<std::uint32_t, Descriptor> descriptors_;
  Output output_;
  TimeLeft time_left_;
  std::function<MemoryView()> memory_;
  std::chrono::nanoseconds slept_{0};  // kFixed
  std::optional<std::uint32_t> exit_code_;
  std::uint64_t entropy_bytes_ = 0;
};

}  // namespace caisson::wasm
