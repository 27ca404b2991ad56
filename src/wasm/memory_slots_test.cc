// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_slots.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "wasm/engine.h"
#include "wasm/memory_creator.h"

namespace caisson::wasm {
namespace {

constexpr std::uint64_t kSize = 1u << 20;

std::shared_ptr<const MemoryImage> Image() {
  std::string bytes(kSize - 70'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 9000) bytes[i] = static_cast<char>(1 + i % 100);
  auto image = MemoryImage::Make(bytes, kSize);
  EXPECT_TRUE(image.has_value());
  return *image;
}

bool Same(const MemorySlot& slot, const MemoryImage& image) {
  return slot.size() == image.size() &&
         std::memcmp(slot.data(), image.bytes().data(), image.size()) == 0;
}

TEST(MemoryImage, CannotBeChangedByAnybody) {
  const auto image = Image();
  EXPECT_EQ(image->bytes()[9000], 1);
  EXPECT_LT(pwrite(image->fd(), "x", 1, 0), 0);
  EXPECT_NE(ftruncate(image->fd(), 4096), 0);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, image->fd(), 0), MAP_FAILED);
}

class SlotPoolTest : public testing::TestWithParam<PageSearch> {
 protected:
  WrittenPages search_ = WrittenPages::Open(GetParam());
  std::shared_ptr<const MemoryImage> image_ = Image();
};

TEST_P(SlotPoolTest, NextCallFindsTheImageWhateverTheLastOneWrote) {
  if (search_.way() != GetParam()) GTEST_SKIP() << "this kernel has no such search";
  SlotPool pool(image_, search_, {.verify = true});
  unsigned seed = 7;
  for (int round = 0; round < 50; ++round) {
    auto slot = pool.Take();
    ASSERT_TRUE(slot.has_value());
    ASSERT_TRUE(Same(**slot, *image_));
    (*slot)->set_limit(8 * kSize);
    for (int i = 0; i < 40; ++i) {
      seed = seed * 1664525 + 1013904223;
      (*slot)->data()[seed % kSize] = std::byte{0xee};
    }
    if (round % 3 == 0) {
      ASSERT_TRUE((*slot)->Grow(2 * kSize + 65536));
      EXPECT_EQ((*slot)->data()[kSize + 5], std::byte{0}) << "a grown page is not fresh";
      (*slot)->data()[kSize + 5] = std::byte{1};
    }
    pool.Return(*std::move(slot));
    if (round % 2 == 0) pool.Recover();
  }
  EXPECT_EQ(pool.stats().made, 1u);
  EXPECT_GE(pool.stats().verified, 49u);
}

TEST_P(SlotPoolTest, DropsItsPagesAfterALargeCall) {
  SlotPool pool(image_, search_, {.most_kept_pages = 10, .verify = true});
  auto slot = pool.Take();
  ASSERT_TRUE(slot.has_value());
  std::memset((*slot)->data(), 7, kSize);
  pool.Return(*std::move(slot));
  pool.Recover();
  EXPECT_EQ(pool.stats().dropped, 1u);
  EXPECT_EQ(pool.stats().verified, 1u);
}

TEST_P(SlotPoolTest, RefusesGrowthBeyondTheLimitAndForgetsThat) {
  SlotPool pool(image_, search_, {});
  auto slot = pool.Take();
  ASSERT_TRUE(slot.has_value());
  (*slot)->set_limit(2 * kSize);
  EXPECT_TRUE((*slot)->Grow(2 * kSize));
  EXPECT_FALSE((*slot)->growth_refused());
  EXPECT_FALSE((*slot)->Grow(2 * kSize + 65536));
  EXPECT_TRUE((*slot)->growth_refused());
  EXPECT_EQ((*slot)->size(), 2 * kSize);
  pool.Return(*std::move(slot));
  slot = pool.Take();
  EXPECT_FALSE((*slot)->growth_refused());
  EXPECT_EQ((*slot)->size(), kSize);
}

TEST_P(SlotPoolTest, ServesManyThreads) {
  SlotPool pool(image_, search_, {.verify = true});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto slot = pool.Take();
        ASSERT_TRUE(slot.has_value());
        ASSERT_TRUE(Same(**slot, *image_));
        (*slot)->data()[static_cast<std::size_t>(i) * 5000] = std::byte{9};
        pool.Return(*std::move(slot));
      }
    });
  }
  threads.clear();
  EXPECT_LE(pool.stats().made, 4u);
}

INSTANTIATE_TEST_SUITE_P(EverySearch, SlotPoolTest,
                         testing::Values(PageSearch::kScan, PageSearch::kRead, PageSearch::kNone));

TEST(SlotPool, PreparedSlotsHaveTheUsualPages) {
  const WrittenPages search = WrittenPages::Open();
  if (search.way() == PageSearch::kNone) GTEST_SKIP() << "this kernel has no search";
  const auto image = Image();
  SlotPool pool(image, search, {});
  auto first = pool.Take();
  ASSERT_TRUE(first.has_value());
  (*first)->data()[3 * kPageBytes] = std::byte{1};
  pool.Return(*std::move(first));
  ASSERT_TRUE(pool.Prepare(2).has_value());
  EXPECT_EQ(pool.stats().made, 2u);
  auto one = pool.Take();
  auto two = pool.Take();
  ASSERT_TRUE(Same(**one, *image));
  ASSERT_TRUE(Same(**two, *image));
  for (const auto* slot : {one->get(), two->get()}) {
    const auto there = search.Find(slot->data(), kSize);
    ASSERT_TRUE(there && there->size() == 1);
    EXPECT_EQ((*there)[0].begin, slot->data() + 3 * kPageBytes);
  }
}

TEST(MappedEngine, AnInstanceStartsFromItsSlotAndGivesItBack) {
  const auto engine = Engine::CreateMapped({.max_wasm_stack_bytes = 1u << 20});
  ASSERT_TRUE(engine.has_value());
  const std::string text =
      "(module (memory (export \"memory\") 3) (func (export \"grow\") (param i32) (result i32) "
      "(memory.grow (local.get 0))))";
  wasm_byte_vec_t bytes;
  ASSERT_EQ(wasmtime_wat2wasm(text.data(), text.size(), &bytes), nullptr);
  wasmtime_module_t* raw = nullptr;
  ASSERT_EQ(wasmtime_module_new((*engine)->get(), reinterpret_cast<std::uint8_t*>(bytes.data),
                                bytes.size, &raw),
            nullptr);
  wasm_byte_vec_delete(&bytes);
  const ModuleHandle module(raw);
  const WrittenPages search = WrittenPages::Open();
  const auto image = Image();
  SlotPool pool(image, search, {.verify = true});
  for (int round = 0; round < 3; ++round) {
    const StoreHandle store(wasmtime_store_new((*engine)->get(), nullptr, nullptr));
    wasmtime_context_t* context = wasmtime_store_context(store.get());
    wasmtime_context_set_epoch_deadline(context, 1000);
    auto slot = pool.Take();
    ASSERT_TRUE(slot.has_value());
    MemorySlot& memory = **slot;
    memory.set_limit(kSize + 65536);
    wasmtime_instance_t instance;
    wasm_trap_t* trap = nullptr;
    {
      const PlacedSlot placed(pool, *std::move(slot), 3u << 16);
      ASSERT_EQ(wasmtime_instance_new(context, module.get(), nullptr, 0, &instance, &trap),
                nullptr);
      EXPECT_TRUE(placed.taken());
    }
    wasmtime_extern_t item;
    ASSERT_TRUE(wasmtime_instance_export_get(context, &instance, "memory", 6, &item));
    EXPECT_EQ(wasmtime_memory_data(context, &item.of.memory),
              reinterpret_cast<std::uint8_t*>(memory.data()));
    EXPECT_EQ(wasmtime_memory_data_size(context, &item.of.memory), kSize);
    EXPECT_TRUE(Same(memory, *image));
    ASSERT_TRUE(wasmtime_instance_export_get(context, &instance, "grow", 4, &item));
    for (const auto& [pages, answer] : {std::pair{1, 16}, {1, -1}}) {
      wasmtime_val_raw_t value;
      value.i32 = pages;
      ASSERT_EQ(wasmtime_func_call_unchecked(context, &item.of.func, &value, 1, &trap), nullptr);
      EXPECT_EQ(value.i32, answer);
    }
    EXPECT_TRUE(memory.growth_refused());
    memory.data()[12345] = std::byte{3};
  }
  EXPECT_EQ(pool.stats().made, 1u);
  EXPECT_EQ(pool.stats().verified, 2u);
}

TEST(MappedEngine, ASlotThatNobodyTookGoesBack) {
  const WrittenPages search = WrittenPages::Open();
  SlotPool pool(Image(), search, {});
  {
    const PlacedSlot placed(pool, *pool.Take(), 65536);
  }
  EXPECT_TRUE(pool.Take().has_value());
  EXPECT_EQ(pool.stats().made, 1u);
}

}  // namespace
}  // namespace caisson::wasm
