// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "isolate/micropython/test_runtime.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

using std::chrono::milliseconds;

std::string Body(std::string_view lines) {
  std::string source = "def run(self, state, config):\n";
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    source += "    ";
    source += line;
    source += "\n";
  }
  return source;
}

std::string Eval(std::string_view lines, std::string_view payload = "{}") {
  return Show(Call(Body(lines), payload));
}

TEST(MicroPython, RunsABodyOnItsStateConfigAndFields) {
  EXPECT_EQ(Eval("return {'sum': state['a'] + config['b'] + self.c, 'list': [1, 2.5, None, True]}",
                 R"({"self":{"c":3},"state":{"a":1},"config":{"b":2}})"),
            R"({"list":[1,2.5,null,true],"sum":6})");
}

TEST(MicroPython, AFieldThatWasNotInjectedIsAnAttributeError) {
  EXPECT_EQ(Eval("return {'x': self.missing}", R"({"self":{"c":3}})"),
            "raised AttributeError: 'CodeNode' object has no attribute 'missing'");
}

TEST(MicroPython, AsyncRunIsDrivenToItsEnd) {
  EXPECT_EQ(Show(Call("async def run(self, state, config):\n    return {'a': state['x']}\n",
                      R"({"state":{"x":[1]}})")),
            R"({"a":[1]})");
}

TEST(MicroPython, TheHarnessIsOutOfReach) {
  for (
      const std::string_view name :
      {"load",    "call",   "host",    "gc",    "sys",      "io",     "guarded",         "report",
       "exec",    "eval",   "compile", "open",  "globals",  "locals", "getattr",         "setattr",
       "delattr", "dir",    "help",    "input", "execfile", "print",  "__build_class__", "builtins",
       "LOST",    "execute"}) {
    EXPECT_EQ(Eval("return {'x': " + std::string(name) + "}"),
              "raised NameError: name '" + std::string(name) + "' isn't defined");
  }
  for (const std::string_view module : {"host", "gc", "sys", "os", "io", "micropython", "uctypes",
                                        "machine", "builtins", "json", "math", "__main__"}) {
    EXPECT_EQ(Eval("import " + std::string(module) + "\nreturn {}"),
              "raised ImportError: no module named '" + std::string(module) +
                  "': code bodies cannot import");
  }
}

TEST(MicroPython, ClassesNestedFunctionsAndExceptionsStillWork) {
  EXPECT_EQ(Eval("class P:\n"
                 "    def __init__(self, x):\n"
                 "        self.x = x\n"
                 "    def __str__(self):\n"
                 "        return 'P%d' % self.x\n"
                 "def f(n):\n"
                 "    return [str(P(i)) for i in range(n)]\n"
                 "try:\n"
                 "    1 // 0\n"
                 "except ZeroDivisionError as e:\n"
                 "    z = str(e)\n"
                 "return {'f': f(2), 'z': z}"),
            R"({"f":["P0","P1"],"z":"divide by zero"})");
}

TEST(MicroPython, NothingOfOneCallIsSeenByAnother) {
  const std::string source =
      "seen = []\n"
      "def run(self, state, config):\n"
      "    seen.append(state['n'])\n"
      "    type(self).leak = state['n']\n"
      "    return {'seen': seen}\n";
  EXPECT_EQ(Show(Call(source, R"({"state":{"n":1}})")), R"({"seen":[1]})");
  EXPECT_EQ(Show(Call(source, R"({"state":{"n":2}})")), R"({"seen":[2]})");
  EXPECT_EQ(Eval("return {'x': hasattr(self, 'leak')}"), R"({"x":false})");
}

TEST(MicroPython, TheFirstCallAndLaterOnesGiveTheSame) {
  const std::string source =
      Body("# unique to this test\nreturn {'n': state['n'] * 2, 'big': 1 << 80}");
  const Outcome first = Call(source, R"({"state":{"n":21}})");
  const Outcome second = Call(source, R"({"state":{"n":21}})");
  EXPECT_EQ(Show(first), R"({"big":1208925819614629174706176,"n":42})");
  EXPECT_EQ(Show(second), Show(first));
  EXPECT_EQ(second.usage.fuel, first.usage.fuel);
  EXPECT_GT(first.usage.fuel, 0u);
}

// ---- what goes in

TEST(MicroPython, EveryJsonValueArrivesAndComesBackAsItWas) {
  const std::string payload =
      R"({"state":{"v":[null,true,false,0,-1,1073741823,1073741824,-1073741824,-1073741825,)"
      R"(9223372036854775807,-9223372036854775808,123456789012345678901234567890,)"
      R"(-99999999999999999999,0.5,-0.0,1e300,5e-324,1.0,"","a","caf\u00e9","\ud83d\ude00 \u0000\n\"\\",)"
      R"([],{},[[[]]],{"a":{"b":{"c":[1]}}},{"":1,"\u00e9":2}]}})";
  const std::string answer = Eval("return {'v': state['v']}", payload);
  const json::Value sent = *json::Read(payload);
  EXPECT_EQ(answer, *json::WriteCanonical(*sent.Find("state")));
}

TEST(MicroPython, TheGuestComputesWithWhatArrived) {
  EXPECT_EQ(
      Eval(
          "v = state['v']\n"
          "return {'a': v[0] + 1, 'b': v[1] // 10, 'c': v[2] * 2, 'd': len(v[3]), 'e': v[3] + "
          "'!',\n"
          "        'f': v[4]['k'], 'g': sorted(v[4].keys()), 'h': v[4].get('zz'), 'i': v[5] % 7,\n"
          "        'j': v[1] == 123456789012345678901234567890, 'k': v[3] == "
          "'caf\\u00e9\\U0001f600',\n"
          "        'l': {v[3]: 1}.get('caf\\u00e9\\U0001f600'), 'm': v[0] is None}",
          R"({"state":{"v":[1073741823,123456789012345678901234567890,0.25,"caf\u00e9\ud83d\ude00",)"
          R"({"k":1,"l":2,"m":3},-100]}})"),
      R"({"a":1073741824,"b":12345678901234567890123456789,"c":0.5,"d":5,"e":"café😀!","f":1,)"
      R"("g":["k","l","m"],"h":null,"i":5,"j":true,"k":true,"l":1,"m":false})");
}

TEST(MicroPython, ListsAndDictsThatArrivedCanBeChanged) {
  EXPECT_EQ(
      Eval("l = state['l']\nd = state['d']\n"
           "for i in range(100):\n    l.append(i)\n    d['k%d' % i] = i\n"
           "l.sort()\ndel d['a']\nd['b'] += 1\n"
           "s = state['e']\ns.append(1)\n"
           "return {'l': len(l), 'd': len(d), 'b': d['b'], 'k99': d['k99'], 'e': s, 'a': 'a' in d}",
           R"({"state":{"l":[5,4,3],"d":{"a":1,"b":2},"e":[]}})"),
      R"({"a":false,"b":3,"d":101,"e":[1],"k99":99,"l":103})");
}

TEST(MicroPython, ManyKeysAllArrive) {
  std::string payload = R"({"state":{"d":{)";
  for (int i = 0; i < 20000; ++i) {
    payload += (i == 0 ? "\"key" : ",\"key") + std::to_string(i) + "\":" + std::to_string(i);
  }
  payload += "}}}";
  EXPECT_EQ(
      Eval("d = state['d']\n"
           "bad = 0\n"
           "for i in range(0, 20000, 7):\n    if d['key%d' % i] != i:\n        bad += 1\n"
           "return {'n': len(d), 'bad': bad, 'sum': sum(d.values()), 'no': d.get('key20000')}",
           payload),
      R"({"bad":0,"n":20000,"no":null,"sum":199990000})");
}

TEST(MicroPython, InputSurvivesCollections) {
  std::string payload = R"({"state":{"rows":[)";
  for (int i = 0; i < 2000; ++i) {
    payload += (i == 0 ? "" : ",") + ("{\"id\":" + std::to_string(i)) + ",\"name\":\"row " +
               std::to_string(i) + "\",\"w\":" + std::to_string(i) +
               ".5,\"big\":" + std::to_string(5'000'000'000 + i) + "}";
  }
  payload += "]}}";
  // About 25 MB of garbage through a heap of 8 MiB.
  Limits limits;
  limits.fuel = 0;
  EXPECT_EQ(
      Show(Call(
          Body("for k in range(50):\n"
               "    junk = [str(i) * 10 for i in range(5000)]\n"
               "bad = 0\n"
               "for i in range(2000):\n"
               "    r = state['rows'][i]\n"
               "    if r['id'] != i or r['name'] != 'row %d' % i or r['w'] != i + 0.5 or r['big'] "
               "!= 5000000000 + i:\n"
               "        bad += 1\n"
               "return {'bad': bad, 'rows': len(state['rows'])}"),
          payload, limits)),
      R"({"bad":0,"rows":2000})");
}

TEST(MicroPython, InputThatDoesNotFitTheHeapIsAHeapFault) {
  Limits limits;
  limits.heap_bytes = 1u << 20;
  const std::string payload = R"({"state":{"t":")" + std::string(2u << 20, 'x') + "\"}}";
  const Outcome outcome = Call(Body("return {}"), payload, limits);
  EXPECT_EQ(outcome.fault, Fault::kMemory);
  EXPECT_EQ(outcome.memory, MemoryKind::kHeap);
}

// ---- what comes out

TEST(MicroPython, TuplesBytesAndOddKeysBecomeJson) {
  EXPECT_EQ(Eval("return {'t': (1, (2,), ()), 'b': b'raw', 1: 'int', None: 'none', 2.5: 'float', "
                 "True: 'x'}"),
            R"({"1":"x","2.5":"float","b":"raw","null":"none","t":[1,[2],[]]})");
}

TEST(MicroPython, ClassesThatExtendDictListAndStrCountAsThese) {
  EXPECT_EQ(Eval("class D(dict):\n    pass\nclass L(list):\n    pass\nclass M(L):\n    pass\n"
                 "class S(str):\n    pass\n"
                 "d = D()\nd['a'] = L([1, 2])\nd['b'] = M([3])\nd['s'] = S('x')\nreturn d"),
            R"({"a":[1,2],"b":[3],"s":"x"})");
}

TEST(MicroPython, WhatIsNotJsonIsNamedWithItsPath) {
  const std::string what =
      "only dict, list, tuple, str, bytes, int, float, bool and None can be returned";
  const auto refused = [&](std::string_view path, std::string_view type) {
    return "protocol: the result cannot be written as JSON: " + std::string(path) + " is a " +
           std::string(type) + "; " + what;
  };
  EXPECT_EQ(Eval("return {'a': [1, {2, 3}]}"), refused("$.a[1]", "set"));
  EXPECT_EQ(Eval("return {'a': frozenset([1])}"), refused("$.a", "frozenset"));
  EXPECT_EQ(Eval("return {'a': bytearray(2)}"), refused("$.a", "bytearray"));
  EXPECT_EQ(Eval("return {'a': range(3)}"), refused("$.a", "range"));
  EXPECT_EQ(Eval("return {'a': (x for x in [1])}"), refused("$.a", "generator"));
  EXPECT_EQ(Eval("return {'a': len}"), refused("$.a", "function"));
  EXPECT_EQ(Eval("return {'a': int}"), refused("$.a", "type"));
  EXPECT_EQ(Eval("return {'a': 1j}"), refused("$.a", "complex"));
  EXPECT_EQ(Eval("return {'a': {'b': self}}"), refused("$.a.b", "CodeNode"));
  EXPECT_EQ(
      Eval(
          "class K:\n    def __repr__(self):\n        return '{\"forged\": 1}'\nreturn {'a': K()}"),
      refused("$.a", "K"));
  EXPECT_EQ(Eval("return {'a': ValueError('x')}"), refused("$.a", "ValueError"));
  EXPECT_EQ(Eval("return {'a': {}.keys()}"), refused("$.a", "dict_view"));
}

TEST(MicroPython, NumbersAndTextThatJsonDoesNotHaveAreRefused) {
  EXPECT_EQ(Eval("return {'a': float('nan')}"),
            "protocol: the result cannot be written as JSON: $.a is not a number (nan), which JSON "
            "does not have");
  EXPECT_EQ(Eval("return {'a': [1e308 * 10]}"),
            "protocol: the result cannot be written as JSON: $.a[0] is infinite (inf), which JSON "
            "does not have");
  EXPECT_EQ(Eval("return {'a': chr(0xd800)}"),
            "protocol: the result cannot be written as JSON: $.a is text that is no valid Unicode "
            "(a lone surrogate, or bytes that are no UTF-8)");
  EXPECT_EQ(Eval("return {'a': b'\\xff'}"),
            "protocol: the result cannot be written as JSON: $.a is text that is no valid Unicode "
            "(a lone surrogate, or bytes that are no UTF-8)");
  EXPECT_EQ(
      Eval("return {'a': 10 ** 4300}"),
      "protocol: the result cannot be written as JSON: $.a is an int of more than 4300 digits");
  EXPECT_EQ(Call(Body("return {'a': 10 ** 4299}")).fault, Fault::kNone);
  EXPECT_EQ(Call(Body("return {'a': 1 << 1000000}")).fault, Fault::kProtocol);
}

TEST(MicroPython, CyclesAndDepthAreRefused) {
  const Outcome cycle = Call(Body("d = {}\nd['d'] = d\nreturn d"));
  EXPECT_EQ(cycle.fault, Fault::kProtocol);
  EXPECT_NE(cycle.message.find("contains itself"), std::string::npos) << cycle.message;
  const std::string deep = "l = []\nfor i in range(config['n']):\n    l = [l]\nreturn {'l': l}";
  EXPECT_EQ(Call(Body(deep), R"({"config":{"n":500}})").fault, Fault::kNone);
  EXPECT_EQ(Call(Body(deep), R"({"config":{"n":998}})").fault, Fault::kNone);
  const Outcome outcome = Call(Body(deep), R"({"config":{"n":999}})");
  EXPECT_EQ(outcome.fault, Fault::kProtocol);
  EXPECT_NE(outcome.message.find("nested more than 1000"), std::string::npos) << outcome.message;
}

TEST(MicroPython, AResultThatIsNoDictIsAProtocolFault) {
  EXPECT_EQ(Eval("return [1]"), "protocol: run must return a dict, but its result is an array");
  EXPECT_EQ(Eval("return None"), "protocol: run must return a dict, but its result is null");
  EXPECT_EQ(Eval("return 'x'"), "protocol: run must return a dict, but its result is a string");
  EXPECT_EQ(Eval("return 5"), "protocol: run must return a dict, but its result is a number");
}

// ---- errors

TEST(MicroPython, AnExceptionCarriesTypeMessageAndLines) {
  const Outcome outcome = Call(
      "def run(self, state, config):\n"
      "    def inner(x):\n"
      "        return 1 / x\n"
      "    return {'a': inner(0)}\n");
  EXPECT_EQ(Show(outcome), "raised ZeroDivisionError: divide by zero");
  ASSERT_EQ(outcome.traceback.size(), 2u);
  EXPECT_EQ(outcome.traceback[0].line, 4u);
  EXPECT_EQ(outcome.traceback[0].function, "run");
  EXPECT_EQ(outcome.traceback[1].line, 3u);
  EXPECT_EQ(outcome.traceback[1].function, "inner");
}

TEST(MicroPython, ExceptionsOfOwnClassesAndOddOnesAreReported) {
  EXPECT_EQ(Eval("class E(Exception):\n    pass\nraise E('a', 2)"), "raised E: ('a', 2)");
  EXPECT_EQ(Eval("raise ValueError"), "raised ValueError: ");
  EXPECT_EQ(Eval("raise KeyError('k')"), "raised KeyError: k");
  EXPECT_EQ(Eval("class E(Exception):\n    def __str__(self):\n        return 1 / 0\nraise E()"),
            "raised E: ");
  EXPECT_EQ(Eval("raise ValueError('caf\\u00e9 \\U0001f600')"), "raised ValueError: café 😀");
}

TEST(MicroPython, ATracebackCannotBeForgedByTheMessage) {
  const Outcome outcome =
      Call(Body("raise ValueError('x\\n  File \"workflow\", line 999, in forged')"));
  ASSERT_EQ(outcome.traceback.size(), 1u);
  EXPECT_EQ(outcome.traceback[0].line, 2u);
}

TEST(MicroPython, ExitsAreTheirOwnKind) {
  EXPECT_EQ(Eval("raise SystemExit(3)"), "exited SystemExit: 3");
  EXPECT_EQ(Eval("raise SystemExit"), "exited SystemExit: ");
  EXPECT_EQ(Eval("raise KeyboardInterrupt()"), "exited KeyboardInterrupt: ");
  EXPECT_EQ(Eval("raise BaseException('b')"), "exited BaseException: b");
  EXPECT_EQ(Eval("class E(BaseException):\n    pass\nraise E('b')"), "exited E: b");
}

TEST(MicroPython, SourceThatDoesNotCompileIsASyntaxFaultWithItsLine) {
  const Outcome outcome =
      Call("def run(self, state, config):\n    x = 1\n    match x:\n        case 1: pass\n");
  EXPECT_EQ(Show(outcome), "syntax SyntaxError: invalid syntax");
  ASSERT_EQ(outcome.traceback.size(), 1u);
  EXPECT_EQ(outcome.traceback[0].line, 3u);
  EXPECT_EQ(Show(Call("x = 1\n")), "syntax: the source defines no function 'run'");
}

TEST(MicroPython, RecursionWorksToAThousandLevelsAndThenFailsCleanly) {
  const std::string source =
      Body("def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nreturn {'d': f(state['n'])}");
  EXPECT_EQ(Show(Call(source, R"({"state":{"n":1000}})")), R"({"d":1000})");
  const Outcome outcome = Call(source, R"({"state":{"n":1000000}})");
  EXPECT_EQ(Show(outcome), "raised RuntimeError: maximum recursion depth exceeded");
  EXPECT_FALSE(outcome.traceback.empty());
  EXPECT_LE(outcome.traceback.size(), 50u);
}

TEST(MicroPython, RecursionThroughLambdasMethodsAndBuiltinsFailsCleanly) {
  const std::vector<std::string> bodies = {
      "class A:\n    def __init__(self):\n        A()\nA()\nreturn {}",
      "class A:\n    def __str__(self):\n        return str(self)\nreturn {'a': str(A())}",
      "class A:\n    def __getattr__(self, n):\n        return self.x\nreturn {'a': A().y}",
      "class A:\n    def __eq__(self, o):\n        return self == o\nreturn {'a': A() == A()}",
      "def f(x):\n    return sorted([2, 1], key=f)\nreturn {'a': f(1)}",
      "def f(x):\n    return list(map(f, [1]))\nreturn {'a': f(1)}",
      "f = lambda g: g(g)\nreturn {'a': f(f)}",
      "def g():\n    yield from g()\nreturn {'a': list(g())}",
      "l = []\nl.append(l)\nreturn {'a': str(l)}",
      "l = []\nfor i in range(100000):\n    l = [l]\nreturn {'a': str(l)}",
      "l = []\nm = []\nfor i in range(100000):\n    l = [l]\n    m = [m]\nreturn {'a': l == m}",
      "t = ()\nfor i in range(100000):\n    t = (t,)\nreturn {'a': hash(t)}",
  };
  for (const std::string& body : bodies) {
    EXPECT_EQ(Eval(body), "raised RuntimeError: maximum recursion depth exceeded") << body;
  }
}

TEST(MicroPython, ABodyCanCatchTheEndOfItsRecursion) {
  for (const std::string_view function :
       {"def f():\n    f()\n", "class A:\n    def f(self):\n        A().f()\nf = A().f\n",
        "l = []\nfor i in range(100000):\n    l = [l]\ndef f():\n    str(l)\n"}) {
    EXPECT_EQ(Eval(std::string(function) +
                   "try:\n    f()\nexcept RuntimeError as e:\n    return {'e': str(e)}\nreturn {}"),
              R"({"e":"maximum recursion depth exceeded"})");
  }
}

TEST(MicroPython, AMillionHandledExceptionsAreNoProblem) {
  Limits limits;
  limits.fuel = 0;
  EXPECT_EQ(Show(Call(Body("n = 0\n"
                           "for i in range(200000):\n"
                           "    try:\n"
                           "        raise ValueError(i)\n"
                           "    except ValueError:\n"
                           "        n += 1\n"
                           "return {'n': n}"),
                      "{}", limits)),
            R"({"n":200000})");
}

// ---- limits

TEST(MicroPython, FuelEndsAnEndlessLoop) {
  Limits limits;
  limits.fuel = 10'000'000;
  const Outcome outcome = Call(Body("while True:\n    pass"), "{}", limits);
  EXPECT_EQ(Show(outcome), "fuel: the code used up its fuel of 10000000");
  EXPECT_EQ(outcome.usage.fuel, limits.fuel);
}

TEST(MicroPython, TheDeadlineEndsAnEndlessLoopWithoutFuel) {
  Limits limits;
  limits.fuel = 0;
  limits.wall_clock = milliseconds(50);
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = Call(Body("while True:\n    pass"), "{}", limits);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(Show(outcome), "wall_clock: the code ran longer than its limit of 50 ms");
  EXPECT_GE(took, milliseconds(50));
  EXPECT_LT(took, milliseconds(2000));
}

TEST(MicroPython, TheLongestTimeLimitIsNoTrap) {
  Limits limits;
  limits.wall_clock = milliseconds::max();
  EXPECT_EQ(Show(Call(Body("return {'a': 1}"), "{}", limits)), R"({"a":1})");
}

TEST(MicroPython, AnExceptBlockCannotCatchALimit) {
  Limits limits;
  limits.fuel = 10'000'000;
  EXPECT_EQ(Call(Body("while True:\n    try:\n        while True:\n            pass\n"
                      "    except BaseException:\n        pass"),
                 "{}", limits)
                .fault,
            Fault::kFuel);
}

TEST(MicroPython, HeapExhaustionIsAMemoryFaultOfTheHeap) {
  Limits limits;
  limits.fuel = 0;  // a heap that is nearly full spends much on collections
  for (const std::string_view body :
       {"l = []\nwhile True:\n    l.append('x' * 1000 + str(len(l)))",
        "return {'a': len('x' * 100000000)}", "d = {}\nwhile True:\n    d[len(d)] = [len(d)]",
        "x = [0]\nwhile True:\n    x = [x, 1.5]"}) {
    const Outcome outcome = Call(Body(body), "{}", limits);
    EXPECT_EQ(outcome.fault, Fault::kMemory) << Show(outcome);
    EXPECT_EQ(outcome.memory, MemoryKind::kHeap);
    EXPECT_EQ(outcome.error_type, "MemoryError") << Show(outcome);
  }
}

TEST(MicroPython, RunningOutOfFuelInAFullHeapIsAMemoryFaultOfTheHeap) {
  const Outcome outcome = Call(Body("x = [0]\nwhile True:\n    x = [x, 1.5]"));
  EXPECT_EQ(outcome.fault, Fault::kMemory) << Show(outcome);
  EXPECT_EQ(outcome.memory, MemoryKind::kHeap);
  EXPECT_NE(outcome.message.find("nearly full"), std::string::npos) << outcome.message;
}

TEST(MicroPython, TwoKeysWithTheSameJsonNameAreAFault) {
  for (const std::string_view body : {"return {1: 2, '1': 3}", "return {'d': {b'a': 2, 'a': 3}}"}) {
    EXPECT_EQ(Call(Body(body)).fault, Fault::kProtocol) << body;
  }
}

TEST(MicroPython, WhatIsPrintedIsKeptToALimitAndTheRestIsCounted) {
  Limits limits;
  limits.stdout_bytes = 10;
  const Outcome outcome =
      CallOn(OpenExecutor(), Body("print('hello')\nprint('x' * 100)\nreturn {}"), "{}", limits);
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.stdout_text, "hello\nxxxx");
  EXPECT_EQ(outcome.stdout_dropped, 97u);
}

TEST(MicroPython, AGuestThatCallsTheHostOrExitsIsAnArtifactFault) {
  EXPECT_EQ(
      CallOn(OpenExecutor(), Body("import host\nhost.call('r', '{}')\nreturn {}"), "{}").fault,
      Fault::kArtifact);
  EXPECT_EQ(Show(CallOn(OpenExecutor(),
                        Body("import machine\nmachine.mem32[0x10740] = 0\n"
                             "x = [1, 2, 3] * 1000\nreturn {'x': x}"),
                        "{}"))
                .empty(),
            false);
  EXPECT_EQ(Eval("return {'a': 1}"), R"({"a":1})");
}

TEST(MicroPython, AMessageThatIsNoUnicodeIsMadeValid) {
  const Outcome outcome = Call(Body("raise ValueError('a' + chr(0xd800) + 'b')"));
  EXPECT_EQ(outcome.message, "a\uFFFD\uFFFD\uFFFDb");
}

TEST(MicroPython, AMemoryErrorThatIsCaughtIsTheBodysOwnAffair) {
  EXPECT_EQ(Eval("try:\n    x = bytearray(1 << 28)\nexcept MemoryError:\n    return {'caught': "
                 "True}\nreturn {}"),
            R"({"caught":true})");
}

TEST(MicroPython, ALinearMemoryLimitBelowTheInterpretersOwnIsToldApart) {
  Limits limits;
  limits.memory_bytes = 4u << 20;
  const Outcome outcome = Call(Body("return {}"), "{}", limits);
  EXPECT_EQ(outcome.fault, Fault::kMemory);
  EXPECT_EQ(outcome.memory, MemoryKind::kLinear);
}

TEST(MicroPython, OutputIsLimitedWhileItIsProduced) {
  Limits limits;
  limits.output_bytes = 1000;
  EXPECT_EQ(Show(Call(Body("return {'a': 'x' * 2000}"), "{}", limits)),
            "output: the result is larger than its limit of 1000 bytes");
  // A few shared lists that would print as 4^20 items.
  EXPECT_EQ(Call(Body("l = [1]\nfor i in range(20):\n    l = [l, l, l, l]\nreturn {'l': l}"), "{}",
                 limits)
                .fault,
            Fault::kOutput);
  EXPECT_EQ(Call(Body("return {'a': 'x' * 900}"), "{}", limits).fault, Fault::kNone);
}

TEST(MicroPython, AHeapThatWasNotPreparedIsRefused) {
  EncodedJob job{Body("return {}"), "{}", {}};
  job.limits.heap_bytes = 5u << 20;
  const Result<EncodedOutcome> result = TestExecutor().Execute(job);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code.name, "isolate.heap_not_prepared");
}

TEST(MicroPython, AfterEveryLimitTheNextCallIsRight) {
  Limits tight;
  tight.fuel = 1'000'000;
  for (const std::string_view body : {"while True:\n    pass", "raise SystemExit(1)", "return {1}",
                                      "x = []\nwhile True:\n    x.append(x)"}) {
    EXPECT_FALSE(Call(Body(body), "{}", tight).ok());
    EXPECT_EQ(Eval("return {'a': 1}"), R"({"a":1})");
  }
}

TEST(MicroPython, ManyThreadsShareOneExecutor) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(12, 0);
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 100; ++i) {
        const std::string n = std::to_string(t * 1000 + i);
        const std::string source = Body("return {'n': state['n'] + " + std::to_string(i % 5) + "}");
        const Outcome outcome = Call(source, R"({"state":{"n":)" + n + "}}");
        const json::Value* value = outcome.ok() ? outcome.value.Find("n") : nullptr;
        if (value == nullptr || value->as_int() != t * 1000 + i + i % 5)
          ++wrong[static_cast<std::size_t>(t)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(12, 0));
}

TEST(MicroPython, DescribesItselfCompletely) {
  const json::Value description = TestExecutor().Describe();
  EXPECT_EQ(description.Find("artifact")->Find("sha256")->as_string().size(), 64u);
  EXPECT_EQ(description.Find("engine")->Find("version")->as_string(), "50.0.1");
  EXPECT_EQ(description.Find("builtins")->Find("count")->as_int(), 78);
}

TEST(MicroPython, HeapsThatCannotBeAreRefused) {
  for (const std::uint64_t heap : {std::uint64_t{1000}, std::uint64_t{255} << 20}) {
    MicroPythonOptions options;
    options.heap_sizes = {heap};
    const auto executor = MicroPythonExecutor::Create(options);
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().code.name, "wasm.limit_too_low");
  }
}

TEST(MicroPython, AnArtifactOfOtherBytesIsRefused) {
  MicroPythonOptions options;
  options.artifact = CAISSON_SOURCE_DIR "/LICENSE";
  const auto executor = MicroPythonExecutor::Create(options);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code.name, "wasm.artifact");
}

}  // namespace
}  // namespace caisson::isolate
