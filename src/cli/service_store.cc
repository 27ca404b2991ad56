// SPDX-License-Identifier: Apache-2.0
#include "cli/service_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "api/serve.h"
#include "cli/service_user.h"
#include "os/syscall_error.h"
#include "store/sqlite/store.h"

namespace caisson::cli {

Result<std::unique_ptr<store::Store>> OpenServiceStore(const std::string& directory) {
  struct stat info{};
  if (lstat(directory.c_str(), &info) != 0) {
    ServiceUser user{.uid = geteuid(), .gid = getegid()};
    if (user.uid == 0) {
      CAISSON_ASSIGN(user, FindServiceUser({}));
    }
    CAISSON_TRY(MakeServiceDirectory(directory, user));
    if (lstat(directory.c_str(), &info) != 0) return os::SyscallError("stat " + directory);
  }
  if (geteuid() == 0 && info.st_uid != 0) {
    CAISSON_TRY(BecomeServiceUser({.uid = info.st_uid, .gid = info.st_gid}));
  }
  return store::sqlite::Open(directory + "/" + api::kStoreFile);
}

}  // namespace caisson::cli
