// SPDX-License-Identifier: Apache-2.0
#include "wasm/state_scan.h"

#include <gtest/gtest.h>
#include <wasmtime.h>

#include <string>

#include "errors/wasm.h"
#include "wasm/detach.h"
#include "wasm/handles.h"

namespace caisson::wasm {
namespace {

std::string Assemble(const std::string& text) {
  wasm_byte_vec_t bytes;
  const ErrorHandle error(wasmtime_wat2wasm(text.data(), text.size(), &bytes));
  EXPECT_EQ(error, nullptr) << Describe(error.get());
  if (error) return "";
  std::string binary(bytes.data, bytes.size);
  wasm_byte_vec_delete(&bytes);
  return binary;
}

constexpr const char* kHead =
    "(module (memory (export \"memory\") 2) (global $sp (mut i32) (i32.const 65536)) "
    "(global i32 (i32.const -3)) ";

std::string Module(const std::string& rest) { return Assemble(kHead + rest + ")"); }

void ExpectRefused(const std::string& binary, const std::string& words) {
  const auto scan = ScanState(binary);
  ASSERT_FALSE(scan.has_value()) << words;
  EXPECT_EQ(scan.error().code, errors::kWasmSnapshotUnsafe);
  EXPECT_NE(scan.error().message.find(words), std::string::npos) << scan.error().message;
}

TEST(StateScan, CountsWhatItAccepts) {
  const auto scan = ScanState(Module(R"(
      (table 3 funcref) (elem (i32.const 1) $f) (tag $t)
      (func $f (param i32) (result i32) (local f64 v128)
        (global.set $sp (i32.const 7))
        (block $b (try_table (catch_all $b) (throw $t)))
        (i32.store offset=300 (i32.const 0) (local.get 0))
        (memory.copy (i32.const 0) (i32.const 1) (i32.const 2))
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 2))
        (local.set 1 (f64.const 1.5))
        (local.set 2 (v128.const i32x4 1 2 3 4))
        (local.set 2 (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
                        (local.get 2) (v128.load32_zero (i32.const 0))))
        (local.set 2 (v128.load8_lane 3 (i32.const 0) (local.get 2)))
        (block (block (br_table 0 1 0 (i32.trunc_sat_f64_s (local.get 1)))))
        (call_indirect (param i32) (result i32) (i32.const 1) (i32.const 1))))"));
  ASSERT_TRUE(scan.has_value()) << scan.error().message;
  EXPECT_EQ(scan->functions, 1u);
  EXPECT_EQ(scan->mutable_global, 0u);
  EXPECT_GT(scan->instructions, 30u);
}

TEST(StateScan, RefusesWhatKeepsStateOutsideTheMemory) {
  const std::string table = "(table $t 3 funcref) (elem $e func $f) (data $d \"x\") ";
  const std::pair<const char*, const char*> cases[] = {
      {"(table.set $t (i32.const 0) (ref.null func))", "table.set"},
      {"(table.fill $t (i32.const 0) (ref.null func) (i32.const 1))", "table.fill"},
      {"(drop (table.grow $t (ref.null func) (i32.const 1)))", "table.grow"},
      {"(table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 1))", "table.copy"},
      {"(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 1))", "table.init"},
      {"(elem.drop $e)", "elem.drop"},
      {"(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))", "memory.init"},
      {"(data.drop $d)", "data.drop"},
  };
  for (const auto& [code, words] : cases) {
    ExpectRefused(Module(table + "(func $f " + code + ")"), words);
  }
}

TEST(StateScan, RefusesModulesOfAnotherForm) {
  ExpectRefused(Module("(global (mut i32) (i32.const 1)) (func)"), "more than one mutable global");
  ExpectRefused(Module("(func $f) (start $f)"), "while it is instantiated");
  ExpectRefused(Assemble("(module (memory 1) (func))"), "no global");
  ExpectRefused(Assemble("(module (import \"a\" \"b\" (memory 1)) (func))"), "no function");
  ExpectRefused(Assemble("(module (memory 1 1 shared) (global (mut i32) (i32.const 1)) (func))"),
                "plain memory");
  ExpectRefused("", "cut off");
  ExpectRefused("no module at all", "cut off");
}

TEST(StateScan, RefusesAnInstructionThatItDoesNotKnow) {
  std::string binary = Module("(func (drop (i32.const 77)))");
  const std::size_t at = binary.find("\x41\xcd");
  ASSERT_NE(at, std::string::npos);
  binary[at] = '\xfe';
  ExpectRefused(binary, "not known here (0xfe)");
}

TEST(StateScan, SurvivesEveryTruncationAndEveryChangedByte) {
  const std::string binary = Module(
      "(data (i32.const 5) \"abc\") (func (global.set $sp (i32.const 7)) "
      "(block (br_table 0 0 (i32.const 0))))");
  for (std::size_t i = 0; i < binary.size(); ++i) {
    static_cast<void>(Detach(binary.substr(0, i)));
    for (const char byte : {'\0', '\x7f', '\x80', '\xff', '\xfc', '\x0e'}) {
      std::string changed = binary;
      changed[i] = byte;
      static_cast<void>(Detach(changed));
    }
  }
}

TEST(Detach, TakesDataOutAndShowsTheStackPointer) {
  const auto detached =
      Detach(Module("(data (i32.const 5) \"abc\") (data (i32.const 65540) \"z\") (func)"));
  ASSERT_TRUE(detached.has_value()) << detached.error().message;
  EXPECT_EQ(detached->memory.size(), 65541u);
  EXPECT_EQ(detached->memory.substr(0, 9), std::string("\0\0\0\0\0abc\0", 9));
  EXPECT_EQ(detached->memory.back(), 'z');
  EXPECT_EQ(detached->memory_bytes, 2u << 16);
  EXPECT_EQ(detached->stack_pointer, 65536u);
  EXPECT_NE(detached->binary.find("caisson.stack_pointer"), std::string::npos);
  EXPECT_EQ(detached->binary.find("abc"), std::string::npos);
  EXPECT_TRUE(ScanState(detached->binary).has_value());
}

TEST(Detach, RefusesDataOutsideTheMemory) {
  const auto detached = Detach(Module("(data (i32.const 131070) \"abc\") (func)"));
  ASSERT_FALSE(detached.has_value());
  EXPECT_NE(detached.error().message.find("outside its memory"), std::string::npos);
}

}  // namespace
}  // namespace caisson::wasm
