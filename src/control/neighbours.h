// SPDX-License-Identifier: Apache-2.0
// The names by which sandboxes know those that they share a network with: <name>.fc.local,
// <name>.<network>.fc.local and <id>.fc.local, as lines of each one's /etc/hosts between two marks.
// Why no name server: such a question may come from a machine whose own rules leave it none, or
// from one that asks the host's; a file answers in either. What else a guest has in that file
// stays. A guest may change the lines: they are for its own programs, and open nothing.
//
// Told by the machine's agent, beside whoever asks. One that cannot be told is told again later.
// Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "control/chores.h"
#include "control/drivers.h"
#include "control/keyed_lock.h"
#include "store/store.h"

namespace caisson::control {

// Lines of a hosts file for each member, itself among them, by its id.
using NeighbourLines = std::map<std::string, std::string>;
// Of one tenant, or of all; members without an address have no lines and are in none.
Result<NeighbourLines> ReadNeighbours(store::Rows& rows, const std::optional<std::string>& tenant);

// The file with these lines in place of those that were between the marks; without lines, without
// the marks.
std::string WithNeighbours(std::string_view file, std::string_view lines);

class Neighbours {
 public:
  // `host`: whose rows are ours. `file`: inside of machines.
  Neighbours(store::Store& store, const Drivers& drivers, std::string host, std::string file);

  // Somebody came, went, began to run or has another name: Tell has something to do.
  void Changed() { changed_ = true; }
  // Begins to tell each running one of all tenants what it does not know yet; when nothing has
  // changed, only those that could not be told, at the call with `again`.
  void Tell(bool again);
  // The same for those of one tenant at once, and `first` before this returns.
  void TellTenant(const store::Sandbox& first);

 private:
  void Begin(const std::optional<std::string>& tenant);
  void TellOne(const store::Sandbox& sandbox, const std::string& lines);
  bool Knows(const std::string& id, const std::string& lines);

  store::Store& store_;
  const Drivers& drivers_;
  const std::string host_;
  const std::string file_;
  std::atomic<bool> changed_ = true;
  KeyedLocks locks_;
  std::mutex mutex_;
  std::map<std::string, std::string> told_;  // lines, by id; those without lines are left out
  // Of their own: guests whose agents say nothing keep these waiting and nobody else.
  Chores chores_;
};

}  // namespace caisson::control
