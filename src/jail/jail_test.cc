// SPDX-License-Identifier: Apache-2.0
// Each wall is tried from inside: this program starts itself as an inmate, which seals itself and
// then does one forbidden thing. Where it is cheap, a wall is left out to show that the same thing
// then works. Runs as root and as an ordinary user.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "errors/jail.h"
#include "errors/os.h"
#include "jail/probe.h"
#include "jail/seal.h"
#include "jail/spawn.h"
#include "jail/syscalls.h"
#include "jail/test_attacks.h"
#include "os/capability.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::jail {
namespace {

using namespace std::chrono_literals;

// ---- the inmate's side ----

[[noreturn]] void Report(int code) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, code).ptr;
  (void)!::write(kChannelFd, text, static_cast<std::size_t>(end - text));
  ::_exit(0);
}

// argv: program, "__inmate", attack, [what to do before], ticket
int Inmate(int argc, char** argv) {
  const std::string attack = argv[2];
  const std::string before = argc > 4 ? argv[3] : "";
  auto ticket = SealTicket::FromText(argv[argc - 1]);
  if (!ticket) Report(-1);
  if (auto hardened = Harden(*ticket); !hardened) Report(-2);
  std::atomic<bool> stop{false};
  std::atomic<int> thread_result{-1};
  std::thread other;
  if (before == "open_directory") (void)::open("/", O_RDONLY | O_DIRECTORY);
  if (before == "open_socket") (void)::socket(AF_UNIX, SOCK_STREAM, 0);
  if (before == "other_thread") {
    other = std::thread([&] {
      while (!stop) std::this_thread::sleep_for(1ms);
      thread_result = Attacks().at(attack)();
    });
  }
  auto sealed = Seal(*ticket, {.syscalls = WorkerSyscalls(kChannelFd)});
  if (!sealed) Report(-3);
  if (!other.joinable()) Report(Attacks().at(attack)());
  stop = true;
  other.join();
  Report(thread_result);
}

// ---- the test's side ----

struct Ending {
  std::optional<int> result;  // what the attack reported
  os::ExitStatus status;
  std::string start_error;
  std::vector<WallReport> walls;
};

Ending RunInmate(const std::string& attack, const WallSet& leave_out = {},
                 const std::string& before = "", os::CgroupLimits limits = {}) {
  auto pair = os::MakeSocketPair(1u << 16);
  SpawnOptions options{.arguments = {"jail_test", "__inmate", attack},
                       .channel = pair->second.get(),
                       .limits = limits,
                       .leave_out = {leave_out}};
  if (!before.empty()) options.arguments.push_back(before);
  Ending ending;
  auto jailed = Spawn(options);
  if (!jailed) {
    ending.start_error = jailed.error().message;
    return ending;
  }
  pair->second.Reset();
  ending.walls = jailed->walls;
  ending.status = jailed->process.Wait(20s).value_or(os::ExitStatus{.code = -1, .signal = 0});
  char text[32];
  const ssize_t n = ::recv(pair->first.get(), text, sizeof text, MSG_DONTWAIT);
  int value = 0;
  if (n > 0 && std::from_chars(text, text + n, value).ec == std::errc()) ending.result = value;
  return ending;
}

void ExpectKilledBySeccomp(const std::string& attack, const std::string& before = "") {
  const Ending ending = RunInmate(attack, {}, before);
  EXPECT_EQ(ending.start_error, "");
  EXPECT_FALSE(ending.result) << attack << " reported " << *ending.result;
  EXPECT_EQ(ending.status.signal, SIGSYS) << attack << ": " << os::ToText(ending.status);
}

// Without these, what is left are the walls around files.
WallSet OpenExcept(std::initializer_list<Wall> standing) {
  WallSet open;
  for (Wall wall : {Wall::kSeccomp, Wall::kResourceLimits, Wall::kLandlock, Wall::kEmptyRoot}) {
    if (std::ranges::find(standing, wall) == standing.end()) open.Add(wall);
  }
  return open;
}

TEST(Jail, LetsAnInmateComputeAllocateAndStartThreads) {
  for (const char* good : {"nothing", "allocate", "start_thread"}) {
    const Ending ending = RunInmate(good);
    EXPECT_EQ(ending.start_error, "");
    EXPECT_EQ(ending.result, 0) << good << ": " << os::ToText(ending.status);
  }
}

TEST(Jail, KillsAnInmateThatMakesACallWhichIsNotOnTheList) {
  for (const char* attack : {"open_passwd",
                             "open_proc",
                             "open_root",
                             "write_file",
                             "execute",
                             "socket_inet",
                             "socket_inet6",
                             "socket_unix",
                             "socket_vsock",
                             "socket_netlink",
                             "socketpair",
                             "ptrace",
                             "io_uring",
                             "userfaultfd",
                             "keyctl",
                             "bpf",
                             "perf",
                             "unshare",
                             "mount",
                             "sethostname",
                             "memfd",
                             "fork",
                             "kill_parent",
                             "map_code",
                             "new_descriptor",
                             "regain_user",
                             "write_inherited_fd",
                             "use_inherited_fd",
                             "socket_packet",
                             "socket_alg",
                             "pass_descriptor",
                             "attach_other",
                             "read_other",
                             "write_other",
                             "open_other",
                             "open_proc_of_first",
                             "kill_group",
                             "kill_other",
                             "kill_thread_of_other",
                             "queue_signal",
                             "clone_user",
                             "clone_network",
                             "vfork",
                             "join_namespace",
                             "execute_from_memory",
                             "turn_data_into_code",
                             "change_root",
                             "pivot_root",
                             "open_file_system",
                             "open_tree",
                             "openat2",
                             "open_by_handle",
                             "read_link",
                             "look_at_file",
                             "add_key",
                             "request_key",
                             "shared_memory",
                             "message_queue",
                             "pipe",
                             "eventfd",
                             "inotify",
                             "fanotify",
                             "timer_fd",
                             "control_terminal",
                             "raise_limit",
                             "personality",
                             "set_clock",
                             "load_module",
                             "reboot",
                             "read_kernel_log",
                             "trap_own_calls",
                             "take_death_signal_off"}) {
    ExpectKilledBySeccomp(attack);
  }
  // Refused, so that libc takes clone; what it asks for is in memory, where no filter can look.
  EXPECT_EQ(RunInmate("clone3_user").result, ENOSYS);
}

#if defined(__x86_64__)
TEST(Jail, KillsAnInmateThatEntersTheKernelByAnotherGate) {
  for (const char* attack : {"old_gate", "x32_gate", "ports"}) ExpectKilledBySeccomp(attack);
}
#endif

TEST(Jail, GivesNoDescriptorOfAnyKindEvenWithoutSeccomp) {
  for (const char* attack : {"socket_vsock", "socket_netlink", "memfd", "pipe", "eventfd",
                             "inotify", "timer_fd", "socketpair"}) {
    EXPECT_EQ(RunInmate(attack, {Wall::kSeccomp}).result, EMFILE) << attack;
  }
  // Others are refused for reasons that differ from kernel to kernel.
  for (const char* attack :
       {"io_uring", "userfaultfd", "perf", "bpf", "fanotify", "socket_packet", "socket_alg"}) {
    const int result = RunInmate(attack, {Wall::kSeccomp}).result.value_or(0);
    EXPECT_TRUE(result == EMFILE || result == EPERM || result == EACCES || result == ENOSYS ||
                result == ENOMEM || result == EAFNOSUPPORT)
        << attack << ": " << result;
  }
}

TEST(Jail, ReachesNoOtherProcessEvenWithoutSeccomp) {
  for (const char* attack : {"attach_other", "read_other", "write_other", "open_other",
                             "kill_other", "kill_thread_of_other"}) {
    EXPECT_EQ(RunInmate(attack, {Wall::kSeccomp}).result, ESRCH) << attack;
  }
  EXPECT_EQ(RunInmate("open_proc_of_first", OpenExcept({Wall::kEmptyRoot})).result, ENOENT);
}

TEST(Jail, LetsThreadsGiveMemoryBack) {
  EXPECT_EQ(RunInmate("allocate_and_free").result, 0);
  const Ending ending = RunInmate("allocate_and_free", {}, "other_thread");
  EXPECT_EQ(ending.result, 0) << os::ToText(ending.status);
}

TEST(Jail, CoversThreadsThatRanBeforeTheSeal) {
  for (const char* attack : {"open_passwd", "socket_inet", "fork"}) {
    ExpectKilledBySeccomp(attack, "other_thread");
  }
  // And by the other walls alone.
  const auto try_from_thread = [](const char* attack, std::initializer_list<Wall> standing) {
    return RunInmate(attack, OpenExcept(standing), "other_thread").result;
  };
  EXPECT_EQ(try_from_thread("open_passwd", {Wall::kLandlock}), EACCES);
  EXPECT_EQ(try_from_thread("open_passwd", {Wall::kEmptyRoot}), ENOENT);
  EXPECT_EQ(try_from_thread("open_passwd", {Wall::kResourceLimits}), EMFILE);
  EXPECT_EQ(try_from_thread("open_passwd", {}), 0);
  EXPECT_EQ(try_from_thread("mount", {Wall::kEmptyRoot}), EPERM);
}

TEST(Jail, HasNoFilesEvenWithoutSeccomp) {
  const auto result = [](const char* attack, std::initializer_list<Wall> standing) {
    return RunInmate(attack, OpenExcept(standing)).result;
  };
  EXPECT_EQ(result("open_passwd", {Wall::kLandlock}), EACCES);
  EXPECT_EQ(result("open_passwd", {Wall::kEmptyRoot}), ENOENT);
  EXPECT_EQ(result("open_passwd", {Wall::kResourceLimits}), EMFILE);
  EXPECT_EQ(result("open_passwd", {}), 0);
  EXPECT_EQ(result("open_proc", {Wall::kEmptyRoot}), ENOENT);
  EXPECT_EQ(result("execute", {Wall::kEmptyRoot}), ENOENT);
  EXPECT_EQ(result("execute", {Wall::kLandlock}), EACCES);
  EXPECT_EQ(result("make_file", {Wall::kEmptyRoot}), EROFS);
}

TEST(Jail, HasNoNetworkEvenWithoutSeccomp) {
  const WallSet calls = {Wall::kSeccomp, Wall::kResourceLimits};
  EXPECT_EQ(RunInmate("connect_inet", calls).result, ENETUNREACH);
}

TEST(Jail, CannotReachAbstractSocketsOfTheHost) {
  const os::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "caisson-jail-test", 17);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t) + 18),
            0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  WallSet open = {Wall::kSeccomp, Wall::kResourceLimits, Wall::kLandlock};
  EXPECT_EQ(RunInmate("connect_abstract", open).result, ECONNREFUSED);
  open.Add(Wall::kNetworkNamespace);
  EXPECT_EQ(RunInmate("connect_abstract", open).result, 0);
}

TEST(Jail, HoldsNoPrivilegeEvenWithoutSeccomp) {
  EXPECT_EQ(RunInmate("mount", {Wall::kSeccomp, Wall::kLandlock}).result, EPERM);
  EXPECT_EQ(RunInmate("sethostname", {Wall::kSeccomp}).result, EPERM);
  EXPECT_EQ(RunInmate("not_dumpable").status.signal, SIGSYS);
  EXPECT_EQ(RunInmate("not_dumpable", {Wall::kSeccomp}).result, EPERM);
  if (::geteuid() == 0) {
    EXPECT_EQ(RunInmate("regain_user", {Wall::kSeccomp}).result, EPERM);
  }
  const WallSet open = {Wall::kSeccomp, Wall::kLandlock, Wall::kCapabilities,
                        Wall::kUnprivilegedUser};
  EXPECT_EQ(RunInmate("sethostname", open).result, 0);
}

TEST(Jail, SeesNoOtherProcess) {
  EXPECT_EQ(RunInmate("see_processes", {Wall::kSeccomp}).result, ESRCH);
  EXPECT_EQ(RunInmate("see_processes",
                      {Wall::kSeccomp, Wall::kPidNamespace, Wall::kEmptyRoot, Wall::kLandlock})
                .result,
            0);
}

TEST(Jail, InheritsNeitherEnvironmentNorDescriptors) {
  ::setenv("CAISSON_JAIL_TEST", "secret", 1);
  ASSERT_EQ(::dup2(1, 100), 100);  // not close-on-exec
  const WallSet calls = {Wall::kSeccomp};
  EXPECT_EQ(RunInmate("read_environment").result, ENOENT);
  EXPECT_EQ(RunInmate("use_inherited_fd", calls).result, EBADF);
  const WallSet open = {Wall::kSeccomp, Wall::kCleanStart};
  EXPECT_EQ(RunInmate("read_environment", open).result, 0);
  EXPECT_EQ(RunInmate("use_inherited_fd", open).result, 0);
  ::close(100);
  ::unsetenv("CAISSON_JAIL_TEST");
}

TEST(Jail, RefusesToSealAProgramThatLeavesAWayOutOpen) {
  EXPECT_EQ(RunInmate("nothing", {}, "open_directory").result, -3);
  EXPECT_EQ(RunInmate("nothing", {}, "open_socket").result, -3);
}

TEST(Jail, StopsAFloodOfProcessesEvenWithoutSeccomp) {
  EXPECT_EQ(RunInmate("fork_many", {Wall::kSeccomp}).result, EAGAIN);
  const WallSet open = {Wall::kSeccomp, Wall::kResourceLimits};
  EXPECT_EQ(RunInmate("fork_many", open).result, 0);
  for (const auto& place : os::FindControllers()) {
    if (place.controller != os::Controller::kPids || place.version == 0) continue;
    EXPECT_EQ(RunInmate("fork_many", open, "", {.pids = 20}).result, EAGAIN);
  }
}

TEST(Jail, EndsAnInmateThatTakesMoreMemoryThanItsCgroupAllows) {
  if (os::FindControllers()[0].version == 0) GTEST_SKIP() << os::FindControllers()[0].reason;
  const Ending ending = RunInmate("touch_memory", {}, "", {.memory_bytes = 64u << 20});
  EXPECT_EQ(ending.status.signal, SIGKILL) << os::ToText(ending.status);
  EXPECT_FALSE(ending.result);
  EXPECT_EQ(RunInmate("touch_memory", {}, "", {.memory_bytes = 512u << 20}).result, 0);
}

TEST(Jail, LeavesNoProcessDescriptorOrCgroupBehind) {
  const auto count = [](const char* path) {
    const auto entries = std::filesystem::directory_iterator(path);
    return std::distance(begin(entries), end(entries));
  };
  RunInmate("nothing", {}, "", {.memory_bytes = 256u << 20, .cpus = 1, .pids = 20});
  const auto descriptors = count("/proc/self/fd");
  for (int i = 0; i < 10; ++i) {
    RunInmate("nothing", {}, "", {.memory_bytes = 256u << 20, .cpus = 1, .pids = 20});
  }
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  for (const auto& place : os::FindControllers()) {
    if (place.version == 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(place.parent)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(os::Cgroup::NamePrefix()))
          << entry.path();
    }
  }
}

// Ends this process at its next write(2) of one byte, which is what lets an inmate begin.
void DieAtTheRelease() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(Jail, SaysSoWhenDescriptorsHaveRunOut) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<os::UniqueFd> held;
  const auto fill = [&held] {
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) held.emplace_back(fd);
  };
  auto pair = os::MakeSocketPair(1 << 16);
  ASSERT_TRUE(pair);
  const rlimit few{.rlim_cur = 64, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  fill();
  // Each descriptor that it needs is the one that is missing once.
  std::size_t refused = 0;
  for (; !held.empty(); ++refused) {
    const auto jailed =
        Spawn({.arguments = {"jail_test", "__inmate", "nothing"}, .channel = pair->second.get()});
    if (jailed) break;
    EXPECT_EQ(jailed.error().code, errors::kOsOpenFiles) << jailed.error().message;
    EXPECT_EQ(jailed.error().message.find("namespace"), std::string::npos)
        << jailed.error().message;
    held.pop_back();
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GT(refused, 3u);
}

TEST(Jail, LeavesNoInmateBehindWhenItsParentDiesBeforeItBegins) {
  auto alive = os::MakePipe();  // its end is written to by nobody, and held by all who live
  const pid_t parent = ::fork();
  if (parent == 0) {
    DieAtTheRelease();
    auto pair = os::MakeSocketPair(1u << 16);
    (void)Spawn({.arguments = {"jail_test", "__inmate", "nothing"}, .channel = pair->second.get()});
    ::_exit(0);
  }
  alive->second.Reset();
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the parent outlived the release";
  pollfd watched{alive->first.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 10'000), 1) << "somebody still lives";
}

TEST(Jail, FailsWithoutAProgramToRun) {
  auto pair = os::MakeSocketPair(1u << 16);
  auto jailed = Spawn({.executable = "/nonexistent/program", .channel = pair->second.get()});
  ASSERT_FALSE(jailed);
  EXPECT_NE(jailed.error().message.find("/nonexistent/program"), std::string::npos);
}

// Runs `body` in a child as an ordinary user who may not make user namespaces.
int WithoutUserNamespaces(const std::function<int()>& body) {
  const std::string uid = std::to_string(::geteuid());
  auto clone = os::CloneWithNamespaces(CLONE_NEWUSER);
  if (!clone) return 99;
  if (clone->pid == 0) {
    if (!os::WriteSmallFile("/proc/self/setgroups", "deny") ||
        !os::WriteSmallFile("/proc/self/uid_map", "1000 " + uid + " 1") ||
        !os::WriteSmallFile("/proc/sys/user/max_user_namespaces", "0")) {
      ::_exit(100);
    }
    (void)os::ClearCapabilities();
    ::_exit(body());
  }
  os::ChildProcess child(clone->pid, std::move(clone->pidfd));
  const auto status = child.Wait(60s);
  return status && status->signal == 0 ? status->code : -1;
}

TEST(Jail, IsRefusedWhereItCannotBeBuilt) {
  EXPECT_EQ(WithoutUserNamespaces([] {
              auto pair = os::MakeSocketPair(1u << 16);
              auto jailed = Spawn({.arguments = {"jail_test", "__inmate", "nothing"},
                                   .channel = pair->second.get()});
              if (jailed) return 1;
              if (jailed.error().code != errors::kJailUnavailable) return 2;
              const std::string& message = jailed.error().message;
              return message.find("user_namespace") != std::string::npos &&
                             message.find("max_user_namespaces") != std::string::npos
                         ? 0
                         : 3;
            }),
            0);
}

TEST(Jail, RunsWithTheWallsThatThereAreWhenThatIsGranted) {
  EXPECT_EQ(WithoutUserNamespaces([] {
              auto pair = os::MakeSocketPair(1u << 16);
              auto jailed = Spawn({.arguments = {"jail_test", "__inmate", "open_passwd"},
                                   .channel = pair->second.get(),
                                   .allow_unjailed = AllowUnjailed()});
              if (!jailed) return 1;
              for (const WallReport& wall : jailed->walls) {
                if (wall.name == "pid_namespace" && wall.stands) return 2;
              }
              const auto status = jailed->process.Wait(20s);
              return status && status->signal == SIGSYS ? 0 : 3;  // seccomp still stands
            }),
            0);
}

TEST(Jail, ReportsForDoctorWhyItCannotBeBuilt) {
  EXPECT_EQ(WithoutUserNamespaces([] {
              const std::vector<WallReport> reports = ProbeWalls();
              for (const WallReport& report : reports) {
                if (report.name == "user_namespace" || report.name == "pid_namespace" ||
                    report.name == "network_namespace" || report.name == "empty_root") {
                  if (report.stands || report.reason.empty() || report.what_to_do.empty()) return 1;
                }
                if (report.name == "seccomp" && !report.stands) return 2;
                if (report.name == "no_new_privs" && !report.stands) return 3;
              }
              return 0;
            }),
            0);
}

// The whole program once more as "nobody".
TEST(Jail, HoldsForAnOrdinaryUserToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "is not run as root: the other tests show it";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
        ::setresuid(65534, 65534, 65534) != 0) {
      ::_exit(101);
    }
    ::execl("/proc/self/exe", "jail_test", "--gtest_brief=1", nullptr);
    ::_exit(102);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SealTicket, SurvivesItsTextAndNothingElseDoes) {
  const SealTicket ticket{.standing = {Wall::kPidNamespace, Wall::kMountNamespace},
                          .leave_out = {Wall::kSeccomp},
                          .allow_unjailed = true,
                          .outer_mount_namespace = "mnt:[4026531841]"};
  auto parsed = SealTicket::FromText(ticket.ToText());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ToText(), ticket.ToText());
  for (const char* bad : {"", "--jail=", "--jail=1,2", "--jail=1,2,0,", "--jail=1,2,0,net:[4]",
                          "--jail=x,2,0,mnt:[4]", "--jail=1,2,0mnt:[4]"}) {
    auto refused = SealTicket::FromText(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, errors::kJailUnavailable);
  }
}

TEST(ProbeWalls, ReportsEveryWallInOrderAndAgreesWithARealJail) {
  const std::vector<WallReport> reports = ProbeWalls();
  ASSERT_EQ(reports.size(), kWallCount);
  const Ending real =
      RunInmate("nothing", {}, "", {.memory_bytes = 256u << 20, .cpus = 1, .pids = 20});
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const WallReport& report = reports[i];
    EXPECT_EQ(report.name, AllWalls()[i].name);
    EXPECT_EQ(report.mandatory, AllWalls()[i].mandatory);
    EXPECT_EQ(report.stands, report.what_to_do.empty()) << report.name;
    if (report.mandatory && real.start_error.empty()) {
      EXPECT_TRUE(report.stands) << report.name << ": " << report.reason;
    }
    for (const WallReport& other : real.walls) {
      if (other.name != report.name) continue;
      EXPECT_EQ(other.stands, report.stands) << report.name;
    }
  }
}

TEST(Walls, RefusalsNameTheWallTheReasonAndWhatToDo) {
  for (const WallInfo& info : AllWalls()) {
    const Status status = Unavailable(info.wall, "a reason").error();
    EXPECT_EQ(status.code, errors::kJailUnavailable);
    for (std::string_view part : {info.name, std::string_view("a reason"), info.what_to_do}) {
      EXPECT_NE(status.message.find(part), std::string::npos) << status.message;
    }
    EXPECT_EQ(&InfoOf(info.wall), &info);
  }
}

}  // namespace
}  // namespace caisson::jail

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "__inmate") return caisson::jail::Inmate(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
