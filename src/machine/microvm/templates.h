// SPDX-License-Identifier: Apache-2.0
// Machines that were booted once and saved before anybody used them: <directory>/<key>/ has memory,
// state, disk.img and template.json. New machines go on from them, copy-on-write. No code of a user
// has run in one, so that they are everybody's. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::microvm {

class Templates {
 public:
  explicit Templates(Yard& yard) : yard_(yard) {}

  // The directory of the template for such machines; boots one, which takes seconds, when there is
  // none, and again when it is not what was written. Whoever asks meanwhile waits. Fails with
  // machine.vm_failed, machine.agent_lost, machine.full, machine.no_image.
  Result<std::string> Get(const Shape& shape, std::uint64_t disk_bytes);
  // What was not finished, or is for other boot files, goes. Call it first.
  void Clean();

 private:
  struct Entry {
    bool being_made = false;
    bool checked = false;  // by its hashes, since this helper started
  };
  std::string KeyOf(const Shape& shape, std::uint64_t disk_bytes) const;
  Result<void> Check(const std::string& directory) const;
  Result<void> Build(const Shape& shape, std::uint64_t disk_bytes, const std::string& directory);

  Yard& yard_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
};

}  // namespace caisson::machine::microvm
