// SPDX-License-Identifier: Apache-2.0
// Everything that one machine has of the host: directory, disk, cgroups, network, processes. Made
// and removed here, in an order in which the record always knows more than there is. Needs root.
// A Slot is not synchronised; a Workshop is thread-safe.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/boot.h"
#include "machine/local.h"
#include "machine/root.h"
#include "machine/slot.h"
#include "machine/state.h"
#include "os/fd.h"

namespace caisson::machine::jail {

struct Slot : SlotBase {
  std::optional<boot::Prepared> prepared;  // before it is started
  os::UniqueFd agent;                      // its pidfd, while it runs

  std::string disk() const { return directory + "/disk.img"; }
  // Whether its agent is there. Reaps it when it has ended as our child.
  bool Lives();
};

struct WorkshopOptions {
  std::string state;   // directory; absolute, ours alone
  std::string images;  // the store's
  std::string agent;   // program
};

class Workshop {
 public:
  static Result<std::unique_ptr<Workshop>> Open(const WorkshopOptions& options, SharedParts parts);

  // A slot with a disk, an empty one or a copy of `source` that is grown to that size, whose
  // machine is prepared but for its name and limits, and reaches nothing. On failure nothing is
  // left.
  Result<std::unique_ptr<Slot>> Make(const std::string& image, std::uint64_t disk_bytes,
                                     const std::string& source = {}, bool grow = false);
  // Gives a prepared slot limits, rules and a name as its record's spec says, and starts it. The
  // record says "running" when this returns.
  Result<void> Start(Slot& slot, bool first_time);
  // Prepares the machine of a slot again that has a disk and nothing else.
  Result<void> Prepare(Slot& slot);
  // Ends what runs and takes back cgroups and network; the disk stays, and nothing uses it.
  Result<void> Stop(Slot& slot);
  // Removes everything. Can be called again after a failure.
  Result<void> Remove(Slot& slot);

  // What is there of earlier runs: machines as their records have them, with their processes held.
  // What was being made or removed is removed. Call it first.
  Result<std::vector<std::unique_ptr<Slot>>> Adopt();

  Networks& networks() { return *parts_.networks; }
  const images::Store& store() const { return store_; }
  const StateDirectory& state() const { return state_; }

 private:
  Workshop(SharedParts parts, images::Store store, StateDirectory state)
      : parts_(std::move(parts)), store_(std::move(store)), state_(std::move(state)) {}
  Result<void> Furnish(const std::string& agent);
  Result<void> MakeDiskOf(const Slot& slot, const std::string& source, bool grow) const;
  Result<std::unique_ptr<Slot>> AdoptOne(const std::string& name);
  Result<void> AdoptRunning(Slot& slot);
  Result<void> SetAside(const std::string& name);

  const SharedParts parts_;
  images::Store store_;
  StateDirectory state_;
  std::optional<RootBuilder> roots_;
  os::UniqueFd agent_;
  os::UniqueFd landlock_;
  std::vector<sock_filter> filter_;
};

}  // namespace caisson::machine::jail
