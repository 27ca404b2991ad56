// SPDX-License-Identifier: Apache-2.0
// The runtime on the real artifact, in this process and in jailed workers. Skipped by name where
// the artifact is not fetched (tools/fetch_deps.py --with cpython). The first run prepares the
// cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "isolate/cpython/executor.h"
#include "isolate/cpython/prepare.h"
#include "isolate/cpython/seal.h"
#include "isolate/large_stack.h"
#include "isolate/script_code_runtime.h"
#include "isolate/worker/script_worker.h"
#include "json/reader.h"
#include "wasm/module_cache.h"

namespace caisson::isolate {
namespace {

using cpython::CPythonExecutor;
using cpython::CPythonOptions;
using std::chrono::milliseconds;

constexpr const char* kNoInputs =
    R"({"user":{},"documents":[],"artifacts":[],"sources":[],"tables":{}})";

CPythonOptions TestOptions() {
  CPythonOptions options;
  options.sets = {"base", "pandas"};
  options.tenant = "local";  // as the command, so that what it has prepared serves here
  options.verify_resets = true;
  return options;
}

class Recorder final : public ScriptSink {
 public:
  bool Take(const ScriptMessage& message) override {
    std::string& text = message.kind == MessageKind::kStdout   ? out
                        : message.kind == MessageKind::kStderr ? err
                                                               : results.emplace_back();
    text += message.text;
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    return results.size() < most;
  }
  std::vector<std::string> results;
  std::string out;
  std::string err;
  std::size_t most = SIZE_MAX;
  milliseconds pause{0};
};

struct Ran {
  ScriptOutcome outcome;
  Recorder sink;
};

ScriptJob Block(std::string source, std::vector<std::string> imports = {}) {
  ScriptJob job;
  job.source = std::move(source);
  job.inputs = kNoInputs;
  job.imports = std::move(imports);
  job.limits.wall_clock = milliseconds(60'000);
  return job;
}

class CPythonTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cpython::HasArtifact(TestOptions())) return;
    const auto prepared = cpython::Prepare(TestOptions(), [](const auto&) {}, {});
    ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
    auto executor = CPythonExecutor::Create(TestOptions());
    ASSERT_TRUE(executor.has_value()) << executor.error().message;
    executor_ = executor->release();
  }
  static void TearDownTestSuite() {
    delete executor_;
    executor_ = nullptr;
  }
  void SetUp() override {
    if (executor_ == nullptr) GTEST_SKIP() << "the CPython artifact is not fetched";
  }

  static void RunWith(
      const ScriptJob& job, Ran& ran,
      const std::function<bool()>& cancelled = [] { return false; }) {
    std::optional<Result<ScriptOutcome>> outcome;
    ASSERT_TRUE(OnLargeStack(executor_->stack_bytes(), [&] {
                  outcome.emplace(executor_->Execute(job, ran.sink, cancelled));
                  executor_->Recover();
                }).has_value());
    ASSERT_TRUE(outcome->has_value()) << outcome->error().message;
    ran.outcome = **std::move(outcome);
  }
  static Ran Run(const ScriptJob& job) {
    Ran ran;
    RunWith(job, ran);
    return ran;
  }
  // What the script gives to `done`.
  static std::string Value(const std::string& source, std::vector<std::string> imports = {}) {
    const Ran ran = Run(Block(source, std::move(imports)));
    EXPECT_TRUE(ran.outcome.ok()) << ran.outcome.error_type << ": " << ran.outcome.message
                                  << ran.outcome.traceback_text;
    return ran.sink.results.empty() ? "" : ran.sink.results.back();
  }

  static CPythonExecutor* executor_;
};
CPythonExecutor* CPythonTest::executor_ = nullptr;

TEST_F(CPythonTest, GivesResultsStreamsAndTheEnd) {
  const Ran ran =
      Run(Block("import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
                "debug({'n': 1})\ndone([1, 2.5, None])\n"));
  EXPECT_TRUE(ran.outcome.ok()) << ran.outcome.message;
  ASSERT_EQ(ran.sink.results.size(), 2u);
  EXPECT_EQ(ran.sink.results[0], R"({"n":1})");
  EXPECT_EQ(ran.sink.results[1], "[1,2.5,null]");
  EXPECT_EQ(ran.sink.out, "out\n");
  EXPECT_EQ(ran.sink.err, "err\n");
}

TEST_F(CPythonTest, ShowsNoSourceOfTheTemplateInTracebacks) {
  const Ran ran =
      Run(Block("class D: __del__ = lambda s: {}['secret']\nD()\n"
                "import linecache, traceback\n"
                "try: {}['other']\nexcept KeyError: traceback.print_exc()\n"
                "done([n for n in linecache.cache if not n.startswith('/')])\n"));
  ASSERT_EQ(ran.sink.results.size(), 1u) << ran.outcome.message;
  EXPECT_NE(ran.sink.err.find("'secret'"), std::string::npos);
  EXPECT_NE(ran.sink.err.find("'other'"), std::string::npos);
  EXPECT_EQ(ran.sink.err.find("1 / 0"), std::string::npos) << ran.sink.err;
  EXPECT_EQ(ran.sink.results[0], "[]");
}

TEST_F(CPythonTest, TellsErrorsWithTheirPlace) {
  Ran ran = Run(Block("x = 1\ndef f():\n    return 1 / 0\nf()\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kRaised);
  EXPECT_EQ(ran.outcome.error_type, "ZeroDivisionError");
  EXPECT_EQ(ran.outcome.line, 3u);
  ASSERT_EQ(ran.outcome.traceback.size(), 2u);
  EXPECT_EQ(ran.outcome.traceback[0].line, 4u);
  EXPECT_EQ(ran.outcome.traceback[1].function, "f");
  ran = Run(Block("x = = 1\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kSyntax);
  EXPECT_EQ(ran.outcome.line, 1u);
  ran = Run(Block("import sys\nsys.exit(3)\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kExited);
  EXPECT_EQ(ran.outcome.exit_code, 3);
  ran = Run(Block("import os\nos._exit(4)\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kExited);
  EXPECT_EQ(ran.outcome.exit_code, 4);
}

TEST_F(CPythonTest, NothingOfOneRunIsSeenByTheNext) {
  // Twice, so that the second look is into a memory that was copied back.
  const std::string leave =
      "import builtins, os, sys, random, json, pandas as pd\n"
      "builtins.leaked = json.leaked = pd.leaked = sys.leaked = 1\n"
      "os.environ['LEAKED'] = '1'\nopen('/tmp/leaked', 'w').write('x')\n"
      "open('/workspace/leaked', 'w').write('x')\nos.chdir('/tmp')\n"
      "import __main__\ncaisson_host = sys.modules['caisson_host']\n__main__.leaked = "
      "caisson_host.leaked = 1\n"
      "json.dumps = None\nleaked = 1\ndone('left')\n";
  const std::string look =
      "import builtins, os, sys, json, pandas as pd\nimport __main__\ncaisson_host = "
      "sys.modules['caisson_host']\n"
      "done([any(hasattr(m, 'leaked') for m in (builtins, json, pd, sys, __main__, caisson_host)),"
      " 'LEAKED' in os.environ, os.listdir('/tmp'), os.listdir('/workspace'), os.getcwd(),"
      " json.dumps is None, 'leaked' in globals()])\n";
  const std::string clean = R"([false,false,[],[],"/workspace",false,false])";
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Value(look, {"pandas"}), clean);
    EXPECT_EQ(Value(leave, {"pandas"}), R"("left")");
  }
  EXPECT_EQ(Value(look, {"pandas"}), clean);
  EXPECT_GT(executor_->SlotsOf("pandas").verified, 5u);
}

TEST_F(CPythonTest, RandomnessDiffersBetweenCopies) {
  const std::string source =
      "import random, os, uuid, numpy\n"
      "done([random.random(), numpy.random.random(), os.urandom(8).hex(), str(uuid.uuid4()),"
      " numpy.random.default_rng().random()])\n";
  const auto first = json::Read(Value(source, {"pandas"}));
  const auto second = json::Read(Value(source, {"pandas"}));
  ASSERT_TRUE(first && second);
  for (std::size_t i = 0; i < first->as_array().size(); ++i) {
    EXPECT_FALSE(first->as_array()[i] == second->as_array()[i]) << i;
  }
}

TEST_F(CPythonTest, ChoosesTheSmallestSetThatHasTheImports) {
  EXPECT_EQ(executor_->ChooseSet({}), "base");
  EXPECT_EQ(executor_->ChooseSet({"json", "re"}), "base");
  EXPECT_EQ(executor_->ChooseSet({"json", "numpy"}), "pandas");
}

TEST_F(CPythonTest, EndsAtItsLimits) {
  struct Case {
    const char* source;
    Fault fault;
    std::function<void(ScriptLimits&)> set;
  };
  const Case cases[] = {
      {"while True: pass", Fault::kWallClock,
       [](auto& limits) { limits.wall_clock = milliseconds(300); }},
      {"import time\ntime.sleep(1000)", Fault::kWallClock,
       [](auto& limits) { limits.wall_clock = milliseconds(300); }},
      {"while True:\n  try:\n    while True: pass\n  except BaseException: pass", Fault::kWallClock,
       [](auto& limits) { limits.wall_clock = milliseconds(300); }},
      {"while True: pass", Fault::kCpu, [](auto& limits) { limits.cpu = milliseconds(200); }},
      {"b = bytearray(600 << 20)", Fault::kMemory, [](auto&) {}},
      {"l = []\nwhile True: l.append('x' * 100000)", Fault::kMemory, [](auto&) {}},
      {"done('x' * 5000)", Fault::kOutput, [](auto& limits) { limits.output_bytes = 4000; }},
      {"while True: debug(1)", Fault::kMessages, [](auto& limits) { limits.messages = 50; }},
      {"pass", Fault::kMemory, [](auto& limits) { limits.memory_bytes = 1u << 20; }},
  };
  for (const Case& one : cases) {
    ScriptJob job = Block(one.source);
    one.set(job.limits);
    const Ran ran = Run(job);
    EXPECT_EQ(ran.outcome.fault, one.fault)
        << one.source << ": " << ran.outcome.error_type << " " << ran.outcome.message;
    EXPECT_FALSE(ran.outcome.message.empty());
    EXPECT_EQ(Value("done(1)"), "1") << "the next run is right";
  }
}

TEST_F(CPythonTest, AMemoryErrorThatIsCaughtIsNone) {
  EXPECT_EQ(Value("try:\n  b = bytearray(600 << 20)\nexcept MemoryError:\n  done('caught')\n"),
            R"("caught")");
}

TEST_F(CPythonTest, KeepsResultsThatCameBeforeALimit) {
  ScriptJob job = Block("done({'n': 1}, final=False)\nwhile True: pass\n");
  job.limits.wall_clock = milliseconds(300);
  const Ran ran = Run(job);
  EXPECT_EQ(ran.outcome.fault, Fault::kWallClock);
  ASSERT_EQ(ran.sink.results.size(), 1u);
}

TEST_F(CPythonTest, TheFirstFinalResultSettlesTheRun) {
  const Ran ran = Run(Block("done(1)\ndone(2)\ndebug(3)\n1 / 0\n"));
  EXPECT_TRUE(ran.outcome.ok());
  EXPECT_EQ(ran.sink.results, std::vector<std::string>{"1"});
  EXPECT_EQ(ran.outcome.late_done, 1u);
  EXPECT_EQ(ran.outcome.late_debug, 1u);
  const Ran endless = Run(Block("done(1)\nwhile True: pass\n"));
  EXPECT_TRUE(endless.outcome.ok()) << "what is settled stays settled";
}

TEST_F(CPythonTest, CountsWhatStreamsHaveBeyondTheirLimit) {
  ScriptJob job = Block("print('x' * 5000)\n");
  job.limits.stream_bytes = 100;
  const Ran ran = Run(job);
  EXPECT_TRUE(ran.outcome.ok());
  EXPECT_EQ(ran.sink.out.size(), 100u);
  EXPECT_EQ(ran.outcome.stdout_dropped, 4901u);
}

TEST_F(CPythonTest, KeepsWithinItsDisk) {
  ScriptJob job = Block(
      "try:\n  open('/tmp/a', 'wb').write(b'x' * 200000)\nexcept OSError as e:\n  done(e.errno)\n");
  job.limits.disk_bytes = 100'000;
  const Ran ran = Run(job);
  ASSERT_EQ(ran.sink.results.size(), 1u) << ran.outcome.message;
  EXPECT_EQ(ran.sink.results[0], "51");
}

TEST_F(CPythonTest, DeepRecursionIsAnErrorOfTheScript) {
  for (const char* source : {
           "def f(): f()\nf()",
           "import json\njson.loads('[' * 100000)",
           "l = []\nfor _ in range(100000): l = [l]\nrepr(l)",
           "import json\nl = []\nfor _ in range(100000): l = [l]\njson.dumps(l)",
           "class A:\n  def __getattr__(self, n): return getattr(self, n)\nA().x",
           "import copy\nl = []\nfor _ in range(100000): l = [l]\ncopy.deepcopy(l)",
           "l = []\nfor _ in range(100000): l = [l]\n"
           "m = []\nfor _ in range(100000): m = [m]\nl == m",
       }) {
    const Ran ran = Run(Block(source));
    EXPECT_EQ(ran.outcome.fault, Fault::kRaised) << source << ": " << ran.outcome.message;
    EXPECT_EQ(ran.outcome.error_type, "RecursionError") << source;
  }
  EXPECT_EQ(Value("done(1)"), "1");
}

TEST_F(CPythonTest, AWaitForALockEndsWithItsTimeOrIsAnErrorOfTheScript) {
  EXPECT_EQ(Value("import threading, queue\n"
                  "lock = threading.Lock()\nout = [lock.acquire(), lock.acquire(timeout=0.02)]\n"
                  "out.append(threading.Event().wait(0.02))\n"
                  "for kind in (queue.Queue, queue.SimpleQueue):\n"
                  "  try:\n    kind().get(timeout=0.02)\n"
                  "  except queue.Empty:\n    out.append('empty')\ndone(out)\n"),
            R"([true,false,false,"empty","empty"])");
  const Ran ran = Run(Block("import threading\nthreading.Semaphore(0).acquire()\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kRaised) << ran.outcome.message;
  EXPECT_EQ(ran.outcome.error_type, "RuntimeError");
}

TEST_F(CPythonTest, AnAbortIsToldInOneLineAndCostsTheRunOnly) {
  const Ran ran = Run(Block("import os\nos.abort()\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kArtifact);
  EXPECT_EQ(ran.outcome.message.find('\n'), std::string::npos) << ran.outcome.message;
  EXPECT_NE(ran.outcome.message.find("unreachable"), std::string::npos) << ran.outcome.message;
  EXPECT_EQ(Value("done(1)"), "1");
}

TEST_F(CPythonTest, RefusesTheHostsDoors) {
  const std::string source =
      "import socket, subprocess, os\nout = []\n"
      "for f in (lambda: socket.socket(), lambda: subprocess.run(['x']), lambda: os.system('x'),"
      " lambda: __import__('ctypes').CDLL(None), lambda: open('/etc/passwd'),"
      " lambda: open('/usr/x', 'w'), lambda: "
      "__import__('threading').Thread(target=print).start()):\n"
      "  try:\n    f()\n    out.append('done')\n  except BaseException as e:\n"
      "    out.append(type(e).__name__)\ndone([sorted(os.environ), 'done' in out])\n";
  EXPECT_EQ(Value(source), R"([["HOME","LANG","PATH","TMPDIR"],false])");
}

TEST_F(CPythonTest, AScriptThatSubvertsItsHarnessCannotSpeakAsTheHost) {
  Ran ran = Run(Block("import sys\nsys.modules['_host'].call(bytes((99, 0)) + b'x')\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol);
  ran = Run(Block(
      "import sys\nsys.modules['_host'].call(bytes((16, 0)) + b'{\"fault\":\"wall_clock\"}')\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol);
  ran =
      Run(Block("import sys\nsys.modules['_host'].call(bytes((16, 0)) + "
                "b'{\"fault\":\"memory\",\"type\":\"MemoryError\"}')\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kRaised);
  EXPECT_EQ(ran.outcome.error_type, "MemoryError");
  ran = Run(Block("import sys\nsys.modules['_host'].call(b'')\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol);
  ran = Run(Block("import sys\nsys.modules['caisson_host'].Channel.send = lambda *a: None\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol);
}

TEST_F(CPythonTest, IsCancelledWhileItComputesAndWhileItSleeps) {
  for (const char* source : {"while True: pass", "import time\ntime.sleep(1000)"}) {
    int asked = 0;
    Ran ran;
    RunWith(Block(source), ran, [&] { return ++asked > 20; });
    EXPECT_EQ(ran.outcome.fault, Fault::kKilled);
  }
}

TEST_F(CPythonTest, AReceiverCanEndTheRun) {
  Ran ran;
  ran.sink.most = 3;
  RunWith(Block("while True: debug(1)"), ran);
  EXPECT_EQ(ran.outcome.fault, Fault::kKilled);
  EXPECT_EQ(ran.sink.results.size(), 3u);
}

// --- In jailed workers ---

class CPythonWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpython::HasArtifact(TestOptions())) {
      GTEST_SKIP() << "the CPython artifact is not fetched";
    }
    const auto prepared = cpython::Prepare(TestOptions(), [](const auto&) {}, {});
    ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
    CPythonOptions options = TestOptions();
    options.cache_dir = wasm::DefaultCacheDir();
    WorkerOptions workers;
    workers.arguments = WordsFromOptions(options);
    workers.workers = 1;
    workers.cgroup.memory_bytes = 1536u << 20;
    auto runtime = ScriptWorkerRuntime::Create(workers);
    ASSERT_TRUE(runtime.has_value());
    runtime_ = *std::move(runtime);
  }
  Ran Run(const ScriptJob& job, std::stop_token stop = {}, Recorder sink = {}) {
    Ran ran;
    ran.sink = std::move(sink);
    auto outcome = runtime_->Run(job, ran.sink, std::move(stop));
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    if (outcome) ran.outcome = *std::move(outcome);
    return ran;
  }
  std::unique_ptr<ScriptWorkerRuntime> runtime_;
};

TEST_F(CPythonWorkerTest, RunsBehindEveryWall) {
  const Ran ran = Run(Block("print('hello')\ndone([1], final=False)\ndone({'a': 2})\n"));
  EXPECT_TRUE(ran.outcome.ok()) << ran.outcome.message;
  EXPECT_EQ(ran.sink.results, (std::vector<std::string>{"[1]", R"({"a":2})"}));
  EXPECT_EQ(ran.sink.out, "hello\n");
  for (int i = 0; i < 20; ++i) {
    const Ran again = Run(Block("import os\ndone(os.listdir('/tmp'))\nopen('/tmp/x','w')\n"));
    EXPECT_EQ(again.sink.results, std::vector<std::string>{"[]"});
  }
  EXPECT_EQ(runtime_->Stats().started, 1u);
  const auto walls = runtime_->Walls();
  ASSERT_TRUE(walls.has_value());
  for (const auto& wall : *walls) EXPECT_TRUE(wall.stands || !wall.mandatory) << wall.name;
}

TEST_F(CPythonWorkerTest, SurvivesLimitsGrowthAndErrors) {
  ScriptJob endless = Block("while True: pass");
  endless.limits.wall_clock = milliseconds(300);
  EXPECT_EQ(Run(endless).outcome.fault, Fault::kWallClock);
  EXPECT_EQ(Run(Block("b = bytearray(600 << 20)")).outcome.fault, Fault::kMemory);
  EXPECT_EQ(Run(Block("b = bytearray(200 << 20)\ndone(len(b))")).outcome.fault, Fault::kNone);
  EXPECT_EQ(Run(Block("def f(): f()\nf()")).outcome.error_type, "RecursionError");
  EXPECT_EQ(Run(Block("import time\ntime.sleep(0.02)\ndone(1)")).outcome.fault, Fault::kNone);
  EXPECT_EQ(runtime_->Stats().started, 1u);
}

TEST_F(CPythonWorkerTest, GivesMemoryOfItsOwnBackWithoutLosingTheWorker) {
  const std::string large = "x = '" + std::string(10u << 20, 'y') + "'\ndone(len(x))";
  EXPECT_EQ(Run(Block(large)).sink.results, std::vector<std::string>{"10485760"});
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "lambda: ";
  EXPECT_EQ(Run(Block(deep + "1")).outcome.fault, Fault::kSyntax);
  EXPECT_EQ(Run(Block("import os\nfor i in range(100000): open('/tmp/x', 'a').write('x' * 100)\n"
                      "done(1)"))
                .sink.results,
            std::vector<std::string>{"1"});
  EXPECT_EQ(Run(Block("done(1)")).sink.results, std::vector<std::string>{"1"});
  EXPECT_EQ(runtime_->Stats().started, 1u);
}

TEST_F(CPythonWorkerTest, IsCancelledWithoutLosingTheWorker) {
  std::stop_source stop;
  const std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(1500));
    stop.request_stop();
  });
  const Ran ran = Run(Block("while True: pass"), stop.get_token());
  EXPECT_EQ(ran.outcome.fault, Fault::kKilled);
  EXPECT_EQ(Run(Block("done(1)")).sink.results, std::vector<std::string>{"1"});
}

TEST_F(CPythonWorkerTest, AWorkerThatDiesCostsItsRunOnly) {
  ASSERT_TRUE(runtime_->Warm().has_value());
  const auto pids = runtime_->Stats().process_ids;
  ASSERT_EQ(pids.size(), 1u);
  const std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(500));
    ::kill(pids[0], SIGKILL);
  });
  const Ran ran = Run(Block("debug(1)\nwhile True: pass"));
  EXPECT_EQ(ran.outcome.fault, Fault::kKilled);
  EXPECT_EQ(ran.sink.results, std::vector<std::string>{"1"}) << "what was delivered stays";
  EXPECT_EQ(Run(Block("done(1)")).sink.results, std::vector<std::string>{"1"});
  EXPECT_EQ(runtime_->Stats().started, 2u);
}

TEST_F(CPythonWorkerTest, ASlowReceiverBlocksTheGuestAndItsTimeGoesOn) {
  ScriptJob job = Block("while True: debug('x' * 100000)");
  job.limits.wall_clock = milliseconds(1500);
  Recorder sink;
  sink.pause = milliseconds(50);
  const Ran ran = Run(job, {}, std::move(sink));
  EXPECT_EQ(ran.outcome.fault, Fault::kWallClock);
  EXPECT_LT(ran.sink.results.size(), 500u);
}

TEST_F(CPythonWorkerTest, TellsLaterWorkersWhatTheFirstHasChecked) {
  CPythonOptions options = TestOptions();
  options.cache_dir = wasm::DefaultCacheDir();
  WorkerOptions workers;
  workers.arguments = WordsFromOptions(options);
  workers.workers = 2;
  workers.cgroup.memory_bytes = 1536u << 20;
  std::vector<std::string> words;
  workers.learn = [&](const json::Value& describe) {
    for (const json::Value& stamp : describe.Find("checked")->as_array()) {
      words.push_back(cpython::CheckedWord(stamp.as_string()));
    }
    return words;
  };
  runtime_ = *ScriptWorkerRuntime::Create(workers);
  // The second is started while the first is busy.
  const std::jthread beside(
      [&] { EXPECT_TRUE(Run(Block("import time\ntime.sleep(3)\ndone(1)")).outcome.ok()); });
  while (runtime_->Stats().started == 0) std::this_thread::sleep_for(milliseconds(10));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(Run(Block("done(1)")).sink.results, std::vector<std::string>{"1"});
  EXPECT_EQ(runtime_->Stats().started, 2u);
  EXPECT_EQ(words.size(), 5u) << "code, two archives, two images";
}

TEST_F(CPythonWorkerTest, ServesCodeNodes) {
  ScriptCodeRuntime nodes(*runtime_);
  Job job;
  job.source =
      "import pandas as pd\nasync def run(self, state, config):\n    print(self.name)\n"
      "    return {'sum': int(pd.Series(state['n']).sum())}\n";
  job.self = *json::Read(R"({"name":"node"})");
  job.state = *json::Read(R"({"n":[1,2,3]})");
  job.config = *json::Read("{}");
  auto outcome = nodes.Call(job);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->ok()) << outcome->message;
  EXPECT_TRUE(outcome->value == *json::Read(R"({"sum":6})"));
  EXPECT_EQ(outcome->stdout_text, "node\n");
  job.source = "def run(self, state, config):\n    return [1]\n";
  EXPECT_EQ(nodes.Call(job)->fault, Fault::kProtocol);
  job.source = "def run(self, state, config):\n    return {'a': {1, 2}}\n";
  EXPECT_EQ(nodes.Call(job)->fault, Fault::kProtocol);
  job.source = "def run(self, state, config):\n    return state['missing']\n";
  outcome = nodes.Call(job);
  EXPECT_EQ(outcome->fault, Fault::kRaised);
  EXPECT_EQ(outcome->error_type, "KeyError");
  ASSERT_FALSE(outcome->traceback.empty());
  EXPECT_EQ(outcome->traceback.back().line, 2u);
}

Result<ScriptWorkerParts> MakeParts(const WorkerCommand& command) {
  CAISSON_ASSIGN(const CPythonOptions options, cpython::OptionsFromWords(command.arguments));
  CAISSON_ASSIGN(auto executor, CPythonExecutor::Create(options));
  ScriptWorkerParts parts;
  parts.syscalls = cpython::SealSyscalls(executor->pagemap_descriptor());
  parts.executor = std::move(executor);
  return parts;
}

}  // namespace
}  // namespace caisson::isolate

int main(int argc, char** argv) {
  namespace isolate = caisson::isolate;
  if (argc > 1 && argv[1] == isolate::kWorkerCommand) {
    const auto command = isolate::ParseWorkerCommand(argc, argv);
    return command
               ? isolate::ScriptWorkerMain(*command, [&] { return isolate::MakeParts(*command); })
               : 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
