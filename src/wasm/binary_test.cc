// SPDX-License-Identifier: Apache-2.0
#include "wasm/binary.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "wasm/engine.h"
#include "wasm/module_cache.h"

namespace caisson::wasm {
namespace {

std::string FromText(std::string_view text) {
  wasm_byte_vec_t bytes;
  const ErrorHandle error(wasmtime_wat2wasm(text.data(), text.size(), &bytes));
  EXPECT_FALSE(error) << Describe(error.get());
  std::string binary(bytes.data, bytes.size);
  wasm_byte_vec_delete(&bytes);
  return binary;
}

constexpr std::string_view kModule = R"((module
  (memory (export "memory") 1)
  (global $sp (mut i32) (i32.const 1000))
  (func $peek (param i32) (result i32) (i32.load (local.get 0)))
  (func $pointer (export "pointer") (result i32) (global.get $sp))
  (data (i32.const 16) "abcd")))";

Rewrite SomeRewrite() {
  Rewrite rewrite;
  rewrite.exports = {{"peek", ExternKind::kFunction, 0}, {"sp", ExternKind::kGlobal, 0}};
  rewrite.replace_memory = true;
  rewrite.segments = {{100'000, "\x2a\0\0\0xyz"}, {0, "low"}};
  rewrite.memory_bytes = 3 * 65536 - 5;
  rewrite.global0 = 0xfffffff0;
  return rewrite;
}

TEST(Binary, ARewrittenModuleHasTheNewMemoryGlobalAndExports) {
  const Result<std::string> binary = Apply(FromText(kModule), SomeRewrite());
  ASSERT_TRUE(binary) << binary.error().message;
  const auto engine = *Engine::Create({.slots = 1});
  const auto module = Compile(*engine, *binary);
  ASSERT_TRUE(module) << module.error().message;
  const StoreHandle store(wasmtime_store_new(engine->get(), nullptr, nullptr));
  wasmtime_context_t* context = wasmtime_store_context(store.get());
  wasmtime_context_set_epoch_deadline(context, 1000);
  const ErrorHandle fuel(wasmtime_context_set_fuel(context, 1000));
  wasmtime_instance_t instance;
  wasm_trap_t* trap = nullptr;
  ErrorHandle error(wasmtime_instance_new(context, module->get(), nullptr, 0, &instance, &trap));
  ASSERT_FALSE(error || trap);
  wasmtime_extern_t item;
  ASSERT_TRUE(wasmtime_instance_export_get(context, &instance, "memory", 6, &item));
  EXPECT_EQ(wasmtime_memory_data_size(context, &item.of.memory), 3u * 65536);
  ASSERT_TRUE(wasmtime_instance_export_get(context, &instance, "peek", 4, &item));
  const auto peek = [&](std::int32_t address) {
    wasmtime_val_t argument{.kind = WASMTIME_I32, .of = {.i32 = address}};
    wasmtime_val_t result{};
    error.reset(wasmtime_func_call(context, &item.of.func, &argument, 1, &result, 1, &trap));
    EXPECT_FALSE(error || trap);
    return result.of.i32;
  };
  EXPECT_EQ(peek(100'000), 42);
  EXPECT_EQ(peek(0), 'l' | 'o' << 8 | 'w' << 16);
  EXPECT_EQ(peek(16), 0) << "the old data is gone";
  ASSERT_TRUE(wasmtime_instance_export_get(context, &instance, "sp", 2, &item));
  wasmtime_val_t value;
  wasmtime_global_get(context, &item.of.global, &value);
  EXPECT_EQ(value.of.i32, -16);
}

TEST(Binary, WhatIsNoModuleIsRefused) {
  EXPECT_FALSE(Apply("", SomeRewrite()));
  EXPECT_FALSE(Apply("not a module at all", SomeRewrite()));
  EXPECT_FALSE(Apply(FromText("(module)"), SomeRewrite()));
  EXPECT_FALSE(Apply(FromText("(module (memory (export \"m\") 1 2) (global (mut i32) (i32.const 1))"
                              " (data (i32.const 0) \"x\"))"),
                     SomeRewrite()));
  EXPECT_FALSE(Apply(FromText("(module (memory (export \"m\") 1) (global i32 (i32.const 1))"
                              " (data (i32.const 0) \"x\"))"),
                     SomeRewrite()));
}

TEST(Binary, CutAndChangedBytesNeverReadOutside) {
  const std::string good = FromText(kModule);
  for (std::size_t size = 0; size < good.size(); ++size) {
    (void)Apply(std::string(good.substr(0, size)), SomeRewrite());
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[8 + random() % (bad.size() - 8)] = static_cast<char>(random());
    (void)Apply(bad, SomeRewrite());
  }
}

TEST(Binary, SegmentsAreThePagesThatAreNotZero) {
  std::string memory(std::size_t{5} * 4096, '\0');
  memory[4096 + 7] = 'a';
  memory[std::size_t{2} * 4096] = 'b';
  memory.back() = 'c';
  const std::vector<Segment> segments = NonZeroSegments(memory);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].address, 4096u);
  EXPECT_EQ(segments[0].bytes.size(), 8192u);
  EXPECT_EQ(segments[1].address, 4u * 4096);
  EXPECT_EQ(segments[1].bytes.size(), 4096u);
  EXPECT_TRUE(NonZeroSegments("").empty());
}

}  // namespace
}  // namespace caisson::wasm
