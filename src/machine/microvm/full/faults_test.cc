// SPDX-License-Identifier: Apache-2.0
// What goes wrong with virtual machines: each has an error of its own and leaves nothing behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  // Of this helper's machines, by their cgroups.
  std::vector<pid_t> Qemus() const {
    std::vector<pid_t> found;
    for (const auto& process : fs::directory_iterator("/proc")) {
      std::ifstream file(process.path() / "comm");
      std::string name;
      std::getline(file, name);
      if (!name.starts_with("qemu-system")) continue;
      std::ifstream groups(process.path() / "cgroup");
      const std::string text((std::istreambuf_iterator<char>(groups)), {});
      for (const auto& machine : fs::directory_iterator(helper_->state() + "/machines")) {
        if (text.find(machine.path().filename()) != std::string::npos) {
          found.push_back(std::stoi(process.path().filename()));
        }
      }
    }
    return found;
  }
  void KillQemusAndResume(const std::string& id) {
    for (const pid_t pid : Qemus()) ::kill(pid, SIGKILL);
    State state = State::kRunning;
    for (int i = 0; i < 100 && state != State::kStopped; ++i) {
      state = driver_->List().value().at(0).state;
      ::usleep(50'000);
    }
    EXPECT_EQ(state, State::kStopped);
    const auto resumed = driver_->Resume(id);
    ASSERT_TRUE(resumed) << resumed.error().message;
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
  KillQemusAndResume("one");
  EXPECT_EQ(Say("one", "print(open('/var/kept').read())"), "1\n");
}

TEST_F(VmFaults, WhatWasWrittenTenSecondsBeforeAQemuIsKilledIsOnTheDiskWithoutASync) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  // Little: much is written at once anyway.
  EXPECT_EQ(Say("one", "open('/var/kept', 'w').write('1')"), "");
  ::sleep(10);
  KillQemusAndResume("one");
  EXPECT_EQ(Say("one", "print(open('/var/kept').read())"), "1\n");
}

TEST_F(VmFaults, ALargeDiskGrowsWhileItIsUsed) {
  Start([](MicrovmOptions&) {});
  MachineSpec spec = Spec("one");
  spec.disk_bytes = 10ull << 30;
  ASSERT_TRUE(driver_->Create(spec));
  for (const std::uint64_t gibibytes : {11ull, 39ull}) {
    const auto grown = driver_->Resize("one", gibibytes << 30);
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(Say("one", "import os; print(os.statvfs('/').f_blocks * 4096 > " +
                             std::to_string(gibibytes) + " * 0.97 * 2**30)"),
              "True\n");
  }
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

TEST_F(VmFaults, TemplatesTakeNoMoreThanTheyMayAndNoneThatIsInUseGoes) {
  Start([this](MicrovmOptions& options) {
    options.cache = directory_;
    options.max_templates = 2;
    options.template_patience = std::chrono::seconds(60);
  });
  const auto of_memory = [](const std::string& id, std::uint64_t mebibytes) {
    MachineSpec spec = Spec(id);
    spec.memory_bytes = mebibytes << 20;
    return spec;
  };
  ASSERT_TRUE(driver_->Create(of_memory("one", 64)));
  ASSERT_TRUE(driver_->Create(of_memory("two", 72)));
  const auto third = driver_->Create(of_memory("three", 80));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, errors::kMachineFull) << third.error().message;
  EXPECT_NE(third.error().message.find("--max-vm-templates"), std::string::npos);
  ASSERT_TRUE(driver_->Destroy("one"));
  EXPECT_TRUE(driver_->Create(of_memory("three", 80)));
  EXPECT_EQ(Say("two", "print(2)"), "2\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ + "/vm-templates"), {}), 2);
}

TEST_F(VmFaults, WhoComesWhileATemplateIsMadeIsToldToComeAgain) {
  // As an earlier helper, whose store had another image, has left it.
  fs::create_directories(directory_ + "/vm-images");
  const fs::path stray = directory_ + "/vm-images/" + std::string(64, '0') + ".erofs";
  std::ofstream(stray) << "of nobody";
  Start([this](MicrovmOptions& options) {
    options.cache = directory_;
    options.template_patience = std::chrono::milliseconds(0);
  });
  EXPECT_FALSE(fs::exists(stray));
  auto made = driver_->Create(Spec("one"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errors::kMachinePreparing) << made.error().message;
  EXPECT_TRUE(driver_->List().value().empty());
  for (int i = 0; i < 600 && !made; ++i) {
    ::usleep(100'000);
    made = driver_->Create(Spec("one"));
  }
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(VmFaults, WhatShallBePreparedIsThereBeforeAnybodyAsks) {
  Start([this](MicrovmOptions& options) {
    options.cache = directory_;
    options.template_patience = std::chrono::milliseconds(0);
    options.prepared = {{.image = ImageForTests(), .cpus = 1, .memory_bytes = 128ull << 20}};
  });
  const auto is_there = [this] {
    for (const auto& entry : fs::directory_iterator(directory_ + "/vm-templates")) {
      if (fs::exists(entry.path() / "template.json")) return true;
    }
    return false;
  };
  for (int i = 0; i < 600 && !is_there(); ++i) ::usleep(100'000);
  ::usleep(200'000);
  const auto made = driver_->Create(Spec("one"));
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(VmFaults, OneThatWaitedIsItselfAndOneWhoseQemuHasEndedIsNotTaken) {
  Start([](MicrovmOptions& options) { options.waiting = 1; });
  ASSERT_TRUE(driver_->Create(Spec("one")));
  const auto await_machines = [this](std::size_t count) {
    // With one that waits; its second file is there once it has been loaded.
    for (int i = 0; i < 600 && (DirectoriesLeft() != count || Qemus().size() != count); ++i) {
      ::usleep(100'000);
    }
    ::usleep(3'000'000);
    EXPECT_EQ(DirectoriesLeft(), count);
  };
  await_machines(2);
  EXPECT_EQ(driver_->List().value().size(), 1u) << "nobody's";
  ASSERT_TRUE(driver_->Create(Spec("two")));
  const std::string who =
      "import os; print(os.uname().nodename, open('/etc/hostname').read().strip(), "
      "open('/etc/machine-id').read().strip(), os.urandom(16).hex())";
  const std::string one = Say("one", who);
  const std::string two = Say("two", who);
  EXPECT_TRUE(one.starts_with("one one ")) << one;
  EXPECT_TRUE(two.starts_with("two two ")) << two;
  EXPECT_NE(one.substr(8), two.substr(8));
  EXPECT_NEAR(std::stod(Say("two", "import time; print(time.time())")),
              static_cast<double>(std::time(nullptr)), 60);
  await_machines(3);
  const std::vector<pid_t> before = Qemus();
  for (const pid_t pid : before) ::kill(pid, SIGKILL);
  const auto three = driver_->Create(Spec("three"));
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(Say("three", "print(3)"), "3\n");
  helper_->Kill();
  helper_->Start();
  ASSERT_TRUE(driver_->List());
  EXPECT_EQ(DirectoriesLeft(), 3u) << "what waited is gone";
}

TEST_F(VmFaults, ADiskAloneGoesOnInAnyShapeWithoutTheProcessesThatItHad) {
  Start([](MicrovmOptions& options) { options.template_patience = std::chrono::seconds(60); });
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(Say("one",
                "import os\n"
                "open('/var/kept', 'w').write('kept'); open('/run/there', 'w').write('1')"),
            "");
  const auto kept = driver_->TakeSnapshot("one", "disk", Extent::kFilesystem);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_LT(kept->stored_bytes, 40u << 20) << "there is no memory in it";
  EXPECT_EQ(Say("one", "print(1)"), "1\n");
  MachineSpec other = Spec("two");
  other.memory_bytes = 96ull << 20;
  other.disk_bytes = 512ull << 20;
  const auto restored = driver_->Restore("disk", other);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(Say("two", "import os; print(open('/var/kept').read(), os.path.exists('/run/there'))"),
            "kept False\n");
  EXPECT_EQ(Say("two", "import os; print(os.statvfs('/').f_blocks * 4096 > 400 << 20)"), "True\n");
}

TEST_F(VmFaults, AMachineWhoseAgentCannotMakeItQuietStopsAndIsNotCopied) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  EXPECT_EQ(
      Say("one",
          "import ctypes, os\n"
          "ctypes.CDLL(None).umount2(b'/run/caisson/disk', 2); os.rmdir('/run/caisson/disk')"),
      "");
  const auto kept = driver_->TakeSnapshot("one", "kept");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, errors::kMachineAgentLost) << kept.error().message;
  EXPECT_EQ(Say("one", "print(1)"), "1\n") << "it goes on";
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  const auto copied = driver_->Fork("one", Spec("two"));
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, errors::kMachineAgentLost) << copied.error().message;
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  EXPECT_FALSE(driver_->Fork("one", Spec("two")));
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Say("one", "print(2)"), "2\n");
}

TEST_F(VmFaults, QemuWritesNoFileBeyondWhatItsDiskMayGrowTo) {
  Start([](MicrovmOptions&) {});
  ASSERT_TRUE(driver_->Create(Spec("one")));
  std::size_t seen = 0;
  for (const pid_t pid : Qemus()) {
    std::ifstream limits("/proc/" + std::to_string(pid) + "/limits");
    for (std::string line; std::getline(limits, line);) {
      if (!line.starts_with("Max file size")) continue;
      EXPECT_NE(line.find(" " + std::to_string(512ull << 20) + " "), std::string::npos) << line;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(driver_->Resize("one", 513ull << 20).error().code, errors::kMachineInvalid);
  ASSERT_TRUE(driver_->Resize("one", 512ull << 20));
  EXPECT_EQ(Say("one", "import os; print(os.statvfs('/').f_blocks * 4096 > 400 << 20)"), "True\n");
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  ASSERT_TRUE(driver_->Resize("one", 600ull << 20));
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Say("one", "import os; print(os.statvfs('/').f_blocks * 4096 > 550 << 20)"), "True\n");
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
