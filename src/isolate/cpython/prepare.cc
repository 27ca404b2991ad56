// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "errors/isolate.h"
#include "isolate/cpython/guest.h"
#include "isolate/cpython/layout.h"
#include "isolate/cpython/pins.h"
#include "isolate/cpython/snapshot.h"
#include "isolate/cpython/template.h"
#include "os/fd.h"
#include "os/syscall_error.h"
#include "wasm/artifact.h"
#include "wasm/detach.h"
#include "wasm/module_cache.h"
#include "wasm/owned_file.h"

namespace caisson::isolate::cpython {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// Of compiling the pinned artifact, on the machine that it was measured on.
constexpr double kExpectedCpuSeconds = 120;
constexpr seconds kHeartbeat(5);

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Says now and then how far the compilation is, while one lives.
class Heartbeat {
 public:
  explicit Heartbeat(const OnPrepareProgress& progress)
      : progress_(progress), thread_([this](const std::stop_token& stop) { Beat(stop); }) {}

 private:
  void Beat(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, kHeartbeat, [&] { return stop.stop_requested(); })) {
      const auto elapsed = std::chrono::duration_cast<seconds>(Clock::now() - start_);
      const double cpu = CpuSeconds() - cpu_at_start_;
      const double done = std::min(0.99, cpu / kExpectedCpuSeconds);
      progress_({"compile",
                 fmt::format("compiling: {} s passed, about {:.0f} % of the work ({:.0f} of some "
                             "{:.0f} CPU seconds)",
                             elapsed.count(), 100 * done, cpu, kExpectedCpuSeconds),
                 elapsed, done});
    }
  }

  const OnPrepareProgress& progress_;
  const Clock::time_point start_ = Clock::now();
  const double cpu_at_start_ = CpuSeconds();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// Held while this process prepares.
Result<os::UniqueFd> Lock(const std::string& directory, const OnPrepareProgress& progress) {
  const std::string path = directory + "/cpython.lock";
  os::UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return wasm::CacheFailure(directory, os::ErrnoText(errno));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  progress({"wait", "another process is preparing the runtime; waiting for it", seconds(0), -1});
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return wasm::CacheFailure(directory, os::ErrnoText(errno));
  }
  return fd;
}

class Preparation {
 public:
  Preparation(const CPythonOptions& options, const OnPrepareProgress& progress,
              const std::stop_token& stop)
      : options_(options), progress_(progress), stop_(stop) {}

  Result<void> Open() {
    const std::string directory =
        options_.cache_dir.empty() ? wasm::DefaultCacheDir() : options_.cache_dir;
    CAISSON_ASSIGN(wasm::ModuleCache cache, wasm::ModuleCache::Open(directory));
    cache_.emplace(std::move(cache));
    store_.emplace(directory, options_.max_snapshot_bytes);
    CAISSON_ASSIGN(engine_, wasm::Engine::CreateMapped({.max_wasm_stack_bytes = kGuestStackBytes}));
    return {};
  }

  bool HasCode() { return cache_->HasMapped(*engine_, CodeIdentity(), checked_); }
  std::vector<std::string> MissingSets() {
    std::vector<std::string> missing;
    for (const std::string& set : options_.sets) {
      if (!store_->Has(SnapshotKey(set, options_.tenant), options_.max_snapshot_age, checked_)) {
        missing.push_back(set);
      }
    }
    return missing;
  }

  Result<void> Run() {
    CAISSON_ASSIGN(const os::UniqueFd lock, Lock(cache_->directory(), progress_));
    if (!HasCode()) CAISSON_TRY(Compile());
    const std::vector<std::string> missing = MissingSets();
    if (missing.empty()) return {};
    CAISSON_TRY(LoadForTemplates());
    for (const std::string& set : missing) CAISSON_TRY(MakeSnapshot(set));
    return {};
  }

 private:
  Result<void> CheckStop() const {
    if (!stop_.stop_requested()) return {};
    return Fail(errors::kIsolateNotPrepared, "The preparation of the runtime was cancelled.");
  }

  Result<void> DetachArtifact() {
    if (detached_) return {};
    CAISSON_TRY(CheckStop());
    const std::string directory =
        options_.directory.empty() ? DefaultDirectory() : options_.directory;
    CAISSON_ASSIGN(const std::string artifact,
                   wasm::LoadArtifact(directory + "/python.wasm", pins::kSha256));
    CAISSON_ASSIGN(wasm::DetachedModule detached, wasm::Detach(artifact));
    detached_ = std::move(detached);
    return {};
  }

  Result<void> Compile() {
    progress_({"compile",
               "compiling CPython for this processor, once: about 240 MB on disk, two to three "
               "minutes of two cores, 2.5 GB of memory meanwhile",
               seconds(0), 0});
    CAISSON_TRY(DetachArtifact());
    CAISSON_TRY(CheckStop());
    const Heartbeat heartbeat(progress_);
    return cache_->CompileMapped(*engine_, CodeIdentity(), detached_->binary);
  }

  Result<void> LoadForTemplates() {
    CAISSON_TRY(DetachArtifact());
    detached_->binary = std::string();
    const std::string directory =
        options_.directory.empty() ? DefaultDirectory() : options_.directory;
    CAISSON_ASSIGN(files_, MapGuestFiles(directory, checked_));
    CAISSON_ASSIGN(wasm::ModuleHandle code, cache_->LoadMapped(*engine_, CodeIdentity(), checked_));
    CAISSON_ASSIGN(module_, GuestModule::Make(*engine_, std::move(code)));
    CAISSON_ASSIGN(first_memory_,
                   wasm::MemoryImage::Make(detached_->memory, detached_->memory_bytes));
    return {};
  }

  Result<void> MakeSnapshot(const std::string& set) {
    CAISSON_TRY(CheckStop());
    const auto start = Clock::now();
    progress_(
        {"snapshot " + set, fmt::format("making the interpreter \"{}\"", set), seconds(0), -1});
    const TemplateInputs inputs{*module_, files_, first_memory_,
                                static_cast<std::int32_t>(detached_->stack_pointer)};
    CAISSON_ASSIGN(const Snapshot snapshot, MakeTemplate(inputs, set, stop_));
    CAISSON_TRY(store_->Save(SnapshotKey(set, options_.tenant), snapshot));
    const auto elapsed = std::chrono::duration_cast<seconds>(Clock::now() - start);
    progress_({"snapshot " + set,
               fmt::format("made the interpreter \"{}\": {} MiB, {} s", set,
                           snapshot.image->size() >> 20, elapsed.count()),
               elapsed, 1});
    return {};
  }

  const CPythonOptions& options_;
  const OnPrepareProgress& progress_;
  const std::stop_token& stop_;
  std::optional<wasm::ModuleCache> cache_;
  std::optional<SnapshotStore> store_;
  std::unique_ptr<wasm::Engine> engine_;
  std::optional<wasm::DetachedModule> detached_;
  wasm::CheckedFiles checked_;
  GuestFiles files_;
  std::unique_ptr<GuestModule> module_;
  std::shared_ptr<const wasm::MemoryImage> first_memory_;
};

}  // namespace

Result<void> Prepare(const CPythonOptions& options, const OnPrepareProgress& progress,
                     const std::stop_token& stop) {
  Preparation preparation(options, progress, stop);
  CAISSON_TRY(preparation.Open());
  return preparation.Run();
}

}  // namespace caisson::isolate::cpython
