// SPDX-License-Identifier: Apache-2.0
// The reader of guest objects against memory in which anything may stand.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "isolate/micropython/heap.h"
#include "isolate/micropython/layout.h"
#include "isolate/micropython/object_reader.h"
#include "isolate/micropython/object_writer.h"
#include "isolate/micropython/report.h"

namespace caisson::isolate {
namespace {

// A heap of `blocks` blocks at the end of a small memory, as the interpreter would set it up.
std::vector<std::uint8_t> EmptyHeap(std::uint32_t blocks) {
  constexpr std::uint32_t kTable = 0x11000;
  const std::uint32_t pool = (kTable + blocks / 4 + 4095) / 4096 * 4096;
  std::vector<std::uint8_t> bytes(pool + blocks * layout::kBlockBytes);
  const GuestMemory memory(bytes.data(), bytes.size());
  memory.Write(layout::kTableStart, kTable);
  memory.Write(layout::kTableBytes, blocks / 4);
  memory.Write(layout::kPoolStart, pool);
  memory.Write(layout::kPoolEnd, static_cast<std::uint32_t>(bytes.size()));
  memory.Write(layout::kLastUsedBlock, std::uint32_t{0});
  return bytes;
}

TEST(Objects, WhatIsWrittenIsReadAgain) {
  std::vector<std::uint8_t> bytes = EmptyHeap(4096);
  const GuestMemory memory(bytes.data(), bytes.size());
  ObjectWriter writer(memory);
  const std::optional<std::uint32_t> object =
      writer.Write(json::Object{{"a", json::Array{1, -2.5, nullptr, true, "x\ny",
                                                  json::Value::Integer("-12345678901234567890")}},
                                {"b", json::Object{}}});
  ASSERT_TRUE(object);
  writer.Commit();
  const auto text = ReadJson(memory, *object, {.output_bytes = 1000});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(*text == R"({"a":[1,-2.5,null,true,"x\ny",-12345678901234567890],"b":{}})" ||
              *text == R"({"b":{},"a":[1,-2.5,null,true,"x\ny",-12345678901234567890]})")
      << *text;
  // Block 0 counts as used from the start, without a mark in the table.
  const HeapUse use = CountHeap(memory);
  EXPECT_EQ(use.total, 4096u);
  EXPECT_EQ(HeapUsedEnd(memory), memory.Word(layout::kPoolStart) + (use.used + 1) * 16);
  EXPECT_EQ(memory.Word(layout::kLastUsedBlock), use.used);
}

TEST(Objects, AFullHeapTakesNothingMore) {
  std::vector<std::uint8_t> bytes = EmptyHeap(64);
  const GuestMemory memory(bytes.data(), bytes.size());
  EXPECT_FALSE(ObjectWriter(memory).Write(std::string(5000, 'x')));
  EXPECT_FALSE(ObjectWriter(memory).Write(json::Array(1000)));
  json::Array strings;
  for (int i = 0; i < 100; ++i) strings.emplace_back("text");
  EXPECT_FALSE(ObjectWriter(memory).Write(std::move(strings)));
  EXPECT_TRUE(ObjectWriter(memory).Write(json::Array(10)));
}

TEST(Objects, AReaderOfAnyMemoryEndsAndStaysInside) {
  constexpr std::uint32_t kSize = 0x12000;
  const std::uint32_t interesting[] = {layout::kTypeStr,
                                       layout::kTypeBytes,
                                       layout::kTypeFloat,
                                       layout::kTypeInt,
                                       layout::kTypeList,
                                       layout::kTypeTuple,
                                       layout::kTypeDict,
                                       layout::kNone,
                                       layout::kTrue,
                                       0xffffffff,
                                       0,
                                       3,
                                       0x7fffffff,
                                       kSize - 4,
                                       kSize,
                                       0x10000,
                                       0x8000,
                                       0x4000};
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> bytes(kSize);
    const GuestMemory memory(bytes.data(), bytes.size());
    for (std::uint32_t at = 0; at < kSize; at += 4) {
      const std::uint32_t choice = random() % 4;
      std::uint32_t word = random();
      if (choice == 0) word = interesting[random() % std::size(interesting)];
      if (choice == 1) word = random() % kSize & ~3u;
      if (choice == 2) word = random() % 100;
      memory.Write(at, word);
    }
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t object = random() % 2 == 0 ? random() : random() % kSize & ~3u;
      const auto text = ReadJson(memory, object, {.output_bytes = 100'000});
      EXPECT_LE(text.value_or("").size(), 100'000u);
      (void)ReadReport(memory, object);
      (void)TypeName(memory, object);
    }
    (void)CountHeap(memory);
    (void)HeapUsedEnd(memory);
    ObjectWriter writer(memory);
    (void)writer.Write(json::Array{"abc", 1.5, json::Object{{"k", 1}}});
    writer.Commit();
  }
}

TEST(Objects, ATracebackHasTheAuthorsFramesOnly) {
  const std::vector<TracebackFrame> frames = ParseTraceback(
      "Traceback (most recent call last):\n"
      "  File \"<stdin>\", line 80, in guarded\n"
      "  File \"workflow\", line 4, in run\n"
      "  File \"workflow\", line 2, in f\n"
      "E: text\n"
      "  File \"workflow\", line 9, in forged\n");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].function, "run");
  EXPECT_EQ(frames[1].line, 2u);
  EXPECT_TRUE(ParseTraceback("").empty());
  EXPECT_TRUE(ParseTraceback("  File \"workflow\", line x").empty());
}

}  // namespace
}  // namespace caisson::isolate
