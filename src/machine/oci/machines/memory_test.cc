// SPDX-License-Identifier: Apache-2.0
// What gVisor's checkpoints cannot do, and that nothing is lost by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "agent/client.h"
#include "machine/oci/machines/test_oci.h"
#include "machine/test_guest.h"

namespace caisson::machine::oci {
namespace {

using namespace std::chrono_literals;

class RunscMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoOci("runsc"); !why.empty()) GTEST_SKIP() << why;
    helper_ = std::make_unique<HelperProcess>(OciHelper("runsc"));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
    const auto made = driver_->Create(Spec("one"));
    ASSERT_TRUE(made) << made.error().message << made.error().details;
  }
  static MachineSpec Spec(const std::string& id) {
    return {.id = id,
            .image = ImageForTests(),
            .memory_bytes = 128ull << 20,
            .disk_bytes = 128ull << 20,
            .pids = 64,
            .network = egress::Policy::DenyAll()};
  }
  std::string Say(const std::string& id, const std::string& code) {
    const Ran ran = Python(*driver_, id, code);
    return ran.error + ran.out;
  }
  template <typename T>
  static std::string CodeOf(const Result<T>& result) {
    return result ? "fine" : std::string(result.error().code.name);
  }

  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<Driver> driver_;
};

TEST_F(RunscMemory, ACommandOfSomebodyOutsideIsNotEndedByACopy) {
  auto connection = driver_->Connect("one");
  ASSERT_TRUE(connection);
  auto exec = agent::Exec::Start(
      *std::move(connection),
      {.command = {.argv = {"python3", "-uSc",
                            "import os; os.write(1, b'begun\\n'); os.write(1, input().encode())"},
                   .env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}}},
       .stdin_open = true});
  ASSERT_TRUE(exec);
  ASSERT_EQ(exec->Next()->kind, agent::ExecEvent::Kind::kStarted);
  ASSERT_EQ(exec->Next()->data, "begun\n");
  EXPECT_EQ(CodeOf(driver_->TakeSnapshot("one", "snap")), "machine.not_kept");
  EXPECT_EQ(CodeOf(driver_->TakeSnapshot("one", "snap", Extent::kFilesystem)), "fine");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  const auto child = driver_->Fork("one", Spec("two"));
  ASSERT_FALSE(child);
  EXPECT_EQ(CodeOf(child), "machine.not_kept");
  EXPECT_NE(child.error().message.find("1 commands"), std::string::npos) << child.error().message;
  ASSERT_TRUE(driver_->Resume("one"));
  ASSERT_TRUE(exec->WriteStdin("on\n"));
  EXPECT_EQ(exec->Next()->data, "on");
}

TEST_F(RunscMemory, WhatCannotBeWrittenIsToldAndTheMachineGoesOn) {
  EXPECT_EQ(Say("one",
                "import os, time\n"
                "if os.fork() == 0:\n"
                "  os.setsid()\n"
                "  kept = open('/var/gone', 'w+'); kept.write('text'); kept.flush()\n"
                "  os.unlink('/var/gone')\n"
                "  for i in range(100000):\n"
                "    open('/var/next', 'w').write(str(i))\n"
                "    os.rename('/var/next', '/var/count'); time.sleep(0.01)\n"),
            "");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  const auto child = driver_->Fork("one", Spec("two"));
  ASSERT_FALSE(child);
  EXPECT_EQ(CodeOf(child), "machine.not_kept") << child.error().message;
  EXPECT_EQ(CodeOf(driver_->Fork("one", Spec("files"), Extent::kFilesystem)), "fine");
  EXPECT_NE(Say("files", "print(open('/var/count').read())"), "");
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message << resumed.error().details;
  const std::string now = "import time; time.sleep(0.1); print(open('/var/count').read())";
  const std::string before = Say("one", now);
  EXPECT_NE(before, Say("one", now));
  // Its files can be had all the same.
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  EXPECT_EQ(CodeOf(driver_->Fork("one", Spec("two"))), "fine");
}

TEST_F(RunscMemory, CopiesThatGoOnHaveTheirParentsShapeAndAllOfItsMemory) {
  const auto taken = driver_->TakeSnapshot("one", "snap");
  ASSERT_TRUE(taken) << taken.error().message << taken.error().details;
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  MachineSpec other = Spec("two");
  other.memory_bytes *= 2;
  EXPECT_EQ(CodeOf(driver_->Fork("one", other)), "machine.invalid");
  EXPECT_EQ(CodeOf(driver_->Restore("snap", other)), "machine.invalid");
  int removed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(helper_->state())) {
    if (entry.path().filename() != "pages.img" ||
        entry.path().string().find("snap") == std::string::npos) {
      continue;
    }
    removed += std::filesystem::remove(entry.path()) ? 1 : 0;
    break;
  }
  ASSERT_EQ(removed, 1);
  EXPECT_EQ(CodeOf(driver_->Restore("snap", Spec("two"))), "machine.damaged");
  EXPECT_EQ(CodeOf(driver_->Fork("one", Spec("two"))), "fine");
}

TEST_F(RunscMemory, AGuestThatSpoilsTheSocketOfItsAgentHasNoCopiesAndHarmsNobody) {
  // A link where the host is to make a file, and a file where it is to connect.
  EXPECT_EQ(Say("one",
                "import os\n"
                "os.symlink('/etc/passwd', '/run/caisson/host/agent.sock.wake')\n"),
            "");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  (void)driver_->Fork("one", Spec("two"));
  (void)driver_->Destroy("two");
  EXPECT_EQ(CodeOf(driver_->Destroy("one")), "fine");
  const auto made = driver_->Create(Spec("one"));
  ASSERT_TRUE(made);
  EXPECT_EQ(Say("one",
                "import os\n"
                "os.rename('/run/caisson/host/agent.sock', '/run/caisson/host/other')\n"
                "open('/run/caisson/host/agent.sock', 'w').close()\n"),
            "");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  EXPECT_NE(CodeOf(driver_->Fork("one", Spec("two"))), "fine");
  EXPECT_EQ(CodeOf(driver_->Destroy("one")), "fine");
}

TEST_F(RunscMemory, CommandsHaveNothingOfWhatTheirAgentMayDo) {
  EXPECT_EQ(Say("one",
                "import ctypes\n"
                "c = ctypes.CDLL(None, use_errno=True)\n"
                "print(c.sethostname(b'x', 1), ctypes.get_errno())\n"
                "print(c.mount(b'none', b'/mnt', b'tmpfs', 0, None), ctypes.get_errno())\n"
                "caps = dict(l.split(':\\t') for l in open('/proc/self/status').read().split('\\n')"
                " if l.startswith('Cap'))\n"
                "own = 1 << 21 | 1 << 8\n"
                "print([k for k, v in caps.items() if int(v, 16) & own])\n"),
            "-1 1\n-1 1\n[]\n");
}

}  // namespace
}  // namespace caisson::machine::oci
