// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/machine_config.h"

#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

#include "machine/id_ranges.h"
#include "machine/oci/policy.h"
#include "machine/syscalls.h"

namespace caisson::machine::oci {
namespace {

json::Array Texts(std::initializer_list<std::string> texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

json::Value Mount(const std::string& destination, const char* type, const std::string& source,
                  json::Array options) {
  return json::Object{{"destination", destination},
                      {"type", type},
                      {"source", source},
                      {"options", std::move(options)}};
}

json::Array Mounts(const MachineBundle& bundle) {
  json::Array mounts = {
      Mount("/proc", "proc", "proc", Texts({"nosuid", "noexec", "nodev"})),
      Mount("/dev", "tmpfs", "tmpfs",
            Texts({"nosuid", "noexec", "mode=755", "size=64k", "nr_inodes=64"})),
      Mount("/dev/pts", "devpts", "devpts",
            Texts({"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"})),
      Mount("/dev/shm", "tmpfs", "shm", Texts({"nosuid", "nodev", "mode=1777"})),
      Mount("/run", "tmpfs", "run",
            Texts({"nosuid", "nodev", "mode=755", "size=64m", "nr_inodes=16384"})),
      Mount(kAgentInside, "bind", bundle.agent, Texts({"bind", "ro", "nosuid", "nodev"}))};
  if (bundle.kind == RuntimeKind::kRunc) {
    mounts.push_back(
        Mount("/dev/mqueue", "mqueue", "mqueue", Texts({"nosuid", "noexec", "nodev"})));
  } else {
    mounts.push_back(Mount(kSocketPlace, "bind", bundle.socket_directory,
                           Texts({"bind", "rw", "nosuid", "nodev", "noexec"})));
    // gVisor would put files in memory there: on the machine's disk they count.
    mounts.push_back(
        Mount("/tmp", "bind", bundle.root + "/tmp", Texts({"bind", "rw", "nosuid", "nodev"})));
  }
  return mounts;
}

json::Array Arguments(const MachineBundle& bundle) {
  json::Array words = Texts({kAgentInside});
  if (bundle.kind == RuntimeKind::kRunc) {
    std::string tasks;
    for (int i = 0; i < bundle.command_tasks; ++i) {
      tasks += (i == 0 ? "" : ",") + std::to_string(4 + i);
    }
    words.emplace_back("--listen-fd");
    words.emplace_back("3");
    words.emplace_back("--cgroup-procs");
    words.emplace_back(tasks);
  } else {
    words.emplace_back("--listen-path");
    words.emplace_back(std::string(kSocketPlace) + "/" + kSocketName);
    words.emplace_back("--command-processes");
    words.emplace_back(std::to_string(bundle.processes));
  }
  return words;
}

json::Value Process(const MachineBundle& bundle) {
  // Those that the jail leaves its root.
  json::Array held = Texts({"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETUID",
                            "CAP_SETGID", "CAP_KILL", "CAP_NET_BIND_SERVICE"});
  if (bundle.kind == RuntimeKind::kRunsc) {
    // Of gVisor's kernel, for the agent alone, which names copies of the machine: commands are
    // started without (agent/guest/spawner.cc).
    held.emplace_back("CAP_SYS_ADMIN");
    held.emplace_back("CAP_SETPCAP");
  }
  json::Object sets;
  for (const char* set : {"bounding", "effective", "permitted"}) sets.Set(set, held);
  json::Object process{
      {"terminal", false},
      {"user", json::Object{{"uid", 0}, {"gid", 0}, {"umask", 022}}},
      {"args", Arguments(bundle)},
      {"env", Texts({"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})},
      {"cwd", "/"},
      {"capabilities", std::move(sets)},
      {"noNewPrivileges", true}};
  // Never raised, which needs a capability that hosts in containers lack.
  process.Set("rlimits",
              json::Array{json::Object{{"type", "RLIMIT_CORE"}, {"hard", 0}, {"soft", 0}}});
  return process;
}

json::Array Namespaces(const MachineBundle& bundle) {
  json::Array namespaces;
  for (const char* type : {"user", "pid", "mount", "ipc", "uts", "cgroup"}) {
    namespaces.push_back(json::Object{{"type", type}});
  }
  json::Object network{{"type", "network"}};
  if (!bundle.network.empty()) network.Set("path", bundle.network);
  namespaces.emplace_back(std::move(network));
  return namespaces;
}

// gVisor answers the question for an extended attribute of a link itself with EBADF, and `ls -l`
// complains of that.
json::Value LinkAttributesRefused() {
  return json::Object{
      {"defaultAction", "SCMP_ACT_ALLOW"},
      {"syscalls", json::Array{json::Object{{"names", Texts({"lgetxattr", "llistxattr"})},
                                            {"action", "SCMP_ACT_ERRNO"},
                                            {"errnoRet", EOPNOTSUPP}}}}};
}

json::Value Linux(const MachineBundle& bundle) {
  const json::Array map = {json::Object{{"containerID", 0},
                                        {"hostID", std::int64_t{bundle.first_host_id}},
                                        {"size", std::int64_t{kIdsPerMachine}}}};
  json::Object part{{"namespaces", Namespaces(bundle)}, {"uidMappings", map}, {"gidMappings", map}};
  if (bundle.kind == RuntimeKind::kRunsc) {
    part.Set("seccomp", LinkAttributesRefused());
    return part;
  }
  part.Set("cgroupsPath", bundle.cgroup);
  // The limits are ours already; of devices the root of the machine can make none.
  part.Set(
      "resources",
      json::Object{{"devices", json::Array{json::Object{{"allow", false}, {"access", "rwm"}}}}});
  part.Set(
      "maskedPaths",
      Texts({"/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/keys", "/proc/key-users",
             "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/interrupts",
             "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/config.gz",
             "/proc/sysrq-trigger", "/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/driver"}));
  part.Set("readonlyPaths", Texts({"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq"}));
  part.Set("seccomp", SeccompProfile(MachineSyscalls()));
  return part;
}

}  // namespace

json::Value MachineConfig(const MachineBundle& bundle) {
  return json::Object{{"ociVersion", "1.0.2"},
                      {"process", Process(bundle)},
                      {"root", json::Object{{"path", bundle.root}, {"readonly", false}}},
                      {"hostname", bundle.host_name},
                      {"mounts", Mounts(bundle)},
                      {"linux", Linux(bundle)}};
}

}  // namespace caisson::machine::oci
