// SPDX-License-Identifier: Apache-2.0
// Where this process keeps what its containers need: a folder of its own with a lock that it holds
// for as long as it lives, so that a later process knows whose containers are orphans, also across
// pid namespaces.
//
//   <directory>/<owner>/lock       held by the owner
//   <directory>/<owner>/kind       which runtime it uses: "runc"
//   <directory>/<owner>/runtime/   the runtime's own state (runc --root)
//   <directory>/<owner>/<name>/    a bundle: config.json, seccomp.json, pid
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine::oci {

class State {
 public:
  // $CAISSON_OCI_STATE, else /run/caisson/oci for root, else $XDG_RUNTIME_DIR/caisson/oci; empty
  // when there is none.
  static std::string DefaultDirectory();

  // Makes the folders. `kind` is for later reapers. Fails with oci.state when one belongs to
  // another user, others can write it, or it cannot be made.
  static Result<State> Open(const std::string& directory, std::string_view kind);
  State(State&&) noexcept = default;
  State& operator=(State&&) = delete;
  // Removes this owner's folder, unless a container of it is still there.
  ~State();

  const std::string& owner() const { return owner_; }
  std::string runtime_root() const { return folder_ + "/runtime"; }
  std::string folder() const { return folder_; }
  // A name for a new container; also of its cgroup, by the rules of os::Cgroup::NamePrefix.
  std::string NextName();

  // Folders of owners that are gone.
  struct Orphan {
    std::string owner;
    std::string kind;
    std::string folder;
    std::vector<std::string> containers;  // by the runtime's own state
    os::UniqueFd lock;                    // keeps other reapers away
  };
  std::vector<Orphan> FindOrphans() const;
  static void Forget(const Orphan& orphan);

 private:
  State() = default;
  std::string directory_;
  std::string owner_;
  std::string folder_;
  os::UniqueFd lock_;
};

}  // namespace caisson::machine::oci
