// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/jail.h"

#include <filesystem>

#include "machine/firecracker/calls.h"

namespace caisson::machine::firecracker {

std::string JailOf(const microvm::Plan& plan) {
  const std::string program = std::filesystem::path(plan.firecracker).filename();
  return plan.scratch + "/" + program + "/" + plan.jail_name + "/root";
}

std::vector<std::string> JailerCommand(const microvm::Plan& plan) {
  const std::string id = std::to_string(plan.uid);
  std::vector<std::string> words = {
      plan.jailer, "--id", plan.jail_name,      "--exec-file", plan.firecracker, "--uid", id,
      "--gid",     id,     "--chroot-base-dir", plan.scratch,  "--new-pid-ns"};
  // Groups it has already: the jailer moves it into none.
  if (!plan.network_namespace.empty()) {
    words.insert(words.end(), {"--netns", plan.network_namespace});
  }
  words.insert(words.end(), {"--", "--api-sock", kApiSocket});
  return words;
}

}  // namespace caisson::machine::firecracker
