// SPDX-License-Identifier: Apache-2.0
#include "control/chores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace caisson::control {
namespace {

using namespace std::chrono_literals;

TEST(Chores, OneThatTakesLongKeepsNobodyWaiting) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> done = 0;
  Chores chores(2);
  chores.Start("stuck", [released] { released.wait(); });
  for (int i = 0; i < 20; ++i) chores.Start(std::to_string(i), [&done] { ++done; });
  for (int i = 0; i < 1000 && done < 20; ++i) chores.Await(20ms);
  EXPECT_EQ(done, 20);
  // What is left of an earlier round is not waited for again.
  chores.Start("next", [&done] { ++done; });
  const auto begin = std::chrono::steady_clock::now();
  chores.Await(60s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_EQ(done, 21);
  release.set_value();
}

TEST(Chores, ThereIsOnePieceOfWorkForEachName) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> begun = 0;
  Chores chores(4);
  const auto work = [&begun, released] {
    ++begun;
    released.wait();
  };
  chores.Start("one", work);
  chores.Start("one", work);
  chores.Await(20ms);
  chores.Start("one", work);
  release.set_value();
  chores.Await(60s);
  EXPECT_LE(begun, 1);
  // The first may still be about to end.
  for (int i = 0; i < 1000 && begun < 2; ++i) {
    chores.Start("one", work);
    chores.Await(10ms);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(begun, 2);
}

}  // namespace
}  // namespace caisson::control
