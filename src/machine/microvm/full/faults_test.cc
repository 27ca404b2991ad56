// SPDX-License-Identifier: Apache-2.0
// What goes wrong with virtual machines: each has an error of its own and leaves nothing behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "errors/machine.h"
#include "machine/microvm/test_microvm.h"
#include "machine/test_guest.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;

class VmFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoVirtualMachines(); !why.empty()) GTEST_SKIP() << why;
    char name[] = "/tmp/caisson-vm-faults-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override {
    driver_.reset();
    helper_.reset();
    std::error_code error;
    if (!directory_.empty()) fs::remove_all(directory_, error);
  }
  void Start(const std::function<void(MicrovmOptions&)>& spoil) {
    HelperProcess::Options options = MicrovmHelper();
    options.open = [spoil](const std::string& state, SharedParts parts) {
      MicrovmOptions own = OptionsForTests(state);
      spoil(own);
      return OpenMicrovm(own, std::move(parts));
    };
    helper_ = std::make_unique<HelperProcess>(options);
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
  std::size_t DirectoriesLeft() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(helper_->state() + "/machines"), {}));
  }

  std::string directory_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

TEST_F(VmFaults, AMachineThatDoesNotBootInTimeIsGivenUpAndToldSo) {
  Start([this](MicrovmOptions& options) {
    options.cache = directory_;
    options.boot_patience = std::chrono::milliseconds(300);
  });
  const auto made = driver_->Create(Spec("slow"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineAgentLost) << made.error().message;
  EXPECT_EQ(DirectoriesLeft(), 0u);
}

TEST_F(VmFaults, AKernelThatIsNoneIsTold) {
  const std::string kernel = directory_ + "/kernel";
  fs::copy(KernelForTests(), kernel, fs::copy_options::recursive);
  fs::permissions(kernel + "/vmlinuz", fs::perms::owner_all);
  std::ofstream(kernel + "/vmlinuz") << "this is no kernel";
  Start([this, kernel](MicrovmOptions& options) {
    options.cache = directory_;
    options.kernel = kernel;
    options.boot_patience = std::chrono::seconds(5);
  });
  const auto made = driver_->Create(Spec("none"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineVmFailed) << made.error().message;
  EXPECT_EQ(DirectoriesLeft(), 0u);
}

TEST_F(VmFaults, ADamagedTemplateIsMadeAnew) {
  const auto own_cache = [this](MicrovmOptions& options) { options.cache = directory_; };
  Start(own_cache);
  ASSERT_TRUE(driver_->Create(Spec("one")));
  ASSERT_TRUE(driver_->Destroy("one"));
  helper_->Kill();
  for (const auto& entry : fs::directory_iterator(directory_ + "/vm-templates")) {
    fs::permissions(entry.path() / "memory", fs::perms::owner_all);
    std::fstream memory(entry.path() / "memory", std::ios::in | std::ios::out | std::ios::binary);
    memory.seekp(40 << 20);
    memory << "damage";
  }
  helper_->Start();
  const auto made = driver_->Create(Spec("two"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(Say("two", "print(2)"), "2\n");
}

TEST_F(VmFaults, AQemuThatIsKilledLeavesAMachineThatBootsFromItsDisk) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one", "import os; open('/var/kept', 'w').write('1'); os.sync()"), "");
  for (const auto& process : fs::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (!name.starts_with("qemu-system")) continue;
    // Ours alone: their first process is what a record of this helper names.
    const std::string pid = process.path().filename();
    for (const auto& machine : fs::directory_iterator(helper_->state() + "/machines")) {
      std::ifstream groups(process.path() / "cgroup");
      const std::string text((std::istreambuf_iterator<char>(groups)), {});
      if (text.find(machine.path().filename()) != std::string::npos) {
        ::kill(std::stoi(pid), SIGKILL);
      }
    }
  }
  State state = State::kRunning;
  for (int i = 0; i < 100 && state != State::kStopped; ++i) {
    state = driver_->List().value().at(0).state;
    ::usleep(50'000);
  }
  EXPECT_EQ(state, State::kStopped);
  const auto resumed = driver_->Resume("one");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("one", "print(open('/var/kept').read())"), "1\n");
}

TEST_F(VmFaults, KvmIsTakenWhenATrialBootComesUpAndOneThatHangsIsFoundOut) {
  if (::access("/dev/kvm", R_OK | W_OK) != 0) GTEST_SKIP() << "there is no /dev/kvm";
  Start([](MicrovmOptions& options) { options.try_kvm = true; });
  std::ifstream trial(helper_->state() + "/kvm-trial");
  std::string key;
  std::getline(trial, key);
  const std::string why((std::istreambuf_iterator<char>(trial)), {});
  EXPECT_EQ(driver_->capabilities().emulated, !why.empty()) << why;
  EXPECT_FALSE(key.empty());
}

TEST_F(VmFaults, ASnapshotWhoseMemoryIsGoneIsNotRestored) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  ASSERT_TRUE(driver_->TakeSnapshot("one", "kept"));
  fs::remove(helper_->state() + "/snapshots/kept/memory");
  const auto restored = driver_->Restore("kept", Spec("two"));
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, errors::kMachineDamaged) << restored.error().message;
  EXPECT_TRUE(driver_->RemoveSnapshot("kept"));
}

TEST_F(VmFaults, CopiesThatGoOnHaveTheirParentsShape) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  MachineSpec other = Spec("two");
  other.memory_bytes *= 2;
  const auto made = driver_->Fork("one", other);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachineInvalid);
  EXPECT_NE(made.error().message.find("memory_bytes"), std::string::npos);
}

}  // namespace
}  // namespace caisson::machine::microvm
