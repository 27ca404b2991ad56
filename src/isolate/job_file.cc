// SPDX-License-Identifier: Apache-2.0
#include "isolate/job_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "json/marshal.h"
#include "os/syscall_error.h"
#include "os/write_all.h"

namespace caisson::isolate {
namespace {

constexpr std::uint64_t kMebibyte = 1u << 20;

// How the job's parts stand in its file, before them.
struct JobHeader {
  std::uint64_t entry;
  std::uint64_t source_bytes;
  std::uint64_t inputs_bytes;
  std::uint64_t options_bytes;
};

Result<void> Write(int fd, std::string_view bytes) {
  if (const int error = os::WriteAll(fd, bytes); error != 0) {
    return os::SyscallError("write a job", error);
  }
  return {};
}

}  // namespace

Result<os::UniqueFd> MakeJobFile(std::string_view before, const ScriptJob& job) {
  os::UniqueFd file(::memfd_create("caisson-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return os::SyscallError("memfd_create");
  CAISSON_ASSIGN(const std::string inputs, json::ToMarshal(job.inputs));
  const JobHeader header{static_cast<std::uint64_t>(job.entry), job.source.size(), inputs.size(),
                         job.options.size()};
  CAISSON_TRY(Write(file.get(), before));
  CAISSON_TRY(Write(file.get(), {reinterpret_cast<const char*>(&header), sizeof header}));
  for (const std::string* part : {&job.source, &inputs, &job.options}) {
    CAISSON_TRY(Write(file.get(), *part));
  }
  // The guest must not use it as memory that nobody counts.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE) !=
          0 ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return os::SyscallError("seal a job");
  }
  return file;
}

std::uint64_t DataBytes(std::uint64_t memory) {
  return memory - std::min(memory / 8, 32 * kMebibyte);
}

}  // namespace caisson::isolate
