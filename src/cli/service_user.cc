// SPDX-License-Identifier: Apache-2.0
#include "cli/service_user.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "errors/cli.h"
#include "errors/os.h"
#include "os/syscall_error.h"

namespace caisson::cli {
namespace {

constexpr uid_t kFreeNumber = 60'900;  // beyond what adduser gives, before systemd's dynamic users

std::optional<ServiceUser> ByName(const std::string& name) {
  const passwd* found = getpwnam(name.c_str());
  if (found == nullptr) return std::nullopt;
  return ServiceUser{.uid = found->pw_uid, .gid = found->pw_gid};
}

std::optional<ServiceUser> ByNumber(const std::string& text) {
  uid_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return ServiceUser{.uid = number, .gid = number};
}

}  // namespace

Result<ServiceUser> FindServiceUser(const std::optional<std::string>& wanted) {
  if (!wanted) return ByName("caisson").value_or(ServiceUser{kFreeNumber, kFreeNumber});
  auto user = ByName(*wanted);
  if (!user) user = ByNumber(*wanted);
  if (user && user->uid != 0 && user->gid != 0) return *user;
  return Fail(errors::kCliUsage, "--user must be a user that exists, or a number, and not root");
}

Result<void> BecomeServiceUser(const ServiceUser& user) {
  if (setgroups(0, nullptr) != 0 || setresgid(user.gid, user.gid, user.gid) != 0 ||
      setresuid(user.uid, user.uid, user.uid) != 0) {
    return os::SyscallError("becoming the service's user");
  }
  if (setuid(0) == 0 || setgid(0) == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Fail(errors::kOsSyscall, "root could not be given up for good");
  }
  return {};
}

Result<void> MakeServiceDirectory(const std::string& path, const ServiceUser& user) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0755);  // fails later when it matters
  }
  if (mkdir(path.c_str(), 0700) == 0) {
    if (lchown(path.c_str(), user.uid, user.gid) == 0) return {};
    return os::SyscallError("chown " + path);
  }
  struct stat info{};
  if (errno != EEXIST || lstat(path.c_str(), &info) != 0) {
    return os::SyscallError("mkdir " + path);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != user.uid || (info.st_mode & 022) != 0) {
    return Fail(errors::kCliUsage,
                path +
                    " is no directory of the service's user alone; choose another with --state, "
                    "or chown it");
  }
  return {};
}

}  // namespace caisson::cli
