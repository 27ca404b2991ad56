// SPDX-License-Identifier: Apache-2.0
// What each wall of a container is good for: an attack that only this wall stops, since those that
// would stop it too are left out, fails; with the wall left out as well it succeeds. Everything
// runs below a throw-away cgroup with limits of its own.
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <ostream>
#include <string>
#include <vector>

#include "isolate/native/test_support.h"
#include "isolate/oci/test_support.h"
#include "jail/test_canaries.h"
#include "machine/oci/policy.h"
#include "os/cgroup.h"
#include "os/fd.h"

namespace caisson::isolate::oci {
namespace {

using machine::oci::Wall;
using native::BodyJob;
using native::Ran;
using native::RunJob;
using native::Show;

// Limits around this process and all containers that it starts, for as long as it lives. In a
// version 2 hierarchy runtimes make their groups beside ours, and only their own limits hold.
class OuterJail {
 public:
  OuterJail()
      : group_(os::Cgroup::Make(os::Cgroup::NamePrefix() + "walls-test",
                                {.memory_bytes = 2ull << 30, .cpus = 0, .pids = 512})) {
    EXPECT_TRUE(group_.refused().empty());
    EXPECT_TRUE(group_.Attach(::getpid()));
  }
  ~OuterJail() {
    for (const std::string& directory : group_.directories()) {
      (void)os::WriteSmallFile(directory + "/../cgroup.procs", std::to_string(::getpid()));
    }
  }
  OuterJail(const OuterJail&) = delete;
  OuterJail& operator=(const OuterJail&) = delete;

 private:
  os::Cgroup group_;
};

constexpr bool kNoFilter = true;

struct Case {
  std::string name;
  std::vector<Wall> wall;    // empty: the script's own filter is the wall
  std::vector<Wall> others;  // that would stop the attack, too
  bool without_filter;       // as one of the others
  std::string attack;        // a body that says {"escaped": true} when it got through
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

constexpr const char* kTry =
    "    def works(call):\n"
    "        try: call()\n"
    "        except (OSError, RuntimeError, MemoryError): return {'escaped': False}\n"
    "        return {'escaped': True}\n";

std::vector<Case> Cases() {
  return {
      {"script_filter_stops_programs",
       {},
       {},
       false,
       "    import os\n"
       "    try: os.execv('/nonexistent', ['x'])\n"
       "    except OSError as error: return {'escaped': isinstance(error, FileNotFoundError)}\n"},
      {"seccomp_stops_sockets",
       {Wall::kSeccomp},
       {},
       kNoFilter,
       "    import socket\n    return works(lambda: socket.socket())\n"},
      {"seccomp_stops_processes",
       {Wall::kSeccomp},
       {},
       kNoFilter,
       "    import os\n"
       "    def fork():\n"
       "        if os.fork() == 0: os._exit(0)\n"
       "        os.wait()\n"
       "    return works(fork)\n"},
      {"network_namespace_stops_loopback",
       {Wall::kNetworkNamespace},
       {Wall::kSeccomp},
       kNoFilter,
       "    import socket\n"
       "    return works(lambda: socket.create_connection(('127.0.0.1', "
       "config['canary_port'])))\n"},
      {"network_namespace_stops_abstract_sockets",
       {Wall::kNetworkNamespace},
       {Wall::kSeccomp},
       kNoFilter,
       "    import socket\n"
       "    s = socket.socket(socket.AF_UNIX)\n"
       "    return works(lambda: s.connect('\\0' + config['canary_abstract']))\n"},
      {"pid_namespace_hides_processes",
       {Wall::kPidNamespace},
       {},
       false,
       "    import os\n"
       "    return {'escaped': os.path.exists('/proc/%d/cmdline' % config['canary_pid'])}\n"},
      {"ipc_namespace_stops_shared_memory",
       {Wall::kIpcNamespace},
       {Wall::kSeccomp},
       kNoFilter,
       "    import ctypes\n"
       "    c = ctypes.CDLL(None)\n"
       "    return {'escaped': c.shmget(config['shm_key'], 0, 0) >= 0}\n"},
      {"uts_namespace_hides_the_name",
       {Wall::kUtsNamespace},
       {},
       false,
       "    import os\n    return {'escaped': os.uname().nodename == config['host']}\n"},
      {"cgroup_namespace_hides_the_path",
       {Wall::kCgroupNamespace},
       {},
       false,
       "    return {'escaped': 'caisson.' in open('/proc/self/cgroup').read()}\n"},
      {"read_only_root_stops_writes",
       {Wall::kReadOnlyRoot},
       {Wall::kUser},
       false,
       "    import os\n"
       "    def write():\n"
       "        open('/caisson-walls-test', 'w').close()\n"
       "        os.remove('/caisson-walls-test')\n"
       "    return works(write)\n"},
      {"user_stops_writes",
       {Wall::kUser},
       {},
       false,
       "    return works(lambda: open('/dev/mark', 'w'))\n"},
      {"no_exec_stops_code_of_its_own",
       {Wall::kNoExecTmp},
       {},
       false,
       "    import mmap, os\n"
       "    fd = os.open('/tmp/code', os.O_RDWR | os.O_CREAT)\n"
       "    os.write(fd, bytes(4096))\n"
       "    return works(lambda: mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, "
       "prot=mmap.PROT_READ | mmap.PROT_EXEC))\n"},
      {"capabilities_stop_mounts",
       {Wall::kCapabilities},
       {Wall::kSeccomp},
       kNoFilter,
       "    import ctypes\n"
       "    c = ctypes.CDLL(None)\n"
       "    return {'escaped': c.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0}\n"},
      {"no_new_privs_is_set",
       {Wall::kNoNewPrivileges},
       {Wall::kSeccomp},
       kNoFilter,
       "    return {'escaped': 'NoNewPrivs:\\t0' in open('/proc/self/status').read()}\n"},
      {"masked_paths_hide_the_kernel",
       {Wall::kMaskedPaths},
       {},
       false,
       "    try: return {'escaped': bool(open('/proc/kallsyms').read(10))}\n"
       "    except OSError: return {'escaped': False}\n"},
      {"memory_limit_stops_memory",
       {Wall::kMemory},
       {},
       false,
       "    import mmap\n"
       "    def fill():\n"
       "        memory = mmap.mmap(-1, 200 << 20)\n"
       "        for at in range(0, 200 << 20, 4096): memory[at] = 1\n"
       "    return works(fill)\n"},
      {"pids_limit_stops_threads",
       {Wall::kPids},
       {},
       false,
       "    import threading, time\n"
       "    threading.stack_size(256 << 10)\n"
       "    def flood():\n"
       "        for _ in range(100): threading.Thread(target=time.sleep, args=(9,), "
       "daemon=True).start()\n"
       "    return works(flood)\n"},
  };
}

class OciWalls : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_CONTAINERS();
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
  Ran Attack(bool without) {
    const Case& test = GetParam();
    OciOptions options;
    for (Wall wall : test.others) options.without.Add(wall);
    if (without) {
      for (Wall wall : test.wall) options.without.Add(wall);
    }
    if (test.without_filter || (without && test.wall.empty())) {
      options.without_script_filter = DangerouslyWithoutScriptFilter();
    }
    options.unguarded = DangerouslyUnguarded();
    const auto runtime = MakeOci(folder_, options);
    if (runtime == nullptr) return {};
    ScriptJob job = BodyJob(kTry + test.attack, config_);
    job.limits.memory_bytes = 96u << 20;
    job.limits.pids = 32;
    return RunJob(*runtime, job);
  }

  StateFolder folder_;
  jail::TestCanaries canaries_;
  key_t key_ = 0x43420000 + ::getpid();
  int segment_ = -1;
  std::string config_;
};

TEST_P(OciWalls, StopsWhatIsNotStoppedWithoutIt) {
  const OuterJail jail;
  const Ran with = Attack(false);
  const bool killed = with.outcome.fault == Fault::kMemory;
  EXPECT_TRUE(killed || with.sink.done == std::vector<std::string>{"{\"escaped\":false}"})
      << Show(with);
  const Ran without = Attack(true);
  EXPECT_EQ(without.sink.done, std::vector<std::string>{"{\"escaped\":true}"}) << Show(without);
}

INSTANTIATE_TEST_SUITE_P(Each, OciWalls, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace caisson::isolate::oci
