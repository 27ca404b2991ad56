// SPDX-License-Identifier: Apache-2.0
// What the host hears of the machine without asking: requests of the machine about itself, and
// whether it is busy.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "agent/guest/host_connection.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

struct Agent;

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void OnSelf(const SelfRequest& request) = 0;
  virtual void OnActivity() = 0;
};

// Those who watch, and what they have missed.
class Watchers {
 public:
  void Add(Watcher* watcher);
  void Remove(Watcher* watcher) { watchers_.erase(watcher); }
  void TellSelf(const SelfRequest& request);
  void NoteActivity();

 private:
  std::set<Watcher*> watchers_;
  std::vector<SelfRequest> missed_;
};

std::unique_ptr<Operation> BeginWatch(HostConnection& connection);

}  // namespace caisson::agent::guest
