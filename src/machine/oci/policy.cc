// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/policy.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace caisson::machine::oci {
namespace {

constexpr std::int64_t kPeriod = 100'000;  // of the processor quota, in microseconds

json::Array Texts(std::initializer_list<std::string> texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

// The specification's numbers are signed.
json::Value Number(std::uint64_t number) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(number, kMost));
}

json::Value Mount(const char* destination, const char* type, const char* source,
                  json::Array options) {
  return json::Object{{"destination", destination},
                      {"type", type},
                      {"source", source},
                      {"options", std::move(options)}};
}

json::Array Mounts(const ContainerPolicy& policy) {
  json::Array tmp = Texts({"rw", "nosuid", "nodev", "mode=1777"});
  if (!policy.without.Has(Wall::kNoExecTmp)) tmp.emplace_back("noexec");
  tmp.emplace_back("size=" + std::to_string(policy.tmp_bytes));
  tmp.emplace_back("nr_inodes=" + std::to_string(policy.tmp_inodes));
  return {Mount("/proc", "proc", "proc", Texts({"nosuid", "noexec", "nodev"})),
          Mount("/dev", "tmpfs", "tmpfs",
                Texts({"nosuid", "noexec", "mode=755", "size=64k", "nr_inodes=64"})),
          Mount("/dev/shm", "tmpfs", "shm",
                Texts({"nosuid", "noexec", "nodev", "mode=1777", "size=65536k", "nr_inodes=64"})),
          Mount("/tmp", "tmpfs", "tmpfs", std::move(tmp))};
}

json::Value Capabilities(const ContainerPolicy& policy) {
  json::Array held;
  if (policy.without.Has(Wall::kCapabilities)) {
    held = Texts({"CAP_DAC_OVERRIDE", "CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_KILL"});
  }
  json::Object sets;
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    sets.Set(set, held);
  }
  return sets;
}

json::Value Process(const ContainerPolicy& policy) {
  json::Array arguments;
  for (const std::string& word : policy.arguments) arguments.emplace_back(word);
  json::Array environment;
  for (const std::string& word : policy.environment) environment.emplace_back(word);
  const std::int64_t user = policy.without.Has(Wall::kUser) ? 0 : kUser;
  // No rlimits: those of `runc spec` raise limits, which needs a capability that hosts in
  // containers lack. What is to be lowered the harness lowers.
  return json::Object{{"terminal", false},
                      {"user", json::Object{{"uid", user}, {"gid", user}}},
                      {"args", std::move(arguments)},
                      {"env", std::move(environment)},
                      {"cwd", "/"},
                      {"capabilities", Capabilities(policy)},
                      {"noNewPrivileges", !policy.without.Has(Wall::kNoNewPrivileges)}};
}

json::Array Namespaces(const ContainerPolicy& policy) {
  constexpr std::pair<Wall, const char*> kNamespaces[] = {{Wall::kPidNamespace, "pid"},
                                                          {Wall::kNetworkNamespace, "network"},
                                                          {Wall::kIpcNamespace, "ipc"},
                                                          {Wall::kUtsNamespace, "uts"},
                                                          {Wall::kCgroupNamespace, "cgroup"}};
  json::Array namespaces = {json::Object{{"type", "mount"}}};
  for (const auto& [wall, type] : kNamespaces) {
    if (!policy.without.Has(wall)) namespaces.push_back(json::Object{{"type", type}});
  }
  return namespaces;
}

json::Value Resources(const ContainerPolicy& policy) {
  json::Object resources{
      {"devices", json::Array{json::Object{{"allow", false}, {"access", "rwm"}}}}};
  if (!policy.without.Has(Wall::kMemory)) {
    const json::Value bytes = Number(policy.memory_bytes);
    resources.Set("memory", json::Object{{"limit", bytes}, {"swap", bytes}});
  }
  if (policy.cpus > 0) {
    resources.Set("cpu", json::Object{{"quota", static_cast<std::int64_t>(policy.cpus * kPeriod)},
                                      {"period", kPeriod}});
  }
  if (policy.pids != 0 && !policy.without.Has(Wall::kPids)) {
    resources.Set("pids", json::Object{{"limit", Number(policy.pids)}});
  }
  return resources;
}

json::Value Linux(const ContainerPolicy& policy) {
  json::Object linux_part{{"namespaces", Namespaces(policy)}, {"resources", Resources(policy)}};
  if (!policy.cgroup.empty()) linux_part.Set("cgroupsPath", policy.cgroup);
  if (!policy.without.Has(Wall::kMaskedPaths)) {
    linux_part.Set(
        "maskedPaths",
        Texts({"/proc/acpi", "/proc/asound", "/proc/config.gz", "/proc/interrupts",
               "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/kpagecount",
               "/proc/latency_stats", "/proc/modules", "/proc/sched_debug", "/proc/scsi",
               "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo"}));
    linux_part.Set("readonlyPaths", Texts({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                           "/proc/sysrq-trigger"}));
  }
  if (!policy.without.Has(Wall::kSeccomp)) {
    linux_part.Set("seccomp", SeccompProfile(policy.syscalls));
  }
  return linux_part;
}

json::Value Rule(const os::SyscallRule& rule) {
  json::Object entry{{"names", Texts({rule.name})},
                     {"action", rule.fail_with == 0 ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO"}};
  if (rule.fail_with != 0) entry.Set("errnoRet", rule.fail_with);
  if (rule.checks.empty()) return entry;
  json::Array checks;
  for (const os::ArgumentCheck& check : rule.checks) {
    checks.push_back(json::Object{{"index", check.index},
                                  {"value", json::Value(check.mask)},
                                  {"valueTwo", json::Value(check.value)},
                                  {"op", "SCMP_CMP_MASKED_EQ"}});
  }
  entry.Set("args", std::move(checks));
  return entry;
}

}  // namespace

std::string_view NameOf(Wall wall) {
  constexpr std::string_view kNames[kWallCount] = {
      "pid_namespace",  "network_namespace", "ipc_namespace", "uts_namespace", "cgroup_namespace",
      "read_only_root", "no_exec_tmp",       "user",          "capabilities",  "no_new_privileges",
      "seccomp",        "masked_paths",      "memory",        "pids"};
  return kNames[static_cast<std::size_t>(wall)];
}

json::Value SeccompProfile(std::span<const os::SyscallRule> rules) {
  json::Array entries;
  for (const os::SyscallRule& rule : rules) entries.push_back(Rule(rule));
  return json::Object{{"defaultAction", "SCMP_ACT_ERRNO"},
                      {"defaultErrnoRet", EPERM},
                      {"syscalls", std::move(entries)}};
}

json::Value RuntimeConfig(const ContainerPolicy& policy) {
  json::Object config{
      {"ociVersion", "1.0.2"},
      {"process", Process(policy)},
      {"root",
       json::Object{{"path", policy.root}, {"readonly", !policy.without.Has(Wall::kReadOnlyRoot)}}},
      {"mounts", Mounts(policy)},
      {"linux", Linux(policy)}};
  if (!policy.without.Has(Wall::kUtsNamespace)) config.Set("hostname", policy.hostname);
  return config;
}

}  // namespace caisson::machine::oci
