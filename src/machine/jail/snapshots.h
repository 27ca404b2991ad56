// SPDX-License-Identifier: Apache-2.0
// Copies of disks under names, on disk: <directory>/<id>/disk.img and snapshot.json. A copy that
// was not finished is none. Not synchronised.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/driver.h"

namespace caisson::machine::jail {

class Snapshots {
 public:
  // Removes what was not finished, and holds the images of the rest.
  static Result<Snapshots> Open(const std::string& directory, const images::Store& store);

  // `disk` must not be written meanwhile. Fails with machine.exists, and as CopyDisk.
  Result<Snapshot> Take(uid_t owner, const std::string& id, const std::string& image,
                        std::uint64_t disk_bytes, const std::string& disk);
  // Fails with machine.unknown.
  Result<Snapshot> Find(uid_t owner, const std::string& id) const;
  std::vector<Snapshot> List(uid_t owner) const;
  Result<void> Remove(uid_t owner, const std::string& id);  // fine when there is none

  std::string DiskOf(const std::string& id) const { return directory_ + "/" + id + "/disk.img"; }

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

}  // namespace caisson::machine::jail
