// SPDX-License-Identifier: Apache-2.0
// One virtual machine through its life: what takes longer is in full/.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "agent/client.h"
#include "errors/machine.h"
#include "machine/microvm/test_microvm.h"
#include "machine/test_guest.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;

class VirtualMachines : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoVirtualMachines(); !why.empty()) GTEST_SKIP() << why;
    helper_ = std::make_unique<HelperProcess>(MicrovmHelper());
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
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

  // As a helper leaves it that is killed once the machine goes on and before what was saved of it
  // is gone: in every machine's directory that is there.
  void LeaveWhatWasSavedEarlier() const {
    for (const auto& machine : fs::directory_iterator(helper_->state() + "/machines")) {
      const fs::path frozen = machine.path() / "frozen";
      fs::create_directory(frozen);
      for (const char* file : {"memory", "state"}) std::ofstream(frozen / file) << "another time's";
    }
  }
  static std::size_t Templates() {
    std::size_t count = 0;
    for (const auto& entry :
         fs::directory_iterator(std::string(CAISSON_TEST_VM_CACHE) + "/vm-templates")) {
      count += entry.is_directory() ? 1 : 0;
    }
    return count;
  }
  std::size_t SavedEarlier() const {
    std::size_t count = 0;
    for (const auto& machine : fs::directory_iterator(helper_->state() + "/machines")) {
      count += fs::exists(machine.path() / "frozen") ? 1 : 0;
    }
    return count;
  }

  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

TEST_F(VirtualMachines, GoOnFromATemplateEachAsItselfAndTheirProcessesOutliveAPauseToDisk) {
  const Capabilities capabilities = driver_->capabilities();
  EXPECT_EQ(capabilities.isolation_class, "hardware-virtualized");
  const auto made = driver_->Create(Spec("one"));
  ASSERT_TRUE(made) << made.error().message << made.error().details;
  const std::size_t templates = Templates();
  MachineSpec other = Spec("two");
  other.disk_bytes = 3ull << 30;
  ASSERT_TRUE(driver_->Create(other));
  EXPECT_EQ(Templates(), templates) << "a template is for disks of every size";
  const std::string size = "import os; print(os.statvfs('/').f_blocks * 4096 >> 20)";
  EXPECT_NEAR(std::atof(Say("one", size).c_str()), 128, 16);
  EXPECT_NEAR(std::atof(Say("two", size).c_str()), 3072, 128);
  const std::string who =
      "import os; print(os.uname().nodename, open('/etc/machine-id').read(), "
      "os.urandom(16).hex())";
  const std::string one = Say("one", who);
  const std::string two = Say("two", who);
  EXPECT_TRUE(one.starts_with("one ")) << one;
  EXPECT_TRUE(two.starts_with("two ")) << two;
  EXPECT_NE(one.substr(4), two.substr(4));
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  EXPECT_NEAR(std::atof(Say("one", "import time; print(time.time())").c_str()),
              static_cast<double>(now.count()), 60);
  const auto process =
      agent::StartProcess(*driver_->Connect("one"),
                          {.argv = {"/usr/bin/python3", "-ISc",
                                    "import os, time\nfor i in range(1, 10**6):\n"
                                    "  open('/run/next', 'w').write(str(i))\n"
                                    "  os.rename('/run/next', '/run/count'); time.sleep(0.2)"},
                           .env = {{"PATH", "/usr/bin:/bin"}},
                           .cwd = "/",
                           .pty = {}});
  ASSERT_TRUE(process) << process.error().message;
  const auto of_two =
      agent::StartProcess(*driver_->Connect("two"), {.argv = {"/usr/bin/python3", "-ISc", "0"},
                                                     .env = {{"PATH", "/usr/bin:/bin"}},
                                                     .cwd = "/",
                                                     .pty = {}});
  ASSERT_TRUE(of_two) << of_two.error().message;
  EXPECT_NE(of_two->process_id, process->process_id) << "copies of one template";
  EXPECT_EQ(Say("one", "import time; time.sleep(1); open('/var/kept', 'w').write('kept')"), "");
  LeaveWhatWasSavedEarlier();
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  EXPECT_EQ(SavedEarlier(), 1U) << "of the other one";
  EXPECT_EQ(Say("two", "print(2)"), "2\n");
  helper_->Kill();
  helper_->Start();
  ASSERT_TRUE(driver_->List());
  EXPECT_EQ(SavedEarlier(), 0U);
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("one", "print(open('/var/kept').read())"), "kept\n");
  EXPECT_EQ(Say("two", "print(3)"), "3\n");
  const long count = std::atol(Say("one", "print(open('/run/count').read())").c_str());
  EXPECT_GT(count, 0) << "its memory is the one that it had";
  EXPECT_GT(
      std::atol(Say("one", "import time; time.sleep(2); print(open('/run/count').read())").c_str()),
      count)
      << "it goes on";
  EXPECT_EQ(driver_->Fork("two", Spec("copy")).error().code, errors::kMachineWrongState);
}

}  // namespace
}  // namespace caisson::machine::microvm
