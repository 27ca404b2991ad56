// SPDX-License-Identifier: Apache-2.0
// One jailed interpreter with a set of libraries imported, from which calls are forked. It runs
// trusted code only: imports of the root file system's libraries, then a loop of ours; scripts run
// in its children. Thread-safe once started.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "isolate/native/options.h"
#include "isolate/native/wire.h"
#include "jail/spawn.h"
#include "json/value.h"
#include "os/fd.h"

namespace caisson::isolate::native {

class Zygote {
 public:
  // Blocks until the imports are done. Libraries that cannot be imported are named in ready();
  // fails with jail.unavailable, or isolate.root_unusable when the interpreter does not start or
  // when asked to stop.
  static Result<std::unique_ptr<Zygote>> Start(const NativeOptions& options, const LibrarySet& set,
                                               const std::stop_token& stop);

  // Takes ForkRequests.
  int control() const { return control_.get(); }
  bool alive() const;
  // It is dying or does not answer: from now on it is not alive.
  void GiveUp();
  pid_t pid() const { return jailed_.process.pid(); }

  // {"python": "3.11.2", "libraries": {name: version}, "failed": {name: error}, "import_ms": 521}
  const json::Value& ready() const { return ready_; }
  const std::vector<jail::WallReport>& walls() const { return jailed_.walls; }

 private:
  Zygote() = default;
  Result<void> AwaitReady(std::chrono::milliseconds timeout, const std::stop_token& stop);
  std::unexpected<Status> NotReady(const std::string& why) const;

  std::atomic<bool> given_up_{false};
  std::string name_;
  os::UniqueFd control_;
  os::UniqueFd log_;  // what it wrote while it started
  jail::Jailed jailed_;
  json::Value ready_;
};

}  // namespace caisson::isolate::native
