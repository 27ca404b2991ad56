// SPDX-License-Identifier: Apache-2.0
// What each wall is good for: an attack that only this wall stops, since those that would stop it
// too are left out, fails; with the wall left out as well it succeeds. The root and the change of
// user are tried in jail/rooted_test.cc, since without them no call starts.
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "isolate/native/native.h"
#include "isolate/native/test_support.h"
#include "jail/test_canaries.h"
#include "jail/walls.h"

namespace caisson::isolate::native {
namespace {

using jail::Wall;
using jail::WallSet;

struct Case {
  std::string name;
  Wall wall;
  std::vector<Wall> others;  // that would stop the attack, too
  // A body that says {"escaped": true} when it got through.
  std::string attack;
  double cpus = 1;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

WallSet SetOf(const Case& test, bool without) {
  WallSet set;
  for (Wall wall : test.others) set.Add(wall);
  if (without) set.Add(test.wall);
  return set;
}

constexpr const char* kTry =
    "    def works(call):\n"
    "        try: call()\n"
    "        except (OSError, RuntimeError, MemoryError): return {'escaped': False}\n"
    "        return {'escaped': True}\n";

std::vector<Case> Cases() {
  return {
      // Root without the namespace is the host's root.
      {"user_namespace_stops_device_nodes",
       Wall::kUserNamespace,
       {Wall::kSeccomp, Wall::kLandlock, Wall::kCapabilities, Wall::kUnprivilegedUser},
       "    import os, stat\n"
       "    return works(lambda: os.mknod('/tmp/node', stat.S_IFCHR | 0o600, os.makedev(1, 3)))\n"},
      {"seccomp_stops_sockets",
       Wall::kSeccomp,
       {},
       "    import socket\n    return works(lambda: socket.socket())\n"},
      {"network_namespace_stops_loopback",
       Wall::kNetworkNamespace,
       {Wall::kSeccomp, Wall::kLandlock},
       "    import socket\n"
       "    return works(lambda: socket.create_connection(('127.0.0.1', "
       "config['canary_port'])))\n"},
      {"network_namespace_stops_abstract_sockets",
       Wall::kNetworkNamespace,
       {Wall::kSeccomp, Wall::kLandlock},
       "    import socket\n"
       "    s = socket.socket(socket.AF_UNIX)\n"
       "    return works(lambda: s.connect('\\0' + config['canary_abstract']))\n"},
      {"pid_namespace_stops_signals",
       Wall::kPidNamespace,
       {Wall::kSeccomp, Wall::kLandlock},
       "    import os\n    return works(lambda: os.kill(config['canary_pid'], 0))\n"},
      {"ipc_namespace_stops_shared_memory",
       Wall::kIpcNamespace,
       {Wall::kSeccomp},
       "    import ctypes\n"
       "    c = ctypes.CDLL(None)\n"
       "    return {'escaped': c.shmget(config['shm_key'], 0, 0) >= 0}\n"},
      {"uts_namespace_hides_the_name",
       Wall::kUtsNamespace,
       {},
       "    import os\n    return {'escaped': os.uname().nodename == config['host']}\n"},
      {"cgroup_namespace_hides_the_path",
       Wall::kCgroupNamespace,
       {},
       "    text = open('/proc/self/cgroup').read()\n"
       "    return {'escaped': 'caisson.' in text and '/../' not in text}\n"},
      {"capabilities_stop_mounts",
       Wall::kCapabilities,
       {Wall::kSeccomp, Wall::kLandlock},
       "    import ctypes\n"
       "    c = ctypes.CDLL(None)\n"
       "    return {'escaped': c.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0}\n"},
      {"landlock_stops_special_files",
       Wall::kLandlock,
       {Wall::kSeccomp},
       "    import os\n    return works(lambda: os.mkfifo('/tmp/fifo'))\n"},
      {"clean_start_closes_descriptors",
       Wall::kCleanStart,
       {},
       "    import os\n"
       "    found = []\n"
       "    for fd in list(range(3, 512)) + list(range(513, 1024)):\n"
       "        try: os.fstat(fd); found.append(fd)\n"
       "        except OSError: pass\n"
       "    return {'escaped': bool(found)}\n"},
      {"resource_limits_stop_memory",
       Wall::kResourceLimits,
       {Wall::kMemoryCgroup},
       "    return works(lambda: bytearray(200 << 20))\n"},
      {"memory_cgroup_stops_memory",
       Wall::kMemoryCgroup,
       {Wall::kResourceLimits},
       "    return works(lambda: bytearray(200 << 20))\n"},
      {"resource_limits_stop_threads",
       Wall::kResourceLimits,
       {Wall::kPidsCgroup},
       "    import threading, time\n"
       "    def flood():\n"
       "        for _ in range(100): threading.Thread(target=time.sleep, args=(9,), "
       "daemon=True).start()\n"
       "    return works(flood)\n"},
      {"pids_cgroup_stops_threads",
       Wall::kPidsCgroup,
       {Wall::kResourceLimits},
       "    import threading, time\n"
       "    def flood():\n"
       "        for _ in range(100): threading.Thread(target=time.sleep, args=(9,), "
       "daemon=True).start()\n"
       "    return works(flood)\n"},
      {"cpu_cgroup_stops_more_than_its_share",
       Wall::kCpuCgroup,
       {},
       "    import time\n"
       "    begin, used = time.monotonic(), time.process_time()\n"
       "    while time.monotonic() - begin < 3: pass\n"
       "    return {'escaped': time.process_time() - used > 0.4}\n",
       0.05},
      {"no_new_privs_is_set",
       Wall::kNoNewPrivileges,
       {Wall::kSeccomp, Wall::kLandlock},
       "    return {'escaped': 'NoNewPrivs:\\t0' in open('/proc/self/status').read()}\n"},
  };
}

class Walls : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_ROOT();
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    segment_ = ::shmget(key_, 4096, IPC_CREAT | 0666);
    ASSERT_GE(segment_, 0);
    config_ = canaries_.Document();
    config_.pop_back();
    config_ += ",\"host\":\"" + std::string(host) + "\",\"shm_key\":" + std::to_string(key_) + "}";
  }
  void TearDown() override {
    if (segment_ >= 0) ::shmctl(segment_, IPC_RMID, nullptr);
  }
  // Whether this host gives the wall, and the groups that some attacks look for.
  static bool CanBeTried() {
    const auto runtime = MakeRuntime();
    if (runtime == nullptr) return false;
    const bool groups = Stands(*runtime, Wall::kMemoryCgroup);
    return Stands(*runtime, GetParam().wall) &&
           (groups || GetParam().wall != Wall::kCgroupNamespace);
  }
  Ran Attack(bool without) {
    NativeOptions options;
    options.leave_out.walls = SetOf(GetParam(), without);
    options.unguarded = DangerouslyUnguarded();
    options.cpus = GetParam().cpus;
    const auto runtime = MakeRuntime(options);
    if (runtime == nullptr) return {};
    ScriptJob job = BodyJob(kTry + GetParam().attack, config_);
    job.limits.memory_bytes = 96u << 20;
    job.limits.pids = 32;
    return RunJob(*runtime, job);
  }

  jail::TestCanaries canaries_;
  key_t key_ = 0x43410000 + ::getpid();
  int segment_ = -1;
  std::string config_;
};

TEST_P(Walls, StopsWhatIsNotStoppedWithoutIt) {
  if (!CanBeTried()) GTEST_SKIP() << "this host does not give the wall; caisson doctor says why";
  const Ran with = Attack(false);
  const bool killed = with.outcome.fault == Fault::kMemory;
  EXPECT_TRUE(killed || with.sink.done == std::vector<std::string>{"{\"escaped\":false}"})
      << Show(with);
  const Ran without = Attack(true);
  EXPECT_EQ(without.sink.done, std::vector<std::string>{"{\"escaped\":true}"}) << Show(without);
}

INSTANTIATE_TEST_SUITE_P(Each, Walls, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

// What the list of system calls is for, call by call: none of these may come back with anything but
// an error, whatever its arguments.
TEST(ScriptSyscalls, RefusesWhatOpensWays) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.unguarded = DangerouslyUnguarded();
  const auto runtime = MakeRuntime(options);
  ASSERT_NE(runtime, nullptr);
  const Ran ran = RunJob(
      *runtime,
      BodyJob(
          "    import ctypes, errno, platform\n"
          "    c = ctypes.CDLL(None, use_errno=True)\n"
          "    calls = {'socket_vsock': (41, 40, 1, 0), 'socket_inet': (41, 2, 1, 0),\n"
          "             'socket_unix': (41, 1, 1, 0), 'socket_netlink': (41, 16, 3, 0),\n"
          "             'socket_alg': (41, 38, 5, 0), 'socketpair_dgram': (53, 1, 2, 0, 0),\n"
          "             'ptrace': (101, 0, 0, 0, 0), 'process_vm_readv': (310, 1, 0, 0, 0, 0, 0),\n"
          "             'io_uring_setup': (425, 1, 0), 'userfaultfd': (323, 0),\n"
          "             'keyctl': (250, 0, -3, 0), 'add_key': (248, 0, 0, 0, 0, 0),\n"
          "             'request_key': (249, 0, 0, 0, 0), 'bpf': (321, 0, 0, 0),\n"
          "             'perf_event_open': (298, 0, 0, -1, -1, 0), 'unshare': (272, 0x10000000),\n"
          "             'setns': (308, 0, 0), 'clone_newuser': (56, 0x10000011, 0, 0, 0, 0),\n"
          "             'clone_fork': (56, 17, 0, 0, 0, 0), 'fork': (57,), 'vfork': (58,),\n"
          "             'execve': (59, 0, 0, 0), 'execveat': (322, 0, 0, 0, 0, 0),\n"
          "             'mount': (165, 0, 0, 0, 0, 0), 'umount2': (166, 0, 0), 'pivot_root': (155, "
          "0, 0),\n"
          "             'open_tree': (428, -100, 0, 1), 'move_mount': (429, 0, 0, 0, 0, 0),\n"
          "             'fsopen': (430, 0, 0), 'chroot': (161, 0), 'init_module': (175, 0, 0, 0),\n"
          "             'kexec_load': (246, 0, 0, 0, 0), 'mknod': (133, 0, 0o20666, 0x103),\n"
          "             'mknodat': (259, -100, 0, 0o20666, 0x103), 'name_to_handle_at': (303, 0, "
          "0, 0, 0, 0),\n"
          "             'open_by_handle_at': (304, 0, 0, 0), 'personality': (135, 0), 'setuid': "
          "(105, 0),\n"
          "             'pidfd_getfd': (438, 0, 0, 0), 'seccomp': (317, 2, 0, 0), 'quotactl': "
          "(179, 0, 0, 0, 0),\n"
          "             'shmget': (29, 0, 4096, 0o1600), 'memfd_secret': (447, 0), 'syslog': (103, "
          "3, 0, 0),\n"
          "             'prctl_seccomp': (157, 22, 2, 0), 'prctl_dumpable': (157, 4, 1),\n"
          "             'prlimit_other': (302, 2, 7, 0, 0), 'kill_other': (62, 2, 0), 'kill_all': "
          "(62, -1, 0),\n"
          "             'tiocsti': (16, 0, 0x5412, 0), 'fanotify_init': (300, 0, 0)}\n"
          "    allowed = []\n"
          "    for name, (number, *arguments) in calls.items():\n"
          "        result = c.syscall(number, *arguments)\n"
          "        if result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, "
          "errno.ENOTTY):\n"
          "            allowed.append(name)\n"
          "    return {'machine': platform.machine(), 'allowed': allowed}\n"));
  ASSERT_EQ(ran.sink.done.size(), 1u) << Show(ran);
  if (ran.sink.done[0].find("x86_64") == std::string::npos) {
    GTEST_SKIP() << "the numbers are those of x86_64";
  }
  EXPECT_EQ(ran.sink.done[0], "{\"machine\":\"x86_64\",\"allowed\":[]}");
}

// Calls of the 32-bit interface have other numbers, so the filter must not let them by.
TEST(ScriptSyscalls, KillsCallsOfAnotherArchitecture) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.unguarded = DangerouslyUnguarded();
  const auto runtime = MakeRuntime(options);
  ASSERT_NE(runtime, nullptr);
  const Ran ran = RunJob(
      *runtime,
      BodyJob(
          "    import ctypes, mmap, platform\n"
          "    if platform.machine() != 'x86_64': return {'skip': True}\n"
          "    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
          "    code.write(bytes.fromhex('b814000000cd80c3'))  # getpid by int 0x80\n"
          "    at = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
          "    return {'pid': ctypes.CFUNCTYPE(ctypes.c_int)(at)()}\n"));
  if (ran.sink.done == std::vector<std::string>{"{\"skip\":true}"}) {
    GTEST_SKIP() << "only x86_64 has such an interface";
  }
  EXPECT_TRUE(ran.sink.done.empty()) << Show(ran);
  EXPECT_EQ(ran.outcome.fault, Fault::kArtifact) << Show(ran);
}

}  // namespace
}  // namespace caisson::isolate::native
