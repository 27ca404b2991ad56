// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/native.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "errors/isolate.h"
#include "isolate/native/call.h"
#include "isolate/supervision.h"
#include "os/cgroup.h"
#include "os/landlock.h"

namespace caisson::isolate::native {
namespace {

// What a call adds to its zygote before it has a script.
constexpr std::uint64_t kLeastMemory = 8u << 20;

bool IsDirectory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::size_t CountCovered(const LibrarySet& set, const std::vector<std::string>& imports) {
  return static_cast<std::size_t>(std::ranges::count_if(imports, [&set](const std::string& name) {
    return std::ranges::find(set.imports, name) != set.imports.end();
  }));
}

json::Value ToJson(const std::vector<jail::WallReport>& walls) {
  json::Array list;
  for (const jail::WallReport& wall : walls) {
    json::Object entry{{"name", wall.name}, {"stands", wall.stands}, {"mandatory", wall.mandatory}};
    if (!wall.reason.empty()) entry.Set("reason", wall.reason);
    if (!wall.what_to_do.empty()) entry.Set("what_to_do", wall.what_to_do);
    list.emplace_back(std::move(entry));
  }
  return list;
}

jail::WallReport LandlockReport(const jail::WallSet& leave_out) {
  if (leave_out.Has(jail::Wall::kLandlock)) {
    return jail::Missing(jail::Wall::kLandlock, "left out by DangerouslyLeaveOut");
  }
  const int abi = os::LandlockAbi();
  return abi > 0 ? jail::Standing(jail::Wall::kLandlock, "ABI " + std::to_string(abi))
                 : jail::Missing(jail::Wall::kLandlock, "the kernel does not offer it");
}

}  // namespace

NativeRuntime::NativeRuntime(NativeOptions options) : options_(std::move(options)) {
  std::vector<LibrarySet> sets = options_.sets;
  if (sets.empty()) sets.push_back({.name = "bare", .imports = {}});
  for (LibrarySet& set : sets) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->set = std::move(set);
  }
}

Result<std::unique_ptr<NativeRuntime>> NativeRuntime::Create(NativeOptions options) {
  for (const char* directory : {"", "/tmp", "/run", "/dev", "/proc"}) {
    if (options.root.starts_with("/") && IsDirectory(options.root + directory)) continue;
    return Fail(errors::kIsolateRootUnusable,
                "\"" + options.root + directory +
                    "\" is no directory; the native runtime needs the absolute path of a root file "
                    "system with /tmp, /run, /dev and /proc. `caisson images build` makes one.");
  }
  return std::unique_ptr<NativeRuntime>(new NativeRuntime(std::move(options)));
}

Result<void> NativeRuntime::Prepare(const std::stop_token& stop) {
  for (const auto& slot : slots_) {
    auto started = Get(*slot, stop);
    if (stop.stop_requested()) return {};
    if (!started) return Fail(std::move(started).error());
  }
  return {};
}

NativeRuntime::Slot& NativeRuntime::Choose(const std::vector<std::string>& imports) const {
  Slot* best = slots_.front().get();
  std::size_t most = 0;
  for (const auto& slot : slots_) {
    const std::size_t covered = CountCovered(slot->set, imports);
    if (covered == imports.size()) return *slot;
    if (covered > most) {
      most = covered;
      best = slot.get();
    }
  }
  return *best;
}

// Before the first zygote.
Result<void> NativeRuntime::StartReaper() const {
  const std::lock_guard lock(reaper_mutex_);
  if (reaper_started_) return {};
  (void)os::Cgroup::Sweep();  // of runs that were killed together with their reaper
  CAISSON_ASSIGN(reaper_, os::CgroupReaper::Start());
  reaper_started_ = true;
  return {};
}

Result<std::shared_ptr<Nursery>> NativeRuntime::Get(Slot& slot, const std::stop_token& stop) const {
  const std::lock_guard lock(slot.mutex);
  if (slot.nursery == nullptr || !slot.nursery->zygote().alive()) {
    CAISSON_TRY(StartReaper());
    CAISSON_ASSIGN(std::unique_ptr<Zygote> zygote, Zygote::Start(options_, slot.set, stop));
    slot.nursery = std::make_shared<Nursery>(std::move(zygote), options_);
  }
  return slot.nursery;
}

Result<ScriptOutcome> NativeRuntime::Run(const ScriptJob& job, ScriptSink& sink,
                                         std::stop_token stop) {
  if (job.limits.memory_bytes < kLeastMemory) {
    return TooLittleMemory(job.limits.memory_bytes, kLeastMemory);
  }
  Slot& slot = Choose(job.imports);
  const os::CgroupLimits limits = GroupLimits(job.limits, options_);
  // A spare or a zygote that has died meanwhile has run nothing of the script.
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto got = Get(slot, stop);
    if (stop.stop_requested()) {
      return ScriptOutcome{.fault = Fault::kKilled, .message = "the run was cancelled"};
    }
    if (!got) return Fail(std::move(got).error());
    const std::shared_ptr<Nursery> nursery = *std::move(got);
    std::optional<Spare> spare = nursery->Take(limits);
    if (!spare) {
      CAISSON_ASSIGN(spare, MakeSpare(nursery->zygote(), limits));
      if (!spare) nursery->zygote().GiveUp();
    }
    if (!spare) continue;
    CAISSON_ASSIGN(CallResult result, RunCall(*std::move(spare), options_, job, sink, stop));
    if (!result.outcome) continue;
    // Its descriptors close before it is seen to have ended; the next call must not run into that.
    if (result.zygote_lost) nursery->zygote().GiveUp();
    nursery->Bury(std::move(result.ended));
    return *std::move(result.outcome);
  }
  return Fail(errors::kIsolateWorkerLost,
              "The interpreter of library set \"" + slot.set.name +
                  "\" died three times before it could start the script. Look for what kills it "
                  "(the kernel's OOM killer?); `caisson doctor` checks the host.");
}

json::Value NativeRuntime::Describe() const {
  json::Array sets;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    json::Array imports;
    for (const std::string& name : slot->set.imports) imports.emplace_back(name);
    json::Object entry{{"name", slot->set.name}, {"imports", std::move(imports)}};
    entry.Set("warm", slot->nursery != nullptr && slot->nursery->zygote().alive());
    if (slot->nursery != nullptr) entry.Set("interpreter", slot->nursery->zygote().ready());
    sets.emplace_back(std::move(entry));
  }
  return json::Object{
      {"name", "native"},
      {"root", options_.root},
      {"tenant", options_.tenant},
      {"may_start_processes", options_.processes.has_value()},
      {"sets", std::move(sets)},
      {"walls", ToJson(Walls())},
      {"shared_between_calls",
       "address layout and hash seed of a zygote, which serves one tenant; random and numpy are "
       "seeded anew for each call"},
  };
}

std::vector<jail::WallReport> NativeRuntime::Walls() const {
  std::vector<jail::WallReport> walls;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    if (slot->nursery == nullptr || !walls.empty()) continue;
    walls = slot->nursery->zygote().walls();
    walls.push_back(LandlockReport(options_.leave_out.walls));
  }
  return walls;
}

std::vector<pid_t> NativeRuntime::ZygotePids() const {
  std::vector<pid_t> pids;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    pids.push_back(slot->nursery != nullptr && slot->nursery->zygote().alive()
                       ? slot->nursery->zygote().pid()
                       : 0);
  }
  return pids;
}

}  // namespace caisson::isolate::native
