// SPDX-License-Identifier: Apache-2.0
// What bodies do to make the host work, lie or read what is not there.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "isolate/micropython/test_runtime.h"

namespace caisson::isolate {
namespace {

std::string Body(std::string_view lines) {
  std::string source = "def run(self, state, config):\n    ";
  for (const char c : lines) source += c == '\n' ? "\n    " : std::string(1, c);
  return source + "\n";
}

std::string Eval(std::string_view lines) { return Show(Call(Body(lines))); }

// ---- the cost of reading a result, which no fuel pays for

// Each object of T would cost 16 to the 4th visits of a type, if types were not remembered.
constexpr std::string_view kDiamonds =
    "b = type('B', (), {})\n"
    "for i in range(4):\n"
    "    b = type('B', (b,) * 16, {})\n"
    "T = type('T', (b,) * 15 + (list,), {})\n";

TEST(HostileResult, AClassTreeFullOfDiamondsIsWalkedOnce) {
  const Outcome outcome = Call(Body(std::string(kDiamonds) + "return {'a': [T()] * 100000}"));
  ASSERT_TRUE(outcome.ok()) << Show(outcome);
  EXPECT_EQ(outcome.value.Find("a")->as_array().size(), 100'000u);
}

TEST(HostileResult, AChainOfClassesOfAnyLengthIsFollowed) {
  const Outcome outcome =
      Call(Body("b = list\nall = []\n"
                "for i in range(2000):\n"
                "    b = type('B', (b,), {})\n"
                "    all.append(b())\n"
                "return {'a': all}"));
  ASSERT_TRUE(outcome.ok()) << Show(outcome);
  EXPECT_EQ(outcome.value.Find("a")->as_array().size(), 2000u);
}

TEST(HostileResult, ADictThatIsMostlyHolesCountsEachTimeThatItIsRead) {
  const Outcome outcome =
      Call(Body("d = {}\n"
                "for i in range(50000):\n"
                "    d[i] = 0\n"
                "for i in range(50000):\n"
                "    del d[i]\n"
                "return {'a': [d] * 300000}"));
  EXPECT_EQ(outcome.fault, Fault::kOutput) << Show(outcome);
  EXPECT_NE(outcome.message.find("steps"), std::string::npos) << outcome.message;
}

TEST(HostileResult, HugeIntegersCountByWhatTheyCost) {
  const Outcome outcome = Call(Body("n = 10 ** 4299\nreturn {'a': [n] * 15000}"));
  EXPECT_EQ(outcome.fault, Fault::kOutput) << Show(outcome);
  EXPECT_TRUE(Call(Body("n = 10 ** 4299\nreturn {'a': [n] * 2000}")).ok());
}

TEST(HostileResult, AnObjectWhoseClassNamesObjectAsItsBaseIsNoContainer) {
  const std::string refused =
      "protocol: the result cannot be written as JSON: $.a is a K; only dict, list, tuple, str, "
      "bytes, int, float, bool and None can be returned";
  EXPECT_EQ(Eval("class K(object):\n    pass\nk = K()\nx = [1, 2]\nreturn {'a': k}"), refused);
  EXPECT_EQ(Eval("class J(object):\n    pass\nclass K(J):\n    pass\nreturn {'a': K()}"), refused);
}

TEST(HostileResult, TheMessageOfARefusalIsShortWhateverTheKeyIs) {
  const Outcome outcome = Call(Body("return {'k' * 1000000: set()}"));
  EXPECT_EQ(outcome.fault, Fault::kProtocol);
  EXPECT_LE(outcome.message.size(), 1000u);
}

// ---- what is told of an error

TEST(HostileError, AMemoryErrorThatTheBodyMadeUpIsAnOrdinaryError) {
  EXPECT_EQ(Eval("raise MemoryError('fake')"), "raised MemoryError: fake");
  EXPECT_EQ(Eval("raise MemoryError"), "raised MemoryError: ");
  EXPECT_EQ(Eval("raise MemoryError('memory allocation failed, allocating 99999999 bytes')"),
            "raised MemoryError: memory allocation failed, allocating 99999999 bytes");
  EXPECT_EQ(Eval("class E(MemoryError):\n    pass\nraise E('own')"), "raised E: own");
  EXPECT_EQ(Eval("class MemoryError(Exception):\n    pass\nraise MemoryError('own')"),
            "raised MemoryError: own");
  EXPECT_EQ(Show(Call("raise MemoryError('at the top')\n")), "raised MemoryError: at the top");
}

TEST(HostileError, WhateverItsTextRaisesAnErrorIsToldByItsType) {
  for (const std::string_view raised :
       {"SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException('x')",
        "MemoryError('fake')", "ValueError('y')", "StopIteration"}) {
    const Outcome outcome =
        Call(Body("class E(Exception):\n    def __str__(self):\n        raise " +
                  std::string(raised) + "\nraise E()"));
    EXPECT_EQ(Show(outcome), "raised E: ") << raised;
    EXPECT_EQ(outcome.memory, MemoryKind::kNone) << raised;
    ASSERT_EQ(outcome.traceback.size(), 1u) << raised;
    EXPECT_EQ(outcome.traceback[0].line, 5u);
  }
  EXPECT_EQ(Eval("class E(BaseException):\n    def __str__(self):\n        raise SystemExit\n"
                 "raise E()"),
            "exited E: ");
}

TEST(HostileError, AnAllocationThatFailedIsTheHeapsLimitWhereverItHappens) {
  for (const std::string_view body :
       {"x = 'x' * 100000000", "x = bytearray(1 << 28)", "x = [0] * 50000000",
        "try:\n    x = 'x' * 100000000\nexcept MemoryError as e:\n    raise e",
        "class E(Exception):\n    def __str__(self):\n        return 1\n"
        "def f():\n    return 'x' * 100000000\nf()"}) {
    const Outcome outcome = Call(Body(body));
    EXPECT_EQ(outcome.fault, Fault::kMemory) << Show(outcome);
    EXPECT_EQ(outcome.memory, MemoryKind::kHeap) << body;
  }
}

TEST(HostileError, AnErrorAfterACaughtAllocationFailureKeepsItsOwnKind) {
  const std::string caught = "try:\n    x = 'x' * 100000000\nexcept MemoryError:\n    pass\n";
  EXPECT_EQ(Eval(caught + "raise ValueError('v')"), "raised ValueError: v");
  EXPECT_EQ(Eval(caught + "raise SystemExit(2)"), "exited SystemExit: 2");
  EXPECT_EQ(Eval(caught + "return {'a': 1}"), R"({"a":1})");
}

// The compiler's own limit: src/workflow/block_size.h counts on these numbers.
TEST(HostileError, ABlockThatNoJumpCrossesIsASyntaxFaultThatNamesTheLimit) {
  const auto loop = [](int count) {
    std::string lines = "x = 0\nwhile x:";
    for (int i = 0; i < count; ++i) lines += "\n    x = 1";
    return Call(Body(lines + "\nreturn {}"));
  };
  EXPECT_TRUE(loop(8190).ok());
  const Outcome outcome = loop(8200);
  EXPECT_EQ(outcome.fault, Fault::kSyntax) << Show(outcome);
  EXPECT_NE(outcome.message.find("16,384 bytes"), std::string::npos) << outcome.message;
}

// ---- one call and the next

TEST(HostileState, NoFailureOfOneCallColoursTheNext) {
  EXPECT_EQ(Call(Body("x = 'x' * 100000000")).fault, Fault::kMemory);
  EXPECT_EQ(Eval("raise MemoryError('fake')"), "raised MemoryError: fake");
}

// With the whole memory in reach, as a body would have it that broke its interpreter.
TEST(HostileState, NoByteOfOneCallIsInTheMemoryOfTheNext) {
  const auto open = [](std::string_view lines) {
    Limits limits;
    limits.fuel = 0;
    return Show(CallOn(OpenExecutor(), Body(lines), R"({"state":{"half":"left-by-"}})", limits));
  };
  // Never joins the halves itself.
  const std::string look =
      "import uctypes\n"
      "memory = uctypes.bytearray_at(0, 8 << 20)\n"
      "half = state['half'].encode()\n"
      "found = False\n"
      "at = memory.find(half)\n"
      "while at >= 0:\n"
      "    found = found or memory[at + 8:at + 23] == b'an-earlier-call'\n"
      "    at = memory.find(half, at + 1)\n"
      "return {'there': found}";
  const std::string leave =
      "l = []\nfor i in range(3000):\n    l.append(state['half'] + 'an-earlier-call' * 40)\n";
  EXPECT_EQ(open(leave + look), R"({"there":true})");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(open(look), R"({"there":false})");
  }
}

}  // namespace
}  // namespace caisson::isolate
