// SPDX-License-Identifier: Apache-2.0
// Kept machines under names: <directory>/<id>/snapshot.json, and beside it what their driver needs
// (disk.img at least). One is made under another name, and gets its own in one step when all of it
// is on disk: one that was not finished is none. Thread-safe; what takes long (filling, restoring,
// removing) is waited for by who wants the same snapshot, and by nobody else.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/driver.h"

namespace caisson::machine {

class Snapshots {
 public:
  // Removes what was not finished, and holds the images of the rest. The store must outlive it.
  static Result<std::unique_ptr<Snapshots>> Open(const std::string& directory,
                                                 const images::Store& store);

  // Puts the files of a snapshot into the directory that it gets.
  using Fill = std::function<Result<void>(const std::string& directory)>;
  // Of `snapshot` all but stored_bytes is used. The id is taken from the start. Fails with
  // machine.exists, machine.no_image, and as `fill`; nothing is left then.
  Result<Snapshot> Take(uid_t owner, const Snapshot& snapshot, const Fill& fill);

  class Entry;
  // A snapshot that is not removed as long as this lives.
  struct Held {
    std::shared_ptr<Entry> entry;
    std::shared_lock<std::shared_mutex> lock;
    Snapshot snapshot;
    std::string directory;
  };
  // Fails with machine.unknown, also for one that is being made.
  Result<Held> Hold(uid_t owner, const std::string& id);
  std::vector<Snapshot> List(uid_t owner) const;
  // Fine when there is none. Waits for who holds it, and for who makes it.
  Result<void> Remove(uid_t owner, const std::string& id);

 private:
  struct Kept {
    uid_t owner = 0;
    Snapshot snapshot;
    std::optional<images::HeldImage> image;
  };
  Snapshots(std::string directory, const images::Store& store)
      : directory_(std::move(directory)), store_(&store) {}
  std::string DirectoryOf(const std::string& id) const { return directory_ + "/" + id; }
  Result<Kept> Read(const std::string& id) const;
  Result<Kept> Make(uid_t owner, const Snapshot& snapshot, const Fill& fill) const;
  std::shared_ptr<Entry> Find(uid_t owner, const std::string& id) const;

  const std::string directory_;
  const images::Store* const store_;
  mutable std::mutex mutex_;  // may be taken while an entry's is held, never the other way round
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace caisson::machine
