// SPDX-License-Identifier: Apache-2.0
// Runs, limits and what happens around them, with an interpreter without libraries.
#include "isolate/native/native.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "errors/isolate.h"
#include "errors/jail.h"
#include "isolate/native/test_support.h"

namespace caisson::isolate::native {
namespace {

using namespace std::chrono_literals;

class Native : public testing::Test {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_ROOT();
    runtime_ = MakeRuntime();
    ASSERT_NE(runtime_, nullptr);
  }
  Ran Body(const std::string& body) { return RunJob(*runtime_, BodyJob(body)); }
  // The runtime serves, whatever went before.
  void ExpectServes() {
    const Ran ran = Body("    return {'a': 1}\n");
    EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"a\":1}"}) << Show(ran);
  }

  std::unique_ptr<NativeRuntime> runtime_;
};

TEST(NativeOptionsTest, NeedsTheDirectoryOfARootFileSystem) {
  for (const char* root : {"", "relative", "/nonexistent", "/proc/self"}) {
    NativeOptions options;
    options.root = root;
    const auto runtime = NativeRuntime::Create(options);
    ASSERT_FALSE(runtime) << root;
    EXPECT_EQ(runtime.error().code, errors::kIsolateRootUnusable);
  }
}

TEST(NativeOptionsTest, SaysWhyAnInterpreterDoesNotStart) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.root = RootForTests();
  options.python = "/lib64/ld-linux-x86-64.so.2";  // knows no option -I
  auto runtime = NativeRuntime::Create(options);
  ASSERT_TRUE(runtime);
  const auto prepared = (*runtime)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, errors::kIsolateRootUnusable);
  EXPECT_NE(prepared.error().message.find("exited with code 127"), std::string::npos)
      << prepared.error().message;
}

TEST(NativeOptionsTest, NamesLibrariesThatCannotBeImportedAndGoesOn) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.sets = {{.name = "odd", .imports = {"json", "no_such_library"}}};
  const auto runtime = MakeRuntime(options);
  ASSERT_NE(runtime, nullptr);
  const json::Value description = runtime->Describe();
  const json::Value& set = description.Find("sets")->as_array().at(0);
  EXPECT_NE(set.Find("interpreter")->Find("failed")->Find("no_such_library"), nullptr);
  EXPECT_EQ(set.Find("interpreter")->Find("failed")->Find("json"), nullptr);
}

TEST(NativeOptionsTest, PreparingEndsWhenItIsAskedTo) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.root = RootForTests();
  options.sets = {{.name = "large", .imports = {"statsmodels", "sklearn", "matplotlib"}}};
  auto runtime = NativeRuntime::Create(options);
  ASSERT_TRUE(runtime);
  std::stop_source stop;
  std::jthread stopper([&stop] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  const auto prepared = (*runtime)->Prepare(stop.get_token());
  EXPECT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ((*runtime)->ZygotePids().at(0), 0);
}

TEST(NativeOptionsTest, MissingWallMeansNoInterpreter) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.root = RootForTests();
  // A zygote is unprivileged: without user namespaces it cannot give a call its own.
  options.leave_out.walls = {jail::Wall::kUserNamespace};
  auto runtime = NativeRuntime::Create(options);
  ASSERT_TRUE(runtime);
  Collector sink;
  const auto outcome = (*runtime)->Run(BodyJob("    return {}\n"), sink, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errors::kJailUnavailable) << outcome.error().message;
}

TEST_F(Native, RunsABodyAndABlock) {
  ExpectServes();
  const Ran ran = RunJob(
      *runtime_, BlockJob("print('hi')\ndone({'n': documents[0]['n'] + 1})\n", "{\"n\": 41}"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  ASSERT_EQ(ran.sink.done.size(), 1u);
  EXPECT_EQ(Parsed(ran.sink.done[0]), Parsed("{\"n\":42}"));
  EXPECT_EQ(ran.sink.out, "hi\n");
}

TEST_F(Native, WhatWasPrintedIsHeardWhateverEndsTheRun) {
  ScriptJob job = BlockJob("print('a')\ndone(1, final=False)\nprint('b')\nwhile True: pass\n");
  job.limits.wall_clock = 500ms;
  const Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kWallClock) << Show(ran);
  EXPECT_EQ(ran.sink.out, "a\nb\n");
  const Ran closed = RunJob(*runtime_, BlockJob("import sys\nsys.stdout.close()\ndone(2)\n"));
  EXPECT_EQ(closed.sink.done, std::vector<std::string>{"2"}) << Show(closed);
}

TEST_F(Native, DeliversWhatWasDoneBeforeAnError) {
  const Ran ran = RunJob(*runtime_, BlockJob("done(1, final=False)\nraise KeyError('x')\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kRaised) << Show(ran);
  EXPECT_EQ(ran.outcome.error_type, "KeyError");
  EXPECT_EQ(ran.outcome.line, 2u);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"});
}

TEST_F(Native, TheFirstFinalResultIsTheLastWord) {
  const Ran ran = RunJob(*runtime_, BlockJob("done(1)\ntry:\n  done(2)\nexcept Exception: pass\n"
                                             "debug(3)\nprint('later')\nraise KeyError('x')\n"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"});
  EXPECT_TRUE(ran.sink.others.empty());
  EXPECT_EQ(ran.outcome.late_done, 1u);
  EXPECT_EQ(ran.outcome.late_debug, 1u);
}

TEST_F(Native, ASettledRunDoesNotHoldItsCaller) {
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = RunJob(*runtime_, BlockJob("done(1)\nwhile True: pass\n"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST_F(Native, EndsOfTheInterpreterAreNamed) {
  const Ran exit = Body("    import os\n    os._exit(7)\n");
  EXPECT_EQ(exit.outcome.fault, Fault::kExited) << Show(exit);
  EXPECT_EQ(exit.outcome.exit_code, 7);
  const Ran clean = Body("    import os\n    os._exit(0)\n");
  EXPECT_EQ(clean.outcome.fault, Fault::kExited) << Show(clean);
  const Ran crash = Body("    import faulthandler\n    faulthandler._read_null()\n");
  EXPECT_EQ(crash.outcome.fault, Fault::kArtifact) << Show(crash);
  EXPECT_NE(crash.outcome.message.find("SIGSEGV"), std::string::npos) << Show(crash);
  ExpectServes();
}

TEST_F(Native, GarbageOnTheChannelIsRefusedByTheBoundary) {
  const Ran ran = Body(
      "    import os\n"
      "    def error_of(call):\n"
      "        try: call()\n"
      "        except OSError: return 'refused'\n"
      "    return {'write': error_of(lambda: os.write(512, b'x')),\n"
      "            'dup': error_of(lambda: os.dup(512)),\n"
      "            'dup2': error_of(lambda: os.dup2(512, 20)),\n"
      "            'open': error_of(lambda: open('/proc/self/fd/512', 'wb'))}\n");
  EXPECT_EQ(
      ran.sink.done,
      std::vector<std::string>{
          "{\"write\":\"refused\",\"dup\":\"refused\",\"dup2\":\"refused\",\"open\":\"refused\"}"})
      << Show(ran);
}

TEST_F(Native, BrokenFramesEndTheRun) {
  const Ran ran =
      Body("    import os\n    os.writev(512, [b'{\"type\":\"done\"}'])\n    return {}\n");
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol) << Show(ran);
  EXPECT_TRUE(ran.sink.done.empty());
  ExpectServes();
}

TEST_F(Native, AnUnfinishedFrameIsNoCleanEnd) {
  const Ran ran = RunJob(*runtime_, BlockJob("import os, struct\n"
                                             "os.writev(512, [struct.pack('<IBBH', 1 << 20, 1, 1, "
                                             "0) + b'xy'])\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol) << Show(ran);
  EXPECT_TRUE(ran.sink.done.empty());
  ExpectServes();
}

TEST_F(Native, ALimitOfMemoryIsTheHostsWordAlone) {
  for (const std::string source :
       {"raise MemoryError('my words')\n",
        "import os, struct\n"
        "report = b'{\"fault\":\"memory\",\"type\":\"MemoryError\",\"message\":\"my words\"}'\n"
        "os.writev(512, [struct.pack('<IBBH', len(report), 16, 0, 0) + report])\n"}) {
    const Ran ran = RunJob(*runtime_, BlockJob(source));
    EXPECT_EQ(ran.outcome.fault, Fault::kRaised) << Show(ran);
    EXPECT_EQ(ran.outcome.error_type, "MemoryError") << Show(ran);
    EXPECT_EQ(ran.outcome.message, "my words") << Show(ran);
  }
  // Reserved, never touched, and given back before the report.
  ScriptJob job = BlockJob(
      "def f():\n"
      "    x = []\n"
      "    try:\n"
      "        while True: x.append(bytearray(1 << 20))\n"
      "    except MemoryError: pass\n"
      "    del x\n"
      "    raise MemoryError('my words')\n"
      "f()\n");
  const Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kMemory) << Show(ran);
  EXPECT_EQ(ran.outcome.message, "the script used more memory than its limit of 536870912 bytes");
}

TEST_F(Native, SaysWhatAScriptHadAtMost) {
  const Ran ran = RunJob(*runtime_, BlockJob("x = bytearray(300_000_000)\n"
                                             "x[::4096] = b'1' * len(x[::4096])\n"
                                             "del x\n"
                                             "done(1)\n"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  if (!Stands(*runtime_, jail::Wall::kMemoryCgroup)) return;
  EXPECT_GT(ran.outcome.usage.memory_bytes, 300'000'000u);
  EXPECT_LT(ran.outcome.usage.memory_bytes, 400'000'000u);
}

TEST_F(Native, NamesALimitThatIsBelowWhatTheInterpreterNeeds) {
  for (const std::uint64_t limit : {1u, (8u << 20) - 1}) {
    ScriptJob job = BlockJob("done(1)\n");
    job.limits.memory_bytes = limit;
    const Ran ran = RunJob(*runtime_, job);
    EXPECT_EQ(ran.outcome.fault, Fault::kMemory) << Show(ran);
    EXPECT_EQ(ran.outcome.message, "the memory limit of " + std::to_string(limit) +
                                       " bytes is below the 8388608 bytes that the interpreter "
                                       "needs");
  }
  ScriptJob job = BlockJob("done(1)\n");
  job.limits.memory_bytes = 8u << 20;
  EXPECT_TRUE(RunJob(*runtime_, job).outcome.ok());
}

TEST_F(Native, HasNothingButItsOwnDescriptorsAndEnvironment) {
  const Ran ran = Body(
      "    import os\n"
      "    fds = []\n"
      "    for fd in range(0, 2048):\n"
      "        try: os.fstat(fd); fds.append(fd)\n"
      "        except OSError: pass\n"
      "    return {'fds': fds, 'env': sorted(os.environ), 'pid': os.getpid(), 'uid': os.getuid(),\n"
      "            'proc': [n for n in os.listdir('/proc') if n.isdigit()], 'cwd': os.getcwd()}\n");
  EXPECT_EQ(ran.sink.done,
            std::vector<std::string>{
                "{\"fds\":[0,1,2,512],\"env\":[\"HOME\",\"LANG\",\"PATH\",\"TMPDIR\"],\"pid\":1,"
                "\"uid\":1000,\"proc\":[\"1\"],\"cwd\":\"/tmp\"}"})
      << Show(ran);
}

TEST_F(Native, RunsShareNoRandomStateAndNoFiles) {
  const std::string body =
      "    import random, os\n"
      "    had = os.path.exists('/tmp/mark')\n"
      "    open('/tmp/mark', 'w').close()\n"
      "    return {'had': had, 'random': random.random()}\n";
  const Ran first = Body(body);
  const Ran second = Body(body);
  ASSERT_EQ(first.sink.done.size(), 1u) << Show(first);
  ASSERT_EQ(second.sink.done.size(), 1u) << Show(second);
  EXPECT_NE(first.sink.done[0], second.sink.done[0]);
  EXPECT_EQ(second.sink.done[0].find("{\"had\":false"), 0u) << Show(second);
}

TEST_F(Native, ThreadsWorkAndProcessesDoNot) {
  const Ran ran = Body(
      "    import os, threading, concurrent.futures\n"
      "    with concurrent.futures.ThreadPoolExecutor(4) as pool:\n"
      "        total = sum(pool.map(lambda n: n * n, range(100)))\n"
      "    def error_of(call):\n"
      "        try: call()\n"
      "        except OSError as error: return type(error).__name__\n"
      "    return {'total': total, 'fork': error_of(os.fork),\n"
      "            'exec': error_of(lambda: os.execv('/usr/bin/python3', ['python3'])),\n"
      "            'spawn': error_of(lambda: os.posix_spawn('/usr/bin/python3', ['python3'], "
      "{}))}\n");
  EXPECT_EQ(ran.sink.done,
            std::vector<std::string>{"{\"total\":328350,\"fork\":\"PermissionError\",\"exec\":"
                                     "\"PermissionError\",\"spawn\":\"PermissionError\"}"})
      << Show(ran);
}

TEST(NativeGrants, ProcessesStartWhenThePolicyGrantsIt) {
  CAISSON_NEEDS_ROOT();
  NativeOptions options;
  options.processes = jail::AllowProcesses();
  const auto runtime = MakeRuntime(options);
  ASSERT_NE(runtime, nullptr);
  const Ran ran = RunJob(
      *runtime, BodyJob("    import subprocess\n"
                        "    ran = subprocess.run(['/usr/bin/python3', '-c', \"print('hi')\"],\n"
                        "                         capture_output=True)\n"
                        "    return {'out': ran.stdout.decode()}\n"));
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"out\":\"hi\\n\"}"}) << Show(ran);
}

TEST_F(Native, MemoryGivesAMemoryErrorAndIsNamed) {
  ScriptJob job = BodyJob("    return {'size': len([bytearray(1 << 20) for _ in range(1024)])}\n");
  job.limits.memory_bytes = 96u << 20;
  const Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kMemory) << Show(ran);
  job.source =
      "def run(self, state, config):\n"
      "    blocks = []\n"
      "    try:\n"
      "        while True: blocks.append(bytearray(1 << 20))\n"
      "    except MemoryError:\n"
      "        return {'caught': len(blocks) > 40}\n";
  EXPECT_EQ(RunJob(*runtime_, job).sink.done, std::vector<std::string>{"{\"caught\":true}"});
  ExpectServes();
}

TEST_F(Native, MemoryThatNoLimitOfTheProcessCountsIsCountedByItsCgroup) {
  // Shared anonymous memory is not part of RLIMIT_DATA.
  ScriptJob job = BodyJob(
      "    import mmap\n"
      "    block = mmap.mmap(-1, 256 << 20)\n"
      "    for at in range(0, len(block), 4096): block[at] = 1\n"
      "    return {}\n");
  job.limits.memory_bytes = 96u << 20;
  const Ran ran = RunJob(*runtime_, job);
  if (Stands(*runtime_, jail::Wall::kMemoryCgroup)) {
    EXPECT_EQ(ran.outcome.fault, Fault::kMemory) << Show(ran);
    EXPECT_NE(ran.outcome.message.find("100663296 bytes"), std::string::npos) << Show(ran);
  } else {
    EXPECT_EQ(ran.outcome.error_type, "OSError") << Show(ran);
  }
  ExpectServes();
}

TEST_F(Native, WallClockAndCpuAreNamed) {
  ScriptJob job = BodyJob("    import time\n    time.sleep(60)\n    return {}\n");
  job.limits.wall_clock = 300ms;
  EXPECT_EQ(RunJob(*runtime_, job).outcome.fault, Fault::kWallClock);
  job = BodyJob("    while True: pass\n");
  job.limits.cpu = 200ms;
  const Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kCpu) << Show(ran);
  EXPECT_GE(ran.outcome.cpu, 200ms);
  ExpectServes();
}

TEST_F(Native, OutputMessagesAndStreamsAreNamed) {
  ScriptJob job = BodyJob("    return {'text': 'x' * 5_000_000}\n");
  job.limits.output_bytes = 1'000'000;
  Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kOutput) << Show(ran);
  EXPECT_TRUE(ran.sink.done.empty());

  job = BlockJob("for n in range(100): done(n, final=False)\n");
  job.limits.messages = 10;
  ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.outcome.fault, Fault::kMessages) << Show(ran);
  EXPECT_EQ(ran.sink.done.size(), 10u);

  job = BodyJob(
      "    import os\n    os.write(1, b'a' * 1000)\n    os.write(2, b'b' * 50)\n    return {}\n");
  job.limits.stream_bytes = 100;
  ran = RunJob(*runtime_, job);
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  EXPECT_EQ(ran.sink.out, std::string(100, 'a'));
  EXPECT_EQ(ran.outcome.stdout_dropped, 900u);
  EXPECT_EQ(ran.sink.err, std::string(50, 'b'));
  EXPECT_EQ(ran.outcome.stderr_dropped, 0u);
}

TEST_F(Native, DiskIsLimited) {
  ScriptJob job = BodyJob(
      "    import errno\n"
      "    try:\n"
      "        with open('/tmp/big', 'wb') as file:\n"
      "            for _ in range(64): file.write(b'x' * (1 << 20))\n"
      "    except OSError as error:\n"
      "        return {'error': errno.errorcode[error.errno]}\n");
  job.limits.disk_bytes = 8u << 20;
  const Ran ran = RunJob(*runtime_, job);
  ASSERT_EQ(ran.sink.done.size(), 1u) << Show(ran);
  // One file may not exceed the disk either, which the kernel says first.
  EXPECT_TRUE(ran.sink.done[0] == "{\"error\":\"ENOSPC\"}" ||
              ran.sink.done[0] == "{\"error\":\"EFBIG\"}")
      << Show(ran);
}

TEST_F(Native, ThreadsAreLimited) {
  ScriptJob job = BodyJob(
      "    import threading, time\n"
      "    try:\n"
      "        for n in range(500): threading.Thread(target=time.sleep, args=(30,), "
      "daemon=True).start()\n"
      "    except RuntimeError:\n"
      "        return {'stopped': n < 40}\n");
  job.limits.pids = 32;
  const Ran ran = RunJob(*runtime_, job);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"stopped\":true}"}) << Show(ran);
}

TEST_F(Native, IsCancelledByTheCallerAndByTheSink) {
  std::stop_source stop;
  std::jthread canceller([&stop] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  const Ran ran = RunJob(*runtime_, BodyJob("    while True: pass\n"), stop.get_token());
  EXPECT_EQ(ran.outcome.fault, Fault::kKilled) << Show(ran);

  Collector sink;
  sink.stop_after = 3;
  const auto outcome =
      runtime_->Run(BlockJob("for n in range(100000): done(n, final=False)\n"), sink, {});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->fault, Fault::kKilled);
  EXPECT_EQ(sink.done.size(), 3u);
}

TEST_F(Native, ManyRunAtOnceAndEachGetsItsOwn) {
  constexpr int kThreads = 8;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        const std::string number = std::to_string(i * 100 + k);
        const Ran ran = RunJob(*runtime_, BodyJob("    return {'n': " + number + "}\n"));
        EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"n\":" + number + "}"}) << Show(ran);
      }
    });
  }
  threads.clear();
}

TEST_F(Native, AZygoteKilledMidCallCostsThatCallAlone) {
  std::atomic<bool> ended{false};
  Ran ran;
  std::jthread caller([&] {
    ran = RunJob(*runtime_, BlockJob("done(1, final=False)\nwhile True: pass\n"));
    ended = true;
  });
  std::this_thread::sleep_for(1s);
  ASSERT_FALSE(ended);
  ASSERT_EQ(::kill(runtime_->ZygotePids().at(0), SIGKILL), 0);
  caller.join();
  EXPECT_EQ(ran.outcome.fault, Fault::kKilled) << Show(ran);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"});
  ExpectServes();
}

TEST_F(Native, ASpareKilledWhileItWaitsCostsNothing) {
  ExpectServes();
  // Its spare is a child of the zygote.
  const std::string task = "/proc/" + std::to_string(runtime_->ZygotePids().at(0)) + "/task/" +
                           std::to_string(runtime_->ZygotePids().at(0)) + "/children";
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto children = os::ReadSmallFile(task);
    ASSERT_TRUE(children) << children.error().message;
    const pid_t child = static_cast<pid_t>(std::strtol(children->c_str(), nullptr, 10));
    if (child > 0) {
      ::kill(child, SIGKILL);
      break;
    }
    std::this_thread::sleep_for(20ms);
  }
  ExpectServes();
}

// What a run could leave in the host: descriptors and children of ours, mounts, cgroups.
struct Leftovers {
  std::size_t descriptors = 0;
  std::size_t processes = 0;  // of the zygote's, itself and its spare included
  std::size_t mounts = 0;
  std::size_t cgroups = 0;
  bool operator==(const Leftovers&) const = default;

  static std::size_t EntriesOf(const std::string& directory, const std::string& prefix = "") {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
    }
    return count;
  }
  static std::size_t WordsIn(const std::string& path) {
    std::istringstream words(os::ReadSmallFile(path).value_or(""));
    return static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(words),
                                                  std::istream_iterator<std::string>()));
  }
  static Leftovers Count(pid_t zygote) {
    const std::string process = "/proc/" + std::to_string(zygote);
    Leftovers found{
        .descriptors = EntriesOf("/proc/self/fd"),
        .processes = 1 + WordsIn(process + "/task/" + std::to_string(zygote) + "/children"),
        .mounts = WordsIn("/proc/self/mountinfo") + WordsIn(process + "/mountinfo")};
    for (const os::ControllerPlace& place : os::FindControllers()) {
      if (place.version != 0) found.cgroups += EntriesOf(place.parent, os::Cgroup::NamePrefix());
    }
    return found;
  }
};

void PrintTo(const Leftovers& found, std::ostream* out) {
  *out << found.descriptors << " descriptors, " << found.processes << " processes, " << found.mounts
       << " words of mounts, " << found.cgroups << " cgroups";
}

TEST_F(Native, RunsOfAllKindsLeaveNothingBehind) {
  ExpectServes();
  const pid_t zygote = runtime_->ZygotePids().at(0);
  // The stock is refilled and the ended are cleared away beside the runs.
  const auto settled = [zygote](const Leftovers* wanted) {
    Leftovers found = Leftovers::Count(zygote);
    for (int i = 0; i < 500 && !(wanted != nullptr && found == *wanted); ++i) {
      std::this_thread::sleep_for(wanted != nullptr ? 20ms : 2ms);
      found = Leftovers::Count(zygote);
    }
    return found;
  };
  const Leftovers before = settled(nullptr);
  EXPECT_EQ(before.processes, 2u);
  for (int i = 0; i < 5; ++i) {
    ScriptJob slow = BodyJob("    while True: pass\n");
    slow.limits.wall_clock = 100ms;
    ScriptJob large =
        BodyJob("    return {'size': len([bytearray(1 << 20) for _ in range(1024)])}\n");
    large.limits.memory_bytes = 96u << 20;
    EXPECT_EQ(RunJob(*runtime_, slow).outcome.fault, Fault::kWallClock);
    EXPECT_EQ(RunJob(*runtime_, large).outcome.fault, Fault::kMemory);
    EXPECT_EQ(Body("    import os\n    os._exit(3)\n").outcome.fault, Fault::kExited);
    EXPECT_EQ(Body("    raise ValueError\n").outcome.fault, Fault::kRaised);
    ExpectServes();
  }
  EXPECT_EQ(settled(&before), before);
  EXPECT_EQ(runtime_->ZygotePids().at(0), zygote);
}

TEST_F(Native, LeavesNoProcessAndNoCgroupBehind) {
  const std::string prefix = os::Cgroup::NamePrefix();
  ExpectServes();
  runtime_.reset();
  for (const os::ControllerPlace& place : os::FindControllers()) {
    if (place.version == 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(place.parent)) {
      EXPECT_NE(entry.path().filename().string().find(prefix), 0u) << entry.path();
    }
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(Native, ReportsItsWalls) {
  for (const jail::WallReport& wall : runtime_->Walls()) {
    EXPECT_TRUE(wall.stands || !wall.mandatory) << wall.name << ": " << wall.reason;
  }
  EXPECT_EQ(runtime_->Walls().size(), jail::kWallCount);
}

}  // namespace
}  // namespace caisson::isolate::native
