// SPDX-License-Identifier: Apache-2.0
// For tests: what machines leave on the host, and lives of machines whose helper is killed at
// random moments.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "machine/test_guest.h"
#include "machine/test_helper.h"

namespace caisson::machine {

inline std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Everything on this host that bears the mark of one helper's state.
inline std::vector<std::string> TracesOf(const HelperProcess& helper) {
  namespace fs = std::filesystem;
  std::vector<std::string> traces;
  const std::string mark = "caisson-" + ContentOf(helper.state() + "/instance") + "-";
  std::error_code error;
  for (const auto& hierarchy : fs::directory_iterator("/sys/fs/cgroup", error)) {
    // Groups go away meanwhile.
    for (fs::recursive_directory_iterator group(hierarchy, error), end; !error && group != end;
         group.increment(error)) {
      if (group->is_directory(error) && group->path().string().find(mark) != std::string::npos) {
        traces.push_back(group->path());
      }
    }
  }
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ContentOf(process.path() / "cgroup").find(mark) != std::string::npos) {
      traces.push_back("process " + name + " " + ContentOf(process.path() / "comm"));
    }
    if (ContentOf(process.path() / "mountinfo").find(helper.state()) != std::string::npos) {
      traces.push_back("mounts of process " + name);
    }
  }
  for (const auto& block : fs::directory_iterator("/sys/block", error)) {
    const std::string file = ContentOf(block.path() / "loop/backing_file");
    if (file.starts_with(helper.directory())) {
      traces.push_back(block.path().filename().string() + " of " + file);
    }
  }
  for (const char* part : {"/state/machines", "/state/snapshots", "/state/scratch",
                           "/state/set-aside", "/network/machines"}) {
    for (const auto& entry : fs::directory_iterator(helper.directory() + part, error)) {
      traces.push_back(entry.path());
    }
  }
  return traces;
}

// The kernel takes mounts and loop devices away a little after their last user.
inline std::string AwaitNoTraces(const HelperProcess& helper) {
  std::vector<std::string> traces;
  for (int i = 0; i < 200; ++i) {
    traces = TracesOf(helper);
    if (traces.empty()) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string text;
  for (const std::string& trace : traces) text += trace + "\n";
  return text;
}

// One user of the driver: what he was told is what must hold.
struct Client {
  std::string id;
  bool exists = false;   // a call said so
  bool unknown = false;  // a call failed in between: either may be
};

// Three clients live with a machine each until `stop`: pauses, snapshots, resumes, ends.
inline std::vector<std::thread> StartClients(Driver& driver, const MachineSpec& like,
                                             std::vector<Client>& clients, std::mt19937& random,
                                             const std::atomic<bool>& stop) {
  std::vector<std::thread> threads;
  for (Client& client : clients) {
    threads.emplace_back([&driver, like, &client, &stop, seed = random()] {
      std::mt19937 own(static_cast<std::mt19937::result_type>(seed));
      MachineSpec spec = like;
      spec.id = client.id;
      while (!stop) {
        const Result<Machine> made = driver.Create(spec);
        client.exists = made.has_value();
        client.unknown = !made;
        if (!made || stop) return;
        if (own() % 2 == 0) (void)driver.Pause(client.id, Level::kMemory);
        if (own() % 3 == 0) (void)driver.Pause(client.id, Level::kDisk);
        if (own() % 2 == 0) (void)driver.TakeSnapshot(client.id, client.id);
        if (own() % 2 == 0) (void)driver.Resume(client.id);
        (void)driver.RemoveSnapshot(client.id);
        if (stop || own() % 2 == 0) return;
        const bool gone = driver.Destroy(client.id).has_value();
        client.exists = !gone;
        client.unknown = !gone;
      }
    });
  }
  return threads;
}

// What was told holds, and what is there can be used and removed.
inline void CheckClients(Driver& driver, const std::vector<Client>& clients) {
  const auto list = driver.List();
  ASSERT_TRUE(list) << list.error().message;
  for (const Client& client : clients) {
    const auto found = std::ranges::find(*list, client.id, &Machine::id);
    if (!client.unknown) {
      EXPECT_EQ(found != list->end(), client.exists) << client.id;
    }
    if (found == list->end()) continue;
    if (found->state != State::kRunning) {
      const auto resumed = driver.Resume(client.id);
      EXPECT_TRUE(resumed) << client.id << " " << NameOf(found->state) << " "
                           << resumed.error().message;
    }
    const Ran ran = Python(driver, client.id, "print(1)");
    EXPECT_EQ(ran.out, "1\n") << client.id << " " << ran.error;
    EXPECT_TRUE(driver.Destroy(client.id));
  }
  const auto snapshots = driver.ListSnapshots();
  ASSERT_TRUE(snapshots) << snapshots.error().message;
  for (const Snapshot& snapshot : *snapshots) EXPECT_TRUE(driver.RemoveSnapshot(snapshot.id));
}

// CAISSON_TEST_LIVES of them, else `lives`; nothing is left afterwards, and nobody was told an
// untruth.
inline void LiveThroughCrashes(HelperProcess& helper, Driver& driver, const MachineSpec& like,
                               int lives) {
  const char* wish = std::getenv("CAISSON_TEST_LIVES");
  if (wish != nullptr) lives = std::atoi(wish);
  std::mt19937 random(std::random_device{}());
  std::vector<Client> clients(3);
  for (int number = 0; number < lives && !testing::Test::HasFatalFailure();) {
    for (Client& client : clients) {
      client = Client{.id = "life-" + std::to_string(number++)};
    }
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads = StartClients(driver, like, clients, random, stop);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
    stop = true;
    helper.Kill();
    helper.Start();
    for (std::thread& thread : threads) thread.join();
    CheckClients(driver, clients);
  }
  EXPECT_TRUE(driver.List().value_or(std::vector<Machine>(1)).empty());
  helper.Stop();
  EXPECT_EQ(AwaitNoTraces(helper), "");
}

}  // namespace caisson::machine
