// SPDX-License-Identifier: Apache-2.0
// For tests: what containers leave on the host: nothing, wherever their helper
// was killed. And what a guest sees of the host and may do to it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "machine/oci/machines/test_oci.h"
#include "machine/test_guest.h"
#include "machine/test_traces.h"

namespace caisson::machine::oci {

inline MachineSpec TraceSpec(const std::string& id) {
  return {.id = id,
          .image = ImageForTests(),
          .memory_bytes = 64ull << 20,
          .disk_bytes = 64ull << 20,
          .pids = 32,
          .network = egress::Policy::DenyAll()};
}

struct OciKind {
  std::string name;
  std::string (*why_not)(const std::string& name) = WhyNoOci;
};
inline std::string NameOfKind(const testing::TestParamInfo<OciKind>& kind) {
  return kind.param.name;
}

class OciTraces : public testing::TestWithParam<OciKind> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam().why_not(GetParam().name); !why.empty()) {
      GTEST_SKIP() << why;
    }
    helper_ = std::make_unique<HelperProcess>(OciHelper(GetParam().name));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
  }
  Driver& driver() { return *driver_; }
  std::string Say(const std::string& id, const std::string& code) {
    const Ran ran = Python(driver(), id, code);
    return ran.error + ran.out + (ran.signal != 0 ? "signal " + std::to_string(ran.signal) : "");
  }
  void Make(const std::string& id) {
    const auto made = driver().Create(TraceSpec(id));
    ASSERT_TRUE(made) << made.error().message;
  }

  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<Driver> driver_;
};

TEST_P(OciTraces, NothingIsLeftOfMachinesThatWereDestroyed) {
  for (const char* id : {"a", "b", "c"}) Make(id);
  EXPECT_FALSE(TracesOf(*helper_).empty()) << "this test does not see what there is";
  ASSERT_TRUE(driver().Pause("a", Level::kMemory));
  ASSERT_TRUE(driver().Pause("b", Level::kDisk));
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(driver().Destroy(id));
  helper_->Stop();  // discards what waits
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(OciTraces, LivesOfMachinesWhoseHelperIsKilledLeaveNothingAndNobodyIsToldAnUntruth) {
  LiveThroughCrashes(*helper_, driver(), TraceSpec("life"), 30);
}

TEST_P(OciTraces, AGuestSeesItsOwnProcessesAndFilesAloneAndHasTheNamedCapabilities) {
  Make("guest");
  EXPECT_EQ(Say("guest",
                "import os\n"
                "print([l.split()[1] for l in open('/proc/self/status') if l[:6] in "
                "('CapPrm', 'CapEff', 'CapBnd')])\n"
                "pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
                "print(max(pids) < 100)\n"
                "mounts = open('/proc/self/mountinfo').read()\n"
                "print('caisson-machines' in mounts)\n"
                "for hidden in ('kcore', 'keys', 'timer_list', 'kmsg', 'sysrq-trigger'):\n"
                "  try:\n"
                "    if open('/proc/' + hidden, 'rb').read(1): print('read', hidden)\n"
                "  except OSError: pass\n"
                "for fixed in ('/proc/sys/kernel/core_pattern', '/run/caisson/agent'):\n"
                "  try: open(fixed, 'w').write('1'); print('wrote', fixed)\n"
                "  except OSError: pass\n"),
            "['00000000000004eb', '00000000000004eb', '00000000000004eb']\nTrue\nFalse\n");
  // mount, unshare(NEWUSER), bpf, io_uring_setup, keyctl, init_module, perf_event_open, mknod
  EXPECT_EQ(Say("guest",
                "import ctypes\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "for call in [(165, b'none', b'/mnt', b'tmpfs', 0, 0), (321, 0, 0, 0), "
                "(425, 1, 0), (175, 0, 0, 0), (298, 0, 0, -1, -1, 0), "
                "(133, b'/tmp/node', 0o20666, 0x0a00 + 237)]:\n"
                "  ctypes.set_errno(0)\n"
                "  if libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in call])"
                " != -1: print(call, 'worked')\n"),
            "");
}

TEST_P(OciTraces, CommandsThatHaveEndedCountNoMore) {
  Make("busy");
  for (int i = 0; i < 40; ++i) {
    const Ran ran = machine::Run(driver(), "busy", {"/lib64/ld-linux-x86-64.so.2", "--version"});
    ASSERT_EQ(ran.exit_code, 0) << i << " " << ran.error;
  }
}

TEST_P(OciTraces, AGuestThatSpoilsTheWayToItsAgentHurtsItselfAlone) {
  Make("spoiler");
  Make("other");
  (void)Say("spoiler",
            "import os, shutil\n"
            "shutil.rmtree('/run/caisson/host', ignore_errors=True)\n"
            "try:\n"
            "  os.symlink('/run', '/run/caisson/host/agent.sock')\n"
            "except OSError: pass\n");
  EXPECT_EQ(Say("other", "print(1)"), "1\n");
  EXPECT_TRUE(driver().Destroy("spoiler"));
  EXPECT_TRUE(driver().Destroy("other"));
}

}  // namespace caisson::machine::oci
