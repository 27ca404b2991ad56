// SPDX-License-Identifier: Apache-2.0
// What every Driver does, sentence by sentence of machine/driver.h. A driver's test program names
// a World and says INSTANTIATE_TEST_SUITE_P(Jail, DriverConformance, ...); the image of its world
// has python3, which is all that these tests run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "errors/machine.h"
#include "machine/driver.h"
#include "machine/test_guest.h"
#include "machine/test_world.h"

namespace caisson::machine {

class DriverConformance : public testing::TestWithParam<MakeWorld> {
 protected:
  void SetUp() override {
    world_ = GetParam()();
    if (const std::string why = world_->WhyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  Driver& driver() { return world_->driver(); }
  MachineSpec Spec(const std::string& id) {
    return {.id = id,
            .image = world_->image(),
            .cpus = 1,
            .memory_bytes = 128ull << 20,
            .disk_bytes = 128ull << 20,
            .pids = 64,
            .network = egress::Policy::DenyAll()};
  }
  void Make(const std::string& id) {
    const auto made = driver().Create(Spec(id));
    ASSERT_TRUE(made) << made.error().message << " " << made.error().details;
  }
  std::string Say(const std::string& id, const std::string& code) {
    const Ran ran = Python(driver(), id, code);
    std::string out = ran.out;
    while (out.ends_with('\n')) out.pop_back();
    if (!ran.error.empty()) return "error: " + ran.error;
    if (ran.signal != 0) return out + "signal " + std::to_string(ran.signal);
    return out;
  }
  void Write(const std::string& id, const std::string& text) {
    EXPECT_EQ(Say(id, "open('/var/kept', 'w').write('" + text + "')"), "");
  }
  std::string Read(const std::string& id) { return Say(id, "print(open('/var/kept').read())"); }
  std::string StateOf(const std::string& id) {
    const auto list = driver().List();
    if (!list) return list.error().message;
    const auto found = std::ranges::find(*list, id, &Machine::id);
    return found == list->end() ? "none" : std::string(NameOf(found->state));
  }
  template <typename T>
  static std::string CodeOf(const Result<T>& result) {
    return result ? "fine" : std::string(result.error().code.name);
  }
  bool CanPause() { return driver().capabilities().pause != Level::kNone; }

  std::unique_ptr<World> world_;
};

// --- Create ---

TEST_P(DriverConformance, AMachineAnswersWhenCreateReturnsAndIsWhatItsSpecSays) {
  MachineSpec spec = Spec("first");
  spec.host_name = "a-host";
  const auto made = driver().Create(spec);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->id, "first");
  EXPECT_EQ(made->state, State::kRunning);
  EXPECT_EQ(made->image, spec.image);
  EXPECT_EQ(made->disk_bytes, spec.disk_bytes);
  EXPECT_EQ(Say("first", "import os; print(os.uname().nodename, os.getuid(), os.getcwd())"),
            "a-host 0 /");
  EXPECT_EQ(Say("first", "print(open('/etc/hostname').read().strip())"), "a-host");
  const auto stats = driver().ReadStats("first");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(stats->memory_limit_bytes, spec.memory_bytes);
  EXPECT_EQ(stats->disk_bytes, spec.disk_bytes);
}

TEST_P(DriverConformance, TheHostNameIsTheIdUnlessItIsGiven) {
  Make("named-so");
  EXPECT_EQ(Say("named-so", "import os; print(os.uname().nodename)"), "named-so");
}

TEST_P(DriverConformance, RefusesSpecsThatAreOutOfRangeAndNamesTheField) {
  const auto refuse = [this](const char* field, const std::function<void(MachineSpec&)>& spoil) {
    MachineSpec spec = Spec("spoilt");
    spoil(spec);
    const auto made = driver().Create(spec);
    ASSERT_FALSE(made) << field;
    EXPECT_EQ(made.error().code, errors::kMachineInvalid) << field << made.error().message;
    EXPECT_NE(made.error().message.find(field), std::string::npos) << made.error().message;
  };
  for (const char* id : {"", "A", "a_b", "../a", "a/b", "a.b"}) {
    refuse("id", [id](MachineSpec& spec) { spec.id = id; });
  }
  refuse("id", [](MachineSpec& spec) { spec.id = std::string(kMaxIdLength + 1, 'a'); });
  for (const char* name : {"-a", "a-", "a b", "A", "a\nb"}) {
    refuse("host_name", [name](MachineSpec& spec) { spec.host_name = name; });
  }
  for (const char* image : {"", "latest", "../x"}) {
    refuse("image", [image](MachineSpec& spec) { spec.image = image; });
  }
  refuse("cpus", [](MachineSpec& spec) { spec.cpus = 0; });
  refuse("cpus", [](MachineSpec& spec) { spec.cpus = 1e9; });
  refuse("memory_bytes", [](MachineSpec& spec) { spec.memory_bytes = kMinMemoryBytes - 1; });
  refuse("disk_bytes", [](MachineSpec& spec) { spec.disk_bytes = kMinDiskBytes - 1; });
  refuse("disk_bytes", [](MachineSpec& spec) { spec.disk_bytes = kMaxDiskBytes + 1; });
  refuse("pids", [](MachineSpec& spec) { spec.pids = kMinPids - 1; });
  EXPECT_EQ(StateOf("spoilt"), "none");
}

TEST_P(DriverConformance, AnIdIsTakenOnceAndFreeAgainAfterwards) {
  Make("once");
  EXPECT_EQ(CodeOf(driver().Create(Spec("once"))), "machine.exists");
  ASSERT_TRUE(driver().Destroy("once"));
  Make("once");
}

TEST_P(DriverConformance, AnImageThatIsNotThereIsToldAndLeavesNothing) {
  MachineSpec spec = Spec("no-image");
  spec.image = std::string(64, '0');
  EXPECT_EQ(CodeOf(driver().Create(spec)), "machine.no_image");
  EXPECT_EQ(StateOf("no-image"), "none");
  Make("no-image");
}

TEST_P(DriverConformance, MachinesThatAreMadeAtOnceAreApart) {
  constexpr int kCount = 6;
  std::vector<std::thread> makers;
  std::vector<std::string> said(kCount);
  for (int i = 0; i < kCount; ++i) {
    makers.emplace_back([this, i, &said] {
      const std::string id = "many-" + std::to_string(i);
      if (const auto made = driver().Create(Spec(id)); !made) {
        said[static_cast<std::size_t>(i)] = made.error().message;
        return;
      }
      Write(id, id);
      said[static_cast<std::size_t>(i)] = Read(id);
    });
  }
  for (std::thread& maker : makers) maker.join();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(said[static_cast<std::size_t>(i)], "many-" + std::to_string(i));
  }
  EXPECT_EQ(driver().List().value_or(std::vector<Machine>{}).size(), std::size_t{kCount});
}

// --- Destroy ---

TEST_P(DriverConformance, DestroyIsIdempotentAndFineForWhatWasNever) {
  EXPECT_EQ(CodeOf(driver().Destroy("never-was")), "fine");
  Make("gone");
  EXPECT_EQ(CodeOf(driver().Destroy("gone")), "fine");
  EXPECT_EQ(CodeOf(driver().Destroy("gone")), "fine");
  EXPECT_EQ(StateOf("gone"), "none");
  EXPECT_EQ(CodeOf(driver().Connect("gone")), "machine.unknown");
}

TEST_P(DriverConformance, DestroyEndsWhatRunsAndWhoWaitsForItIsTold) {
  Make("busy");
  Ran ran;
  std::thread waiter([&] { ran = Python(driver(), "busy", "import time; time.sleep(600)"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(CodeOf(driver().Destroy("busy")), "fine");
  waiter.join();
  EXPECT_NE(ran.error, "") << "an exit was invented: " << ran.exit_code << " " << ran.signal;
}

// --- what names nothing ---

TEST_P(DriverConformance, CallsThatNameNoMachineSayThatItIsUnknown) {
  Driver& d = driver();
  EXPECT_EQ(CodeOf(d.Connect("nobody")), "machine.unknown");
  EXPECT_EQ(CodeOf(d.ReadStats("nobody")), "machine.unknown");
  EXPECT_EQ(CodeOf(d.SetNetwork("nobody", egress::Policy::DenyAll())), "machine.unknown");
  if (CanPause()) {
    EXPECT_EQ(CodeOf(d.Pause("nobody", Level::kMemory)), "machine.unknown");
    EXPECT_EQ(CodeOf(d.Resume("nobody")), "machine.unknown");
  }
  if (d.capabilities().fork != Extent::kNone) {
    EXPECT_EQ(CodeOf(d.Fork("nobody", Spec("child"))), "machine.unknown");
  }
  if (d.capabilities().snapshot != Extent::kNone) {
    EXPECT_EQ(CodeOf(d.TakeSnapshot("nobody", "snap")), "machine.unknown");
    EXPECT_EQ(CodeOf(d.Restore("no-snap", Spec("child"))), "machine.unknown");
  }
  if (d.capabilities().resize_disk) {
    EXPECT_EQ(CodeOf(d.Resize("nobody", 1ull << 30)), "machine.unknown");
  }
}

TEST_P(DriverConformance, WhatIsNotDeclaredIsRefused) {
  Make("limited");
  Driver& d = driver();
  const Capabilities can = d.capabilities();
  if (can.pause == Level::kNone) {
    EXPECT_EQ(CodeOf(d.Pause("limited", Level::kMemory)), "machine.unsupported");
  }
  if (can.pause != Level::kDisk) {
    EXPECT_EQ(CodeOf(d.Pause("limited", Level::kDisk)), "machine.unsupported");
  }
  if (can.fork == Extent::kNone) {
    EXPECT_EQ(CodeOf(d.Fork("limited", Spec("child"))), "machine.unsupported");
  }
  if (can.snapshot == Extent::kNone) {
    EXPECT_EQ(CodeOf(d.TakeSnapshot("limited", "snap")), "machine.unsupported");
    EXPECT_EQ(CodeOf(d.Restore("snap", Spec("child"))), "machine.unsupported");
  }
  if (!can.resize_disk) {
    EXPECT_EQ(CodeOf(d.Resize("limited", 1ull << 30)), "machine.unsupported");
  }
  if (!can.network) {
    MachineSpec spec = Spec("open");
    spec.network = egress::Policy::PublicOnly();
    EXPECT_EQ(CodeOf(d.Create(spec)), "machine.unsupported");
    EXPECT_EQ(CodeOf(d.SetNetwork("limited", egress::Policy::PublicOnly())), "machine.unsupported");
  }
  EXPECT_EQ(StateOf("limited"), "running");
  EXPECT_EQ(Say("limited", "print(1)"), "1");
}

// --- pauses ---

TEST_P(DriverConformance, APauseInMemoryStopsProcessesAndResumeLetsThemGoOn) {
  if (!CanPause()) GTEST_SKIP() << "no pause";
  Make("napper");
  EXPECT_EQ(Say("napper",
                "import os, time\n"
                "if os.fork() == 0:\n"
                "  os.setsid()\n"
                "  for i in range(10000):\n"
                "    open('/var/next', 'w').write(str(i))\n"
                "    os.rename('/var/next', '/var/count'); time.sleep(0.01)\n"),
            "");
  const std::string now = "import time; time.sleep(0.1); print(open('/var/count').read())";
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(CodeOf(driver().Pause("napper", Level::kMemory)), "fine");
    ASSERT_EQ(CodeOf(driver().Pause("napper", Level::kMemory)), "fine") << "idempotent";
    EXPECT_EQ(StateOf("napper"), "paused_in_memory");
    EXPECT_EQ(CodeOf(driver().Connect("napper")), "machine.wrong_state");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(CodeOf(driver().Resume("napper")), "fine");
    ASSERT_EQ(CodeOf(driver().Resume("napper")), "fine") << "idempotent";
    EXPECT_EQ(StateOf("napper"), "running");
    const std::string before = Say("napper", now);
    EXPECT_NE(before, Say("napper", now)) << "it does not go on";
  }
}

TEST_P(DriverConformance, APausedMachineUsesNoTime) {
  if (!CanPause()) GTEST_SKIP() << "no pause";
  Make("spinner");
  EXPECT_EQ(Say("spinner",
                "import os\n"
                "if os.fork() == 0:\n"
                "  os.setsid()\n"
                "  while True: pass\n"),
            "");
  ASSERT_EQ(CodeOf(driver().Pause("spinner", Level::kMemory)), "fine");
  const auto before = driver().ReadStats("spinner");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto after = driver().ReadStats("spinner");
  ASSERT_TRUE(before && after);
  EXPECT_LT(after->cpu_nanoseconds - before->cpu_nanoseconds, 50'000'000u);
  EXPECT_GT(before->memory_bytes, 0u);
}

TEST_P(DriverConformance, FilesAreThereAfterEveryResumeFromDisk) {
  if (driver().capabilities().pause != Level::kDisk) GTEST_SKIP() << "no pause to disk";
  Make("sleeper");
  for (const char* text : {"one", "two", "three"}) {
    Write("sleeper", text);
    ASSERT_EQ(CodeOf(driver().Pause("sleeper", Level::kDisk)), "fine");
    ASSERT_EQ(CodeOf(driver().Pause("sleeper", Level::kDisk)), "fine") << "idempotent";
    ASSERT_EQ(CodeOf(driver().Pause("sleeper", Level::kMemory)), "fine") << "leaves it";
    EXPECT_EQ(StateOf("sleeper"), "paused_on_disk");
    EXPECT_EQ(CodeOf(driver().Connect("sleeper")), "machine.wrong_state");
    const auto stats = driver().ReadStats("sleeper");
    ASSERT_TRUE(stats) << stats.error().message;
    EXPECT_EQ(stats->memory_bytes, 0u);
    ASSERT_EQ(CodeOf(driver().Resume("sleeper")), "fine");
    EXPECT_EQ(Read("sleeper"), text);
  }
}

TEST_P(DriverConformance, APauseInMemoryCanBeMovedToDisk) {
  if (driver().capabilities().pause != Level::kDisk) GTEST_SKIP() << "no pause to disk";
  Make("deeper");
  Write("deeper", "kept");
  ASSERT_EQ(CodeOf(driver().Pause("deeper", Level::kMemory)), "fine");
  ASSERT_EQ(CodeOf(driver().Pause("deeper", Level::kDisk)), "fine");
  EXPECT_EQ(StateOf("deeper"), "paused_on_disk");
  ASSERT_EQ(CodeOf(driver().Resume("deeper")), "fine");
  EXPECT_EQ(Read("deeper"), "kept");
}

TEST_P(DriverConformance, MachinesAreDestroyedInEveryState) {
  if (!CanPause()) GTEST_SKIP() << "no pause";
  Make("still");
  ASSERT_EQ(CodeOf(driver().Pause("still", Level::kMemory)), "fine");
  EXPECT_EQ(CodeOf(driver().Destroy("still")), "fine");
  if (driver().capabilities().pause == Level::kDisk) {
    Make("flat");
    ASSERT_EQ(CodeOf(driver().Pause("flat", Level::kDisk)), "fine");
    EXPECT_EQ(CodeOf(driver().Destroy("flat")), "fine");
  }
  Make("dead");
  world_->KillAgent("dead");
  EXPECT_EQ(CodeOf(driver().Destroy("dead")), "fine");
  EXPECT_TRUE(driver().List().value_or(std::vector<Machine>(1)).empty());
}

// --- forks and snapshots ---

TEST_P(DriverConformance, AForkHasItsParentsFilesAndALifeOfItsOwn) {
  if (driver().capabilities().fork == Extent::kNone) GTEST_SKIP() << "no fork";
  Make("parent");
  Write("parent", "shared");
  EXPECT_EQ(CodeOf(driver().Fork("parent", Spec("child"))), "machine.wrong_state");
  for (const Level level : {Level::kMemory, Level::kDisk}) {
    if (level > driver().capabilities().pause) continue;
    ASSERT_EQ(CodeOf(driver().Pause("parent", level)), "fine");
    const auto child = driver().Fork("parent", Spec("child"));
    ASSERT_TRUE(child) << child.error().message;
    EXPECT_EQ(Read("child"), "shared");
    EXPECT_EQ(Say("child", "import os; print(os.uname().nodename)"), "child");
    EXPECT_EQ(StateOf("parent"), level == Level::kMemory ? "paused_in_memory" : "paused_on_disk");
    Write("child", "its own");
    ASSERT_EQ(CodeOf(driver().Resume("parent")), "fine");
    EXPECT_EQ(Read("parent"), "shared");
    EXPECT_EQ(Read("child"), "its own");
    EXPECT_EQ(CodeOf(driver().Destroy("child")), "fine");
    EXPECT_EQ(Read("parent"), "shared");
  }
}

TEST_P(DriverConformance, AForkCanHaveALargerDiskAndNoSmallerOne) {
  if (driver().capabilities().fork == Extent::kNone) GTEST_SKIP() << "no fork";
  Make("parent");
  Write("parent", "x");
  ASSERT_EQ(CodeOf(driver().Pause("parent", Level::kMemory)), "fine");
  MachineSpec child = Spec("child");
  child.disk_bytes /= 2;
  EXPECT_EQ(CodeOf(driver().Fork("parent", child)), "machine.invalid");
  child.disk_bytes *= 4;
  ASSERT_EQ(CodeOf(driver().Fork("parent", child)), "fine");
  EXPECT_EQ(Read("child"), "x");
  EXPECT_EQ(
      Say("child", "import os; s = os.statvfs('/'); print(s.f_bavail * s.f_frsize > 180 << 20)"),
      "True");
}

TEST_P(DriverConformance, ASnapshotKeepsWhatWasAndIsRestoredAsOftenAsOneLikes) {
  if (driver().capabilities().snapshot == Extent::kNone) GTEST_SKIP() << "no snapshot";
  Make("origin");
  Write("origin", "then");
  const auto taken = driver().TakeSnapshot("origin", "snap");
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(CodeOf(driver().TakeSnapshot("origin", "snap")), "machine.exists");
  EXPECT_EQ(StateOf("origin"), "running");
  Write("origin", "now");
  for (const char* id : {"again-1", "again-2"}) {
    const auto restored = driver().Restore("snap", Spec(id));
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(Read(id), "then");
    Write(id, id);
  }
  EXPECT_EQ(Read("origin"), "now");
  EXPECT_EQ(CodeOf(driver().Destroy("origin")), "fine");
  const auto list = driver().ListSnapshots();
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0].id, "snap");
  EXPECT_GT((*list)[0].stored_bytes, 0u);
  world_->Restart();
  EXPECT_EQ(CodeOf(driver().Restore("snap", Spec("again-3"))), "fine");
  EXPECT_EQ(CodeOf(driver().RemoveSnapshot("snap")), "fine");
  EXPECT_EQ(CodeOf(driver().RemoveSnapshot("snap")), "fine");
  EXPECT_EQ(CodeOf(driver().Restore("snap", Spec("again-4"))), "machine.unknown");
}

// A process counts, and has drawn a word that is in its memory alone.
inline constexpr const char* kCounter =
    "import os, time\n"
    "if os.fork() == 0:\n"
    "  os.setsid()\n"
    "  word = os.urandom(8).hex()\n"
    "  for i in range(100000):\n"
    "    open('/var/next', 'w').write(word + ' ' + str(i) + ' ' + os.urandom(8).hex())\n"
    "    os.rename('/var/next', '/var/count'); time.sleep(0.01)\n";
struct Counted {
  std::string word;
  int count = -1;
  std::string drawn;  // just now
};

TEST_P(DriverConformance, WhatKeepsMemoryGoesOnWhereItsOriginStoodAndIsAnother) {
  const Capabilities can = driver().capabilities();
  if (can.fork != Extent::kFull && can.snapshot != Extent::kFull) GTEST_SKIP() << "files alone";
  const auto look = [&](const std::string& id) {
    Counted counted;
    std::istringstream(Say(id, "import time; time.sleep(0.1); print(open('/var/count').read())")) >>
        counted.word >> counted.count >> counted.drawn;
    return counted;
  };
  Make("origin");
  ASSERT_EQ(Say("origin", kCounter), "");
  const Counted first = look("origin");
  ASSERT_EQ(first.word.size(), 16u);
  if (can.snapshot == Extent::kFull) {
    const auto taken = driver().TakeSnapshot("origin", "snap");
    ASSERT_TRUE(taken) << taken.error().message << taken.error().details;
    EXPECT_EQ(StateOf("origin"), "running");
  }
  const Counted later = look("origin");
  EXPECT_EQ(later.word, first.word);
  EXPECT_GT(later.count, first.count) << "the origin goes on";
  ASSERT_EQ(CodeOf(driver().Pause("origin", Level::kMemory)), "fine");
  std::set<std::string> drawn;
  const auto expect_goes_on = [&](const std::string& id, int from) {
    const Counted one = look(id);
    const Counted two = look(id);
    EXPECT_EQ(one.word, first.word) << id;
    EXPECT_GE(one.count, from) << id;
    EXPECT_GT(two.count, one.count) << id << " does not go on";
    EXPECT_TRUE(drawn.insert(two.drawn).second) << id << " draws what another drew";
    EXPECT_EQ(
        Say(id, "import os; print(os.uname().nodename, open('/etc/hostname').read().strip())"),
        id + " " + id);
    EXPECT_TRUE(drawn.insert(Say(id, "print(open('/etc/machine-id').read())")).second) << id;
  };
  if (can.fork == Extent::kFull) {
    for (const char* id : {"fork-1", "fork-2"}) {
      const auto child = driver().Fork("origin", Spec(id));
      ASSERT_TRUE(child) << child.error().message << child.error().details;
      EXPECT_EQ(StateOf("origin"), "paused_in_memory");
      expect_goes_on(id, later.count);
    }
  }
  world_->Restart();
  EXPECT_EQ(StateOf("origin"), "paused_in_memory");
  ASSERT_EQ(CodeOf(driver().Resume("origin")), "fine");
  EXPECT_GT(look("origin").count, later.count) << "after its copies, and a restart";
  if (can.snapshot == Extent::kFull) {
    for (const char* id : {"again-1", "again-2"}) {
      const auto restored = driver().Restore("snap", Spec(id));
      ASSERT_TRUE(restored) << restored.error().message << restored.error().details;
      expect_goes_on(id, first.count);
    }
  }
}

// --- disks ---

TEST_P(DriverConformance, TheDiskIsAHardQuota) {
  Make("full");
  EXPECT_EQ(Say("full",
                "import errno\n"
                "n = 0\n"
                "try:\n"
                "  with open('/var/big', 'wb', 0) as f:\n"
                "    while True: n += f.write(bytes(1 << 20))\n"
                "except OSError as e: print(errno.errorcode[e.errno], 64 << 20 < n < 128 << 20)"),
            "ENOSPC True");
  EXPECT_EQ(Say("full", "import os; os.remove('/var/big'); open('/var/s', 'w').write('x')"), "");
}

TEST_P(DriverConformance, ADiskGrowsWhileItIsUsedAndNeverShrinks) {
  if (!driver().capabilities().resize_disk) GTEST_SKIP() << "no resize";
  Make("grower");
  Write("grower", "before");
  EXPECT_EQ(CodeOf(driver().Resize("grower", 128ull << 20)), "machine.invalid");
  EXPECT_EQ(CodeOf(driver().Resize("grower", 64ull << 20)), "machine.invalid");
  ASSERT_EQ(CodeOf(driver().Resize("grower", 256ull << 20)), "fine");
  EXPECT_EQ(
      Say("grower", "import os; s = os.statvfs('/'); print(s.f_bavail * s.f_frsize > 220 << 20)"),
      "True");
  EXPECT_EQ(Read("grower"), "before");
  if (driver().capabilities().pause == Level::kDisk) {
    ASSERT_EQ(CodeOf(driver().Pause("grower", Level::kDisk)), "fine");
    ASSERT_EQ(CodeOf(driver().Resize("grower", 448ull << 20)), "fine");
    ASSERT_EQ(CodeOf(driver().Resume("grower")), "fine");
    EXPECT_EQ(
        Say("grower", "import os; s = os.statvfs('/'); print(s.f_bavail * s.f_frsize > 400 << 20)"),
        "True");
    EXPECT_EQ(Read("grower"), "before");
  }
}

// --- limits ---

TEST_P(DriverConformance, MemoryIsALimitAndTheAgentSurvivesIt) {
  Make("eater");
  const Ran ran = Python(driver(), "eater", "x = []\nwhile True: x.append(bytearray(8 << 20))");
  // Of a process that the host's kernel ended, gVisor tells an exit.
  const bool gvisor = driver().capabilities().isolation_class == "user-space-kernel";
  EXPECT_TRUE(ran.signal == 9 || ran.out.find("MemoryError") != std::string::npos ||
              (gvisor && ran.exit_code != 0))
      << ran.error << ran.out << ran.exit_code;
  EXPECT_EQ(Say("eater", "print('alive')"), "alive");
}

TEST_P(DriverConformance, PidsAreALimitAndTheAgentSurvivesIt) {
  Make("forker");
  EXPECT_EQ(Say("forker",
                "import os, time\n"
                "n = 0\n"
                "try:\n"
                "  for i in range(1000):\n"
                "    if os.fork() == 0: time.sleep(600)\n"
                "    n += 1\n"
                "except OSError: print(0 < n <= 64)"),
            "True");
}

// --- adoption ---

TEST_P(DriverConformance, MachinesOutliveWhoMadeThem) {
  Make("survivor");
  Write("survivor", "alive");
  EXPECT_EQ(
      Say("survivor",
          "import os, time\n"
          "if os.fork() == 0:\n"
          "  os.setsid(); time.sleep(2); open('/var/late', 'w').write('late'); os._exit(0)\n"),
      "");
  if (CanPause()) {
    Make("dozer");
    ASSERT_EQ(CodeOf(driver().Pause("dozer", Level::kMemory)), "fine");
  }
  world_->Restart();
  EXPECT_EQ(StateOf("survivor"), "running");
  EXPECT_EQ(Read("survivor"), "alive");
  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
  EXPECT_EQ(Say("survivor", "print(open('/var/late').read())"), "late");
  if (CanPause()) {
    EXPECT_EQ(StateOf("dozer"), "paused_in_memory");
    ASSERT_EQ(CodeOf(driver().Resume("dozer")), "fine");
    EXPECT_EQ(Say("dozer", "print(1)"), "1");
  }
  EXPECT_EQ(CodeOf(driver().Destroy("survivor")), "fine");
}

TEST_P(DriverConformance, AMachineWhoseAgentWasKilledIsStoppedAndCanBeStartedAgain) {
  Make("fallen");
  Write("fallen", "kept");
  EXPECT_EQ(Say("fallen", "import os; os.sync()"), "");
  world_->KillAgent("fallen");
  for (int i = 0; i < 100 && StateOf("fallen") == "running"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(StateOf("fallen"), "stopped");
  EXPECT_EQ(CodeOf(driver().Connect("fallen")), "machine.wrong_state");
  if (CanPause()) {
    EXPECT_EQ(CodeOf(driver().Pause("fallen", Level::kMemory)), "machine.wrong_state");
  }
  ASSERT_EQ(CodeOf(driver().Resume("fallen")), "fine");
  EXPECT_EQ(StateOf("fallen"), "running");
  EXPECT_EQ(Read("fallen"), "kept");
}

// --- networks ---

TEST_P(DriverConformance, UnderNoPolicyCanAMachineReachTheHost) {
  Make("lonely");
  EXPECT_EQ(Say("lonely",
                "import socket\n"
                "s = socket.create_server(('127.0.0.1', 80)); c = socket.create_connection("
                "('127.0.0.1', 80), 5); print('loopback')"),
            "loopback");
  for (const char* address : {"1.1.1.1", "169.254.169.254", "10.0.0.1"}) {
    EXPECT_NE(Say("lonely", std::string("import socket\n"
                                        "try: socket.create_connection(('") +
                                address +
                                "', 80), 1); print('reached')\n"
                                "except OSError as e: print('closed')"),
              "reached");
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DriverConformance);

}  // namespace caisson::machine
