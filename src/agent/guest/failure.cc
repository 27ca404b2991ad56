// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/failure.h"

#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::agent::guest {
namespace {

FailureKind KindOf(int error) {
  switch (error) {
    case ENOENT:
      return FailureKind::kNotFound;
    case ENOTDIR:
      return FailureKind::kNotADirectory;
    case EISDIR:
      return FailureKind::kNotAFile;
    case ENOTEMPTY:
      return FailureKind::kNotEmpty;
    case ENAMETOOLONG:
      return FailureKind::kBadRequest;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBUSY:
    case EXDEV:
    case ELOOP:
      return FailureKind::kRefused;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return FailureKind::kNoSpace;
    default:
      return FailureKind::kUnreadable;
  }
}

}  // namespace

std::unexpected<Failure> Fail(FailureKind kind, std::string_view what, int error) {
  return std::unexpected(Failure{
      .kind = kind, .error = error, .message = std::string(what) + ": " + os::ErrnoText(error)});
}

std::unexpected<Failure> Fail(FailureKind kind, std::string_view what) {
  return std::unexpected(Failure{.kind = kind, .message = std::string(what)});
}

std::unexpected<Failure> FileFailure(std::string_view what, int error) {
  return Fail(KindOf(error), what, error);
}

}  // namespace caisson::agent::guest
