// SPDX-License-Identifier: Apache-2.0
// The root of a machine as the host builds it: the image, which many share, below the machine's
// disk, with the device nodes that every machine may have. A root is a detached tree, and goes with
// the last process that has it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine {

// Works in a mount namespace that only it has: whoever kills this process leaves no mounts.
// Thread-safe.
class RootBuilder {
 public:
  // `scratch` is an empty directory. The calling thread's mounts stay as they are.
  static Result<RootBuilder> Make(const std::string& scratch);

  // `name` is not in use by another build. `disk` is a detached mount (machine/disk.h) that is
  // mapped to `user_namespace`, whose root is `owner` here. `image` is a directory with dev, proc,
  // run and tmp in it. Fails with machine.no_image when it is not, os.syscall. The calling thread's
  // directory becomes "/", and it no longer shares that with other threads.
  Result<os::UniqueFd> Build(const std::string& name, const std::string& image, int disk,
                             int user_namespace, std::uint32_t owner) const;

 private:
  std::string DevicesPlace() const { return scratch_ + "/dev"; }

  std::string scratch_;
  os::UniqueFd mounts_;  // the namespace
};

using RootFiles = std::vector<std::pair<std::string, std::string>>;  // path, content

// Writes files into a root that nothing uses yet, owned by `owner`; no link of it leads out of it.
// What cannot be written, because the disk of a fork is full or has something odd there, is left as
// it is: that is the guest's own affair. Fails with os.syscall.
Result<void> WriteInRoot(int root, std::uint32_t owner, const RootFiles& files);

}  // namespace caisson::machine
