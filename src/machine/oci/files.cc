// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "errors/machine.h"
#include "json/writer.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {

Result<void> MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno == ENOSPC) return Fail(errors::kMachineFull, "the host's disk is full");
  return Fail(errors::kMachineState, "mkdir " + path + ": " + os::ErrnoText(errno));
}

Result<void> RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return {};
  return Fail(errors::kMachineState, "remove " + path + ": " + error.message());
}

Result<void> WriteConfig(const std::string& path, const json::Value& config) {
  CAISSON_ASSIGN(const std::string text, json::Write(config));
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.valid() &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  if (errno == ENOSPC) return Fail(errors::kMachineFull, "the host's disk is full");
  return Fail(errors::kMachineState, "write " + path + ": " + os::ErrnoText(errno));
}

Result<os::UniqueFd> OpenAgent(const std::string& path) {
  os::UniqueFd agent(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (agent.valid() &&
      ::mount_setattr(agent.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0) {
    return agent;
  }
  return Fail(errors::kMachineUnavailable,
              "the agent " + path + " cannot be had: " + os::ErrnoText(errno));
}

}  // namespace caisson::machine::oci
