// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/left_groups.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

// The places of all hierarchies, of both versions.
std::vector<std::string> Hierarchies(const std::string& mountinfo) {
  std::vector<std::string> places;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos || !line.substr(dash + 3).starts_with("cgroup")) continue;
    std::istringstream fields(line);
    std::string skipped, place;
    fields >> skipped >> skipped >> skipped >> skipped >> place;
    places.push_back(std::move(place));
  }
  return places;
}

Result<void> RemoveGroup(const std::string& directory) {
  for (int attempt = 0; ::rmdir(directory.c_str()) != 0 && errno != ENOENT; ++attempt) {
    if (errno != EBUSY || attempt == 500) return os::SyscallError("rmdir " + directory);
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt < 20 ? 1 : 10));
  }
  return {};
}

}  // namespace

std::vector<std::string> OwnGroups(const std::string& own_groups) {
  std::vector<std::string> paths;
  std::istringstream lines(own_groups);
  for (std::string line; std::getline(lines, line);) {
    // "4:memory:/path", in which the names may have colons, the path may not begin with one
    const std::size_t at = line.find(":/");
    if (at == std::string::npos) continue;
    std::string path = line.substr(at + 1);
    if (path == "/") path.clear();
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  }
  return paths;
}

Result<void> RemoveLeftGroups(const std::string& name, const std::vector<std::string>& parents,
                              const std::string& mountinfo) {
  for (const std::string& place : Hierarchies(mountinfo)) {
    for (const std::string& parent : parents) {
      std::string directory = place;
      CAISSON_TRY(RemoveGroup(directory.append(parent).append("/").append(name)));
    }
  }
  return {};
}

}  // namespace caisson::machine::oci
