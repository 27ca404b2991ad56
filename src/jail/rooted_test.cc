// SPDX-License-Identifier: Apache-2.0
// A program of a root file system sees that and nothing else. The filter's tests are with the
// runtime that uses it (isolate/native).
#include "jail/rooted.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "errors/jail.h"
#include "errors/os.h"
#include "jail/interpreter_syscalls.h"
#include "jail/test_root.h"
#include "os/fd.h"
#include "os/seccomp.h"

namespace caisson::jail {
namespace {

using namespace std::chrono_literals;

struct Told {
  std::string error;
  ErrorCode code;
  std::string out;  // stdout and stderr
  os::ExitStatus status;
  std::vector<WallReport> walls;
};

class Rooted : public testing::Test {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_ROOT();
    directory_ = RootForTests();
  }

  Told Run(const std::string& program, std::vector<std::string> arguments, WallSet leave_out = {}) {
    const Root root({.directory = directory_, .files = {{"run/caisson/hello", "hello"}}});
    const auto filter = os::BuildFilter(ZygoteSyscalls(AllowProcesses()), EPERM);
    EXPECT_TRUE(filter);
    auto channel = os::MakeSocketPair(1 << 16);
    const os::UniqueFd log(::memfd_create("log", MFD_CLOEXEC));
    EXPECT_TRUE(channel && log.valid());
    auto jailed = SpawnInRoot({.root = &root,
                               .program = program,
                               .arguments = std::move(arguments),
                               .environment = {"LANG=C.UTF-8"},
                               .channel = channel->second.get(),
                               .log = log.get(),
                               .limits = {.memory_bytes = 256u << 20, .cpus = 1, .pids = 16},
                               .filter = *filter,
                               .leave_out = {leave_out}});
    if (!jailed) return {.error = jailed.error().message, .code = jailed.error().code};
    Told told;
    told.walls = jailed->walls;
    const auto status = jailed->process.Wait(30s);
    EXPECT_TRUE(status);
    if (status) told.status = *status;
    char text[65536];
    const ssize_t n = ::pread(log.get(), text, sizeof text, 0);
    told.out.assign(text, n > 0 ? static_cast<std::size_t>(n) : 0);
    return told;
  }
  Told Python(const std::string& source, WallSet leave_out = {}) {
    return Run("/usr/bin/python3", {"python3", "-I", "-B", "-c", source}, leave_out);
  }

  std::string directory_;
};

TEST_F(Rooted, HasItsRootAndNothingOfTheHosts) {
  const Told told = Python(
      "import os\n"
      "print(open('/run/caisson/hello').read(), sorted(os.listdir('/dev')), os.listdir('/tmp'))\n"
      "print([n for n in os.listdir('/proc') if n.isdigit()], sorted(os.environ), os.getpid())\n"
      "print(len(open('/proc/self/mountinfo').readlines()))\n");
  EXPECT_EQ(told.error, "");
  EXPECT_EQ(told.out,
            "hello ['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', "
            "'zero'] []\n['1'] ['LANG'] 1\n10\n");
}

TEST_F(Rooted, IsReadOnlyButForTmp) {
  const Told told = Python(
      "import os\n"
      "for path in ('/x', '/usr/x', '/etc/x', '/run/x', '/run/caisson/hello', '/dev/x', "
      "'/tmp/x'):\n"
      "    try: open(path, 'w').close(); print(path)\n"
      "    except OSError: pass\n"
      "for path in ('/dev/null', '/dev/zero'): open(path, 'r+b', buffering=0).write(b'x')\n");
  EXPECT_EQ(told.out, "/tmp/x\n");
}

TEST_F(Rooted, HasNoPrivileges) {
  const Told told = Python(
      "for line in open('/proc/self/status'):\n"
      "    if line.startswith(('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'NoNewPrivs', "
      "'Seccomp:')):\n"
      "        print(line.strip())\n");
  EXPECT_EQ(told.out,
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
            "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

TEST_F(Rooted, AnotherUserKeepsItFromFilesOfRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has another user to become";
  std::string secret = "/var/tmp/caisson-secret-XXXXXX";  // its mode is 0600
  const os::UniqueFd file(::mkstemp(secret.data()));
  ASSERT_EQ(::write(file.get(), "secret", 6), 6);
  const std::string source = "print(open('" + secret + "').read())";
  const Told another = Python(source, {Wall::kEmptyRoot});
  const Told root = Python(source, {Wall::kEmptyRoot, Wall::kUnprivilegedUser});
  ::unlink(secret.c_str());
  EXPECT_NE(another.out.find("PermissionError"), std::string::npos) << another.out;
  EXPECT_EQ(root.out, "secret\n");
}

TEST_F(Rooted, TheRootHidesTheHostsFiles) {
  const std::string source = "print(open('" + directory_ + "/etc/passwd').read(4))";
  EXPECT_NE(Python(source).out.find("FileNotFoundError"), std::string::npos);
  EXPECT_EQ(Python(source, {Wall::kEmptyRoot}).out, "root\n");
}

TEST_F(Rooted, FailsClosed) {
  EXPECT_EQ(Run("/no/such/program", {"x"}).code, errors::kOsSyscall);
  // The host's own tree would be rebuilt.
  EXPECT_EQ(Python("", {Wall::kMountNamespace}).code, errors::kJailUnavailable);
  directory_ = "/proc/self/fd";
  const Told told = Python("");
  EXPECT_EQ(told.code, errors::kJailUnavailable);
  EXPECT_NE(told.error.find("tmp"), std::string::npos) << told.error;
}

TEST_F(Rooted, ReportsItsWalls) {
  const Told told = Python("", {Wall::kUtsNamespace});
  std::set<std::string> names;
  for (const WallReport& wall : told.walls) {
    EXPECT_TRUE(names.insert(wall.name).second) << wall.name;
    EXPECT_EQ(wall.stands, wall.name != "uts_namespace" &&
                               (::geteuid() == 0 || wall.name.find("_cgroup") == std::string::npos))
        << wall.name << ": " << wall.reason;
  }
  // All but Landlock, which would keep the program from mounting.
  EXPECT_EQ(names.size(), kWallCount - 1);
}

TEST(InterpreterSyscalls, EachHasAReasonAndNoneOpensAWay) {
  const std::set<std::string> never = {"socket",
                                       "ptrace",
                                       "process_vm_readv",
                                       "io_uring_setup",
                                       "userfaultfd",
                                       "keyctl",
                                       "add_key",
                                       "bpf",
                                       "perf_event_open",
                                       "unshare",
                                       "setns",
                                       "mount",
                                       "umount2",
                                       "fsopen",
                                       "pivot_root",
                                       "open_by_handle_at",
                                       "init_module",
                                       "execve",
                                       "execveat",
                                       "fork",
                                       "vfork",
                                       "wait4",
                                       "sendmsg",
                                       "recvmsg"};
  for (const os::SyscallRule& rule : ScriptSyscalls(std::nullopt)) {
    EXPECT_GT(std::string(rule.reason).size(), 3u) << rule.name;
    EXPECT_FALSE(never.contains(rule.name) && rule.fail_with == 0) << rule.name;
  }
}

TEST(InterpreterSyscalls, BecomeAProgram) {
  const auto script = os::BuildFilter(ScriptSyscalls(std::nullopt), EPERM);
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_GT(script->size(), 100u);
  EXPECT_LT(script->size(), 4096u);
}

}  // namespace
}  // namespace caisson::jail
