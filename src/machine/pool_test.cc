// SPDX-License-Identifier: Apache-2.0
#include "machine/pool.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "errors/machine.h"

namespace caisson::machine {
namespace {

struct Slot {};

TEST(Pool, tells_once_of_a_kind_that_cannot_be_prepared) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  int attempts = 0;
  Pool<Slot> pool(
      3, 3,
      [&](const Kind& kind) -> Result<std::unique_ptr<Slot>> {
        const std::lock_guard lock(mutex);
        ++attempts;
        return Fail(errors::kMachineNoImage, "there is no image " + kind.image);
      },
      [](std::unique_ptr<Slot>) { ADD_FAILURE() << "nothing was made"; },
      [&](const Status& failure) {
        const std::lock_guard lock(mutex);
        told.push_back(failure.message);
        changed.notify_all();
      });
  EXPECT_EQ(pool.Take({.image = "gone", .disk_bytes = 1}), nullptr);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !told.empty(); });
  EXPECT_EQ(told, std::vector<std::string>{"there is no image gone"});
  EXPECT_GE(attempts, 1);
}

}  // namespace
}  // namespace caisson::machine
