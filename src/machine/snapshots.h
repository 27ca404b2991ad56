// SPDX-License-Identifier: Apache-2.0
// Kept machines under names: <directory>/<id>/snapshot.json, and beside it what their driver needs
// (disk.img at least). One that was not finished is none. Not synchronised.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/driver.h"

namespace caisson::machine {

class Snapshots {
 public:
  // Removes what was not finished, and holds the images of the rest.
  static Result<Snapshots> Open(const std::string& directory, const images::Store& store);

  // Puts the files of a snapshot into the directory that it gets.
  using Fill = std::function<Result<void>(const std::string& directory)>;
  // Of `snapshot` all but stored_bytes is used. Fails with machine.exists, machine.no_image, and as
  // `fill`.
  Result<Snapshot> Take(uid_t owner, const Snapshot& snapshot, const Fill& fill);
  // Fails with machine.unknown.
  Result<Snapshot> Find(uid_t owner, const std::string& id) const;
  std::vector<Snapshot> List(uid_t owner) const;
  Result<void> Remove(uid_t owner, const std::string& id);  // fine when there is none

  std::string DirectoryOf(const std::string& id) const { return directory_ + "/" + id; }

 private:
  struct Kept {
    uid_t owner = 0;
    Snapshot snapshot;
    std::optional<images::HeldImage> image;
  };
  Snapshots(std::string directory, const images::Store& store)
      : directory_(std::move(directory)), store_(&store) {}
  Result<Kept> Read(const std::string& id) const;

  std::string directory_;
  const images::Store* store_;
  std::map<std::string, Kept> kept_;
};

}  // namespace caisson::machine
