// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/fake/control.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "os/fd.h"

namespace caisson::machine::firecracker::fake {

std::string ControlDirectory() {
  if (::access("/control", F_OK) == 0) return "/control";
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "control";
}

std::optional<std::string> ReadControl(const std::string& name) {
  auto text = os::ReadSmallFile(ControlDirectory() + "/" + name);
  if (!text) return std::nullopt;
  if (text->ends_with('\n')) text->pop_back();
  return *text;
}

std::int64_t ReadNumber(const std::string& name) {
  return std::atoll(ReadControl(name).value_or("0").c_str());
}

void Record(const std::string& line) {
  const os::UniqueFd file(::open((ControlDirectory() + "/requests").c_str(),
                                 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  const std::string whole = line + "\n";
  if (file.valid()) (void)!::write(file.get(), whole.data(), whole.size());
}

}  // namespace caisson::machine::firecracker::fake
