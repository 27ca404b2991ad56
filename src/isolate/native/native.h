// SPDX-License-Identifier: Apache-2.0
// The `native` runtime: CPython of a root file system in a jail. A zygote per library set has the
// imports done; each script runs in a child of it, in namespaces of its own, which may start no
// process unless options grant it. Nothing is shared between runs but what the imports left:
// address layout, hash seed and caches, which is why a runtime serves one tenant.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "isolate/native/nursery.h"
#include "isolate/native/options.h"
#include "isolate/script.h"
#include "jail/walls.h"
#include "os/cgroup_reaper.h"

namespace caisson::isolate::native {

class NativeRuntime final : public ScriptRuntime {
 public:
  // Starts nothing yet. Fails with isolate.root_unusable when `root` is no root file system.
  static Result<std::unique_ptr<NativeRuntime>> Create(NativeOptions options);

  // Starts the zygotes of all sets, one after another, until `stop` is asked for; the first failure
  // is the result. Without it each starts when the first job needs it.
  Result<void> Prepare(const std::stop_token& stop = {});
  // A zygote that died is replaced at the next call; the calls that it had end as kKilled.
  Result<ScriptOutcome> Run(const ScriptJob& job, ScriptSink& sink, std::stop_token stop) override;
  // Sets with what was imported, which walls stand, what calls share.
  json::Value Describe() const override;
  // The walls of the zygotes' jail and of every call. Empty until a zygote has started.
  std::vector<jail::WallReport> Walls() const;
  // Of the zygotes that run now, by set; 0: none.
  std::vector<pid_t> ZygotePids() const;

 private:
  struct Slot {
    LibrarySet set;
    mutable std::mutex mutex;  // of `nursery`
    std::shared_ptr<Nursery> nursery;
  };

  explicit NativeRuntime(NativeOptions options);
  Slot& Choose(const std::vector<std::string>& imports) const;
  Result<std::shared_ptr<Nursery>> Get(Slot& slot, const std::stop_token& stop) const;
  Result<void> StartReaper() const;

  NativeOptions options_;
  mutable std::mutex reaper_mutex_;  // of the next two
  mutable bool reaper_started_ = false;
  // Before the slots: it ends after their interpreters and cgroups have gone.
  mutable os::CgroupReaper reaper_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace caisson::isolate::native
