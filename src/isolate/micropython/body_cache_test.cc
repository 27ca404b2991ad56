// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/body_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace caisson::isolate {
namespace {

std::shared_ptr<const PageDelta> Delta(std::size_t pages) {
  auto delta = std::make_shared<PageDelta>();
  delta->addresses.resize(pages);
  delta->bytes.resize(pages * 4096);
  return delta;
}

TEST(BodyCache, FindsWhatWasPutByHeapAndSource) {
  BodyCache cache(1u << 20);
  const auto body = Delta(2);
  cache.Put(8, "a", body);
  EXPECT_EQ(cache.Find(8, "a"), body);
  EXPECT_EQ(cache.Find(8, "b"), nullptr);
  EXPECT_EQ(cache.Find(16, "a"), nullptr);
  EXPECT_EQ(cache.Find(1, "8:a"), nullptr);
}

TEST(BodyCache, WhatWasUsedLeastRecentlyGoesFirst) {
  BodyCache cache(100'000);  // room for about six bodies of four pages
  for (int i = 0; i < 5; ++i) cache.Put(8, "body" + std::to_string(i), Delta(4));
  EXPECT_NE(cache.Find(8, "body0"), nullptr);
  for (int i = 5; i < 9; ++i) cache.Put(8, "body" + std::to_string(i), Delta(4));
  EXPECT_NE(cache.Find(8, "body0"), nullptr);
  EXPECT_EQ(cache.Find(8, "body1"), nullptr);
  EXPECT_LE(cache.bytes(), 100'000u);
  EXPECT_GE(cache.count(), 4u);
}

TEST(BodyCache, ABodyLargerThanTheCacheIsNotKept) {
  BodyCache cache(10'000);
  cache.Put(8, "small", Delta(1));
  cache.Put(8, "large", Delta(3));
  EXPECT_EQ(cache.Find(8, "large"), nullptr);
  EXPECT_NE(cache.Find(8, "small"), nullptr);
}

TEST(BodyCache, AnEvictedBodyLivesWhileItIsHeld) {
  BodyCache cache(10'000);
  cache.Put(8, "a", Delta(2));
  const auto held = cache.Find(8, "a");
  cache.Put(8, "b", Delta(2));
  EXPECT_EQ(cache.Find(8, "a"), nullptr);
  EXPECT_EQ(held->bytes.size(), 8192u);
}

TEST(BodyCache, ThreadsShareIt) {
  BodyCache cache(200'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string source = "body" + std::to_string((i * 7 + t) % 40);
        if (!cache.Find(8, source)) cache.Put(8, source, Delta(2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), 200'000u);
  EXPECT_GT(cache.count(), 10u);
}

}  // namespace
}  // namespace caisson::isolate
