// SPDX-License-Identifier: Apache-2.0
#include "wasm/record.h"

#include <gtest/gtest.h>

#include <optional>
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

// Function 0 is imported; 1 calls 2 with what it got; 2 has locals.
constexpr std::string_view kModule = R"((module
  (import "host" "nothing" (func))
  (memory (export "memory") 1)
  (global $other (mut i32) (i32.const 7))
  (func (export "outer") (param i32) (result i32) (call 2 (local.get 0)))
  (func (param i32) (result i32) (local i64 i64 f32)
    (global.set $other (i32.const 8))
    (i32.add (local.get 0) (i32.const 1)))))";

class Recorded {
 public:
  explicit Recorded(const std::string& binary) : engine_(*Engine::Create({.slots = 1})) {
    auto module = Compile(*engine_, binary);
    if (!module) return;
    module_ = *std::move(module);
    linker_.reset(wasmtime_linker_new(engine_->get()));
    const FuncTypeHandle type(wasm_functype_new_0_0());
    const auto nothing = [](void*, wasmtime_caller_t*, const wasmtime_val_t*, std::size_t,
                            wasmtime_val_t*, std::size_t) -> wasm_trap_t* { return nullptr; };
    ErrorHandle error(wasmtime_linker_define_func(linker_.get(), "host", 4, "nothing", 7,
                                                  type.get(), nothing, nullptr, nullptr));
    store_.reset(wasmtime_store_new(engine_->get(), nullptr, nullptr));
    context_ = wasmtime_store_context(store_.get());
    wasmtime_context_set_epoch_deadline(context_, 1000);
    error.reset(wasmtime_context_set_fuel(context_, 1000));
    wasm_trap_t* trap = nullptr;
    error.reset(
        wasmtime_linker_instantiate(linker_.get(), context_, module_.get(), &instance_, &trap));
    made_ = !error && trap == nullptr;
  }

  bool made() const { return made_; }
  std::optional<std::int32_t> Global(std::string_view name) {
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(), &item)) {
      return std::nullopt;
    }
    wasmtime_val_t value;
    wasmtime_global_get(context_, &item.of.global, &value);
    return value.of.i32;
  }
  std::int32_t Outer(std::int32_t number) {
    wasmtime_extern_t item;
    EXPECT_TRUE(wasmtime_instance_export_get(context_, &instance_, "outer", 5, &item));
    wasmtime_val_t argument{.kind = WASMTIME_I32, .of = {.i32 = number}};
    wasmtime_val_t result{};
    wasm_trap_t* trap = nullptr;
    const ErrorHandle error(
        wasmtime_func_call(context_, &item.of.func, &argument, 1, &result, 1, &trap));
    EXPECT_FALSE(error || trap);
    return result.of.i32;
  }

 private:
  std::unique_ptr<Engine> engine_;
  ModuleHandle module_;
  LinkerHandle linker_;
  StoreHandle store_;
  wasmtime_context_t* context_ = nullptr;
  wasmtime_instance_t instance_{};
  bool made_ = false;
};

TEST(RecordArgument, TheGlobalHoldsWhatTheFunctionGotLast) {
  const Result<std::string> binary = RecordArgument(FromText(kModule), 2, "seen");
  ASSERT_TRUE(binary) << binary.error().message;
  Recorded module(*binary);
  ASSERT_TRUE(module.made());
  EXPECT_EQ(module.Global("seen"), 0);
  EXPECT_EQ(module.Outer(41), 42);
  EXPECT_EQ(module.Global("seen"), 41);
  EXPECT_EQ(module.Outer(-5), -4);
  EXPECT_EQ(module.Global("seen"), -5);
}

TEST(RecordArgument, WhatDoesNotHaveTheFormIsRefused) {
  const auto refused = [](std::string_view text, std::uint32_t function) {
    return !RecordArgument(FromText(text), function, "seen");
  };
  EXPECT_TRUE(refused(kModule, 0)) << "is imported";
  EXPECT_TRUE(refused(kModule, 3)) << "is not there";
  EXPECT_TRUE(refused("(module (func (export \"f\") (param i32)))", 0)) << "no globals";
  EXPECT_TRUE(refused("(module (global i32 (i32.const 1)) (func (param i32)))", 0)) << "no exports";
  EXPECT_TRUE(
      refused("(module (import \"a\" \"b\" (memory 1)) (global i32 (i32.const 1))"
              " (func (export \"f\") (param i32)))",
              0));
  EXPECT_FALSE(RecordArgument("", 0, "seen"));
  EXPECT_FALSE(RecordArgument("not a module at all", 0, "seen"));
}

TEST(RecordArgument, AnArgumentOfAnotherTypeIsRefusedByTheEngine) {
  const Result<std::string> binary = RecordArgument(FromText("(module (global i32 (i32.const 1))"
                                                             " (func (export \"f\") (param i64)))"),
                                                    0, "seen");
  ASSERT_TRUE(binary) << binary.error().message;
  const auto engine = *Engine::Create({.slots = 1});
  EXPECT_FALSE(Compile(*engine, *binary));
}

TEST(RecordArgument, CutAndChangedBytesNeverReadOutside) {
  const std::string good = FromText(kModule);
  for (std::size_t size = 0; size < good.size(); ++size) {
    (void)RecordArgument(good.substr(0, size), 2, "seen");
  }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[8 + random() % (bad.size() - 8)] = static_cast<char>(random());
    (void)RecordArgument(bad, 2, "seen");
  }
}

}  // namespace
}  // namespace caisson::wasm
