// SPDX-License-Identifier: Apache-2.0
#include "os/seccomp.h"

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

struct Release {
  void operator()(void* context) const { seccomp_release(context); }
};

Result<void> AddRule(scmp_filter_ctx context, const SyscallRule& rule) {
  const int number = seccomp_syscall_resolve_name(rule.name);
  if (number < 0) return {};  // this architecture has no such call
  std::vector<scmp_arg_cmp> checks;
  checks.reserve(rule.checks.size());
  for (const ArgumentCheck& check : rule.checks) {
    checks.push_back({.arg = check.index,
                      .op = SCMP_CMP_MASKED_EQ,
                      .datum_a = check.mask,
                      .datum_b = check.value});
  }
  const std::uint32_t action = rule.fail_with == 0
                                   ? SCMP_ACT_ALLOW
                                   : SCMP_ACT_ERRNO(static_cast<std::uint16_t>(rule.fail_with));
  const int result = seccomp_rule_add_array(context, action, number,
                                            static_cast<unsigned>(checks.size()), checks.data());
  if (result < 0) return SyscallError(std::string("seccomp rule for ") + rule.name, -result);
  return {};
}

}  // namespace

Result<void> InstallAllowList(std::span<const SyscallRule> rules) {
  const std::unique_ptr<void, Release> context(seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (context == nullptr) return SyscallError("seccomp_init", ENOMEM);
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a tree: 5 tests and not 50
  // The default returns ECANCELED for whatever the kernel said.
  seccomp_attr_set(context.get(), SCMP_FLTATR_API_SYSRAWRC, 1);
  if (const int result = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_TSYNC, 1)) {
    return SyscallError("seccomp on all threads", -result);
  }
  for (const SyscallRule& rule : rules) CAISSON_TRY(AddRule(context.get(), rule));
  if (const int result = seccomp_load(context.get())) {
    return SyscallError("load the seccomp filter", -result);
  }
  return {};
}

Result<std::vector<sock_filter>> BuildFilter(std::span<const SyscallRule> rules, int refuse_with) {
  const std::unique_ptr<void, Release> context(
      seccomp_init(SCMP_ACT_ERRNO(static_cast<std::uint16_t>(refuse_with))));
  if (context == nullptr) return SyscallError("seccomp_init", ENOMEM);
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const SyscallRule& rule : rules) {
    // libseccomp refuses a rule whose action is the default one.
    if (rule.fail_with != refuse_with) CAISSON_TRY(AddRule(context.get(), rule));
  }
  const UniqueFd file(::memfd_create("caisson-filter", MFD_CLOEXEC));
  if (!file.valid()) return SyscallError("memfd_create");
  if (const int result = seccomp_export_bpf(context.get(), file.get())) {
    return SyscallError("export the seccomp filter", -result);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return SyscallError("fstat a seccomp filter");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  std::vector<sock_filter> program(bytes / sizeof(sock_filter));
  if (::pread(file.get(), program.data(), bytes, 0) != status.st_size) {
    return SyscallError("read a seccomp filter");
  }
  return program;
}

}  // namespace caisson::os
