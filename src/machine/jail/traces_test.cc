// SPDX-License-Identifier: Apache-2.0
// What machines leave on the host: nothing, wherever their helper was killed. And what a guest sees
// of the host: nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "errors/machine.h"
#include "machine/boot.h"
#include "machine/jail/test_jail.h"
#include "machine/test_guest.h"
#include "machine/test_traces.h"
#include "os/run_program.h"

namespace caisson::machine::jail {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

MachineSpec Spec(const std::string& id) {
  return {.id = id,
          .image = ImageForTests(),
          .memory_bytes = 64ull << 20,
          .disk_bytes = 64ull << 20,
          .pids = 32,
          .network = egress::Policy::DenyAll()};
}

class Traces : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    Open(false);
  }
  void Open(bool network) {
    helper_ = std::make_unique<HelperProcess>(JailHelper(network));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
  }
  Driver& driver() { return *driver_; }
  std::string Say(const std::string& id, const std::string& code) {
    const Ran ran = Python(driver(), id, code);
    return ran.error + ran.out + (ran.signal != 0 ? "signal " + std::to_string(ran.signal) : "");
  }

  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

TEST_F(Traces, NothingIsLeftOfMachinesThatWereDestroyed) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(driver().Create(Spec(id)));
  EXPECT_FALSE(TracesOf(*helper_).empty()) << "this test does not see what there is";
  ASSERT_TRUE(driver().Pause("a", Level::kMemory));
  ASSERT_TRUE(driver().Pause("b", Level::kDisk));
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(driver().Destroy(id));
  helper_->Stop();  // discards what waits
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_F(Traces, NothingIsLeftOfWhatCouldNotBeMade) {
  MachineSpec spec = Spec("no-such-image");
  spec.image = std::string(64, '1');
  EXPECT_FALSE(driver().Create(spec));
  helper_->Stop();
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_F(Traces, AHelperThatStopsLeavesMachinesAndTheNextOneHasThem) {
  ASSERT_TRUE(driver().Create(Spec("stays")));
  helper_->Stop();
  EXPECT_FALSE(TracesOf(*helper_).empty());
  helper_->Start();
  EXPECT_EQ(Say("stays", "print(1)"), "1\n");
}

// Lives of machines, with the helper killed at a random moment again and again.
class Crashes : public Traces, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    const bool network = GetParam();
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    if (network && os::FindProgram("nft").empty()) GTEST_SKIP() << "needs nft (nftables)";
    if (network) {
      // The gateway's world is this test's own.
      ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
      ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    }
    Open(network);
  }
};

TEST_P(Crashes, LeaveNothingAndNobodyIsToldAnUntruth) {
  LiveThroughCrashes(*helper_, driver(), Spec("life"), 30);
}

INSTANTIATE_TEST_SUITE_P(Helper, Crashes, testing::Values(false, true), [](const auto& with) {
  return with.param ? "with_networks" : "without_networks";
});

TEST_F(Traces, WhatAKilledHelperHadPreparedIsRemovedByTheNextOne) {
  ASSERT_TRUE(driver().Create(Spec("one")));
  std::this_thread::sleep_for(500ms);
  helper_->Kill();
  std::this_thread::sleep_for(500ms);
  helper_->Start();
  ASSERT_TRUE(driver().Destroy("one"));
  std::size_t left = 0;
  for (int i = 0; i < 100; ++i) {
    left = 0;
    for ([[maybe_unused]] const auto& entry :
         fs::directory_iterator(helper_->state() + "/machines"))
      ++left;
    if (left == 0) break;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(left, 0u);
}

TEST_F(Traces, ARecordThatCannotBeReadIsSetAsideWithItsDisk) {
  ASSERT_TRUE(driver().Create(Spec("torn")));
  ASSERT_TRUE(driver().Pause("torn", Level::kDisk));
  helper_->Kill();
  for (const auto& entry : fs::directory_iterator(helper_->state() + "/machines")) {
    std::ofstream(entry.path() / "record.json") << "{\"index\":";
  }
  helper_->Start();
  EXPECT_TRUE(driver().List().value_or(std::vector<Machine>(1)).empty());
  std::size_t disks = 0;
  for (const auto& entry : fs::directory_iterator(helper_->state() + "/set-aside")) {
    disks += fs::exists(entry.path() / "disk.img") ? 1 : 0;
  }
  EXPECT_GE(disks, 1u);
}

TEST_F(Traces, ASecondHelperOverTheSameStateIsRefused) {
  const auto second = OpenJail({.workshop = {.state = helper_->state(),
                                             .images = ImagesForTests(),
                                             .agent = CAISSON_TEST_AGENT}},
                               {.networks = NoNetworks(), .ids = std::make_shared<IdRanges>()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errors::kMachineState);
}

TEST_F(Traces, OnlyTheUserMayConnect) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chmod(helper_->directory().c_str(), 0755) != 0 || ::setuid(65534) != 0) ::_exit(3);
    ::_exit(helper::RemoteDriver::Open({.socket = helper_->socket(), .helper_patience = 0ms}) ? 1
                                                                                              : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// --- what a guest may do ---

TEST_F(Traces, AGuestHasTheNamedCapabilitiesAndCannotMakeNamespacesOrMounts) {
  ASSERT_TRUE(driver().Create(Spec("guest")));
  EXPECT_EQ(Say("guest",
                "print([l.split()[1] for l in open('/proc/self/status') if l[:3] == 'Cap'])\n"
                "print([l.split()[1] for l in open('/proc/1/status') if l[:6] in "
                "('NoNewP', 'Seccom')])"),
            "['0000000000000000', '00000000000004eb', '00000000000004eb', '00000000000004eb', "
            "'0000000000000000']\n['1', '2', '1']\n");
  // unshare, mount, open_tree, setns, ptrace, bpf, io_uring_setup, keyctl, init_module, kexec_load,
  // userfaultfd, perf_event_open, pivot_root, swapon, reboot, chroot, clone(CLONE_NEWUSER)
  EXPECT_EQ(Say("guest",
                "import ctypes\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "for call in [(272, 0x10000000), (165, 0, 0, 0, 0, 0), (428, -100, b'/', 1), "
                "(308, 0, 0), (101, 16, 1, 0, 0), (321, 0, 0, 0), (425, 1, 0), (250, 0, -3), "
                "(175, 0, 0, 0), (246, 0, 0, 0, 0), (323, 0), (298, 0, 0, -1, -1, 0), "
                "(155, b'/', b'/'), (167, b'/x', 0), (169, 0, 0, 0, 0), (161, b'/'), "
                "(56, 0x10000011, 0)]:\n"
                "  ctypes.set_errno(0)\n"
                "  if libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in call])"
                " != -1 or ctypes.get_errno() not in (1, 38): print(call, ctypes.get_errno())\n"),
            "");
}

TEST_F(Traces, AGuestOpensNoSocketsOfTheHostsKindsAndNoDevices) {
  ASSERT_TRUE(driver().Create(Spec("guest")));
  EXPECT_EQ(Say("guest",
                "import socket, os\n"
                "for family in range(0, 50):\n"
                "  if family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): continue\n"
                "  for kind in (1, 2, 3):\n"
                "    try: socket.socket(family, kind, 0); print('opened', family, kind)\n"
                "    except OSError: pass\n"),
            "opened 16 2\nopened 16 3\n")
      << "netlink's routing family alone may be asked";
  EXPECT_EQ(Say("guest",
                "import os, stat\n"
                "for kind in (stat.S_IFBLK, stat.S_IFCHR):\n"
                "  for major, minor in ((7, 0), (254, 0), (1, 1), (10, 237)):\n"
                "    try: os.mknod('/tmp/node', kind | 0o666, os.makedev(major, minor)); "
                "print('made', major)\n"
                "    except PermissionError: pass\n"
                "os.mkfifo('/tmp/pipe')\n"),
            "");
}

TEST_F(Traces, AGuestSeesItsOwnProcessesFilesAndMountsAlone) {
  ASSERT_TRUE(driver().Create(Spec("guest")));
  EXPECT_EQ(Say("guest",
                "import os\n"
                "pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
                "print(max(pids) < 100, os.path.exists('/sys/kernel'))\n"
                "mounts = open('/proc/self/mountinfo').read()\n"
                "print('caisson' in mounts, '/tmp/' in mounts)\n"
                "for hidden in ('kcore', 'kallsyms', 'keys', 'timer_list', 'kmsg', "
                "'sysrq-trigger'):\n"
                "  try:\n"
                "    if open('/proc/' + hidden, 'rb').read(1): print('read', hidden)\n"
                "  except OSError: pass\n"
                "for fixed in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', "
                "'/proc/sys/kernel/hostname', '/dev/added'):\n"
                "  try: open(fixed, 'w').write('1'); print('wrote', fixed)\n"
                "  except OSError: pass\n"
                "for agents in ('/proc/1/mem', '/proc/1/environ', '/proc/1/exe'):\n"
                "  try: open(agents, 'r+b'); print('opened', agents)\n"
                "  except OSError: pass\n"),
            "True False\nFalse False\n");
}

TEST_F(Traces, ForkBombsEatersAndFullDisksHurtOneMachineAlone) {
  ASSERT_TRUE(driver().Create(Spec("bad")));
  ASSERT_TRUE(driver().Create(Spec("good")));
  const auto start = [this](const std::string& code) {
    return std::thread([this, code] { (void)Python(driver(), "bad", code, 4s); });
  };
  std::vector<std::thread> attacks;
  attacks.push_back(start("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"));
  attacks.push_back(start("x = []\nwhile True: x.append(bytearray(1 << 20))"));
  attacks.push_back(
      start("n = 0\n"
            "while True:\n"
            "  try: open('/var/f%d' % n, 'wb').write(bytes(1 << 20))\n"
            "  except OSError: pass\n"
            "  n += 1"));
  attacks.push_back(start("while True: pass"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Say("good", "open('/var/x', 'w').write('1'); print(1)"), "1\n");
  }
  const auto stats = driver().ReadStats("bad");
  ASSERT_TRUE(stats);
  EXPECT_LE(stats->memory_bytes, 64ull << 20);
  EXPECT_LE(stats->pids, 32u);
  EXPECT_LE(stats->disk_used_bytes, 64ull << 20);
  EXPECT_TRUE(driver().Destroy("bad"));
  for (std::thread& attack : attacks) attack.join();
  EXPECT_EQ(Say("good", "print(1)"), "1\n");
  EXPECT_TRUE(driver().Destroy("good"));
  helper_->Stop();
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_F(Traces, IdsOfMachinesAreNobodysOnTheHost) {
  ASSERT_TRUE(driver().Create(Spec("ids")));
  std::thread sleeper([this] { (void)Python(driver(), "ids", "import time; time.sleep(3)"); });
  std::this_thread::sleep_for(500ms);
  std::set<unsigned> uids;
  const std::string mark = "caisson-" + ContentOf(helper_->state() + "/instance") + "-";
  for (const auto& process : fs::directory_iterator("/proc")) {
    if (ContentOf(process.path() / "cgroup").find(mark) == std::string::npos) continue;
    std::istringstream status(ContentOf(process.path() / "status"));
    for (std::string word; status >> word;) {
      if (word != "Uid:") continue;
      unsigned uid = 0;
      status >> uid;
      uids.insert(uid);
    }
  }
  sleeper.join();
  ASSERT_FALSE(uids.empty());
  for (const unsigned uid : uids) EXPECT_GE(uid, kFirstHostId);
}

}  // namespace
}  // namespace caisson::machine::jail
