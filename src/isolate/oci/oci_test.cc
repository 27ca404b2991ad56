// SPDX-License-Identifier: Apache-2.0
// Runs in real containers: what comes out, limits, ends, and runtimes that leave something out.
#include "isolate/oci/oci.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "errors/jail.h"
#include "errors/oci.h"
#include "isolate/native/test_support.h"
#include "isolate/oci/test_support.h"
#include "json/writer.h"
#include "machine/oci/policy.h"
#include "os/cgroup.h"
#include "os/fd.h"

namespace caisson::isolate::oci {
namespace {

using namespace std::chrono_literals;
using native::BlockJob;
using native::BodyJob;
using native::Collector;
using native::Ran;
using native::RunJob;
using native::Show;

std::string WriteProgram(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0755);
  return path;
}

class Oci : public testing::Test {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_CONTAINERS();
    runtime_ = MakeOci(folder_);
    ASSERT_NE(runtime_, nullptr);
  }
  Ran Body(const std::string& body) { return RunJob(*runtime_, BodyJob(body)); }
  void ExpectServes() {
    const Ran ran = Body("    return {'a': 1}\n");
    EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"a\":1}"}) << Show(ran);
  }

  StateFolder folder_;
  std::unique_ptr<OciRuntime> runtime_;
};

TEST_F(Oci, ResultsAndStreamsComeApart) {
  const Ran ran =
      RunJob(*runtime_, BlockJob("import sys\nprint('said')\n"
                                 "print('complained', file=sys.stderr)\n"
                                 "debug(1)\ndone([1, {'b': 2}], final=False)\ndone(2)\n"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  EXPECT_EQ(ran.sink.done, (std::vector<std::string>{"[1,{\"b\":2}]", "2"}));
  EXPECT_EQ(ran.sink.others, std::vector<std::string>{"1"});
  EXPECT_EQ(ran.sink.out, "said\n");
  EXPECT_EQ(ran.sink.err, "complained\n");
  EXPECT_GT(ran.outcome.usage.memory_bytes, 0u);
  if (CountsCpu(RuntimeForTests()->kind)) {
    EXPECT_GT(ran.outcome.cpu.count(), 0);
  }
}

TEST_F(Oci, HasNothingButItsOwnDescriptorsAndEnvironment) {
  const Ran ran = Body(
      "    import os\n"
      "    fds = []\n"
      "    for fd in range(0, 2048):\n"
      "        try: os.fstat(fd); fds.append(fd)\n"
      "        except OSError: pass\n"
      "    if 3 in fds: fds.remove(3)  # where a pipe leads to the channel\n"
      "    return {'fds': fds, 'env': sorted(os.environ), 'pid': os.getpid(), 'uid': os.getuid(),\n"
      "            'proc': [n for n in os.listdir('/proc') if n.isdigit()], 'cwd': os.getcwd()}\n");
  EXPECT_EQ(ran.sink.done,
            std::vector<std::string>{
                "{\"fds\":[0,1,2,512],\"env\":[\"HOME\",\"LANG\",\"PATH\",\"TMPDIR\"],\"pid\":1,"
                "\"uid\":1001,\"proc\":[\"1\"],\"cwd\":\"/tmp\"}"})
      << Show(ran);
}

TEST_F(Oci, ErrorsHaveTypeAndPlace) {
  const Ran ran = RunJob(*runtime_, BlockJob("done(1, final=False)\n{}['x']\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kRaised) << Show(ran);
  EXPECT_EQ(ran.outcome.error_type, "KeyError");
  EXPECT_EQ(ran.outcome.line, 2u);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"});
}

TEST_F(Oci, EndsOfTheInterpreterAreNamed) {
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

TEST_F(Oci, EachLimitIsTold) {
  const auto fault = [this](const std::string& source, const auto& limit) {
    ScriptJob job = BlockJob(source);
    limit(job.limits);
    const Ran ran = RunJob(*runtime_, job);
    EXPECT_TRUE(ran.error.empty()) << ran.error;
    return ran.outcome.fault;
  };
  const auto none = [](ScriptLimits&) {};
  EXPECT_EQ(fault("while True: pass\n", [](ScriptLimits& l) { l.wall_clock = 1s; }),
            Fault::kWallClock);
  if (CountsCpu(RuntimeForTests()->kind)) {
    EXPECT_EQ(fault("while True: pass\n", [](ScriptLimits& l) { l.cpu = 300ms; }), Fault::kCpu);
  }
  EXPECT_EQ(fault("x = []\nwhile True: x.append(b'x' * (1 << 20))\n", none), Fault::kMemory);
  EXPECT_EQ(fault("done(1)\n", [](ScriptLimits& l) { l.memory_bytes = 1; }), Fault::kMemory);
  // Memory that no limit of the process counts.
  EXPECT_EQ(fault("import mmap\nm = mmap.mmap(-1, 300 << 20)\n"
                  "for at in range(0, len(m), 4096): m[at] = 1\n",
                  [](ScriptLimits& l) { l.memory_bytes = 128u << 20; }),
            Fault::kMemory);
  EXPECT_EQ(fault("done('x' * 100000)\n", [](ScriptLimits& l) { l.output_bytes = 1000; }),
            Fault::kOutput);
  EXPECT_EQ(fault("for n in range(9): debug(n)\n", [](ScriptLimits& l) { l.messages = 3; }),
            Fault::kMessages);
  EXPECT_EQ(fault("open('/tmp/x', 'wb').write(b'x' * (9 << 20))\n",
                  [](ScriptLimits& l) { l.disk_bytes = 1 << 20; }),
            Fault::kRaised);
  ExpectServes();
}

TEST_F(Oci, FramesThatOnlyTheHarnessMaySendAreTheScriptsOwnWord) {
  for (const char* kind : {"17", "18"}) {
    const Ran ran = Body(std::string("    import os, struct\n"
                                     "    os.writev(512, [struct.pack('<IBBH', 1, ") +
                         kind + ", 0, 0) + b'x'])\n    return {}\n");
    EXPECT_EQ(ran.outcome.fault, Fault::kProtocol) << Show(ran);
    EXPECT_TRUE(ran.sink.done.empty());
  }
}

TEST_F(Oci, AnUnfinishedFrameIsNoCleanEnd) {
  const Ran ran = RunJob(*runtime_, BlockJob("import os, struct\n"
                                             "os.writev(512, [struct.pack('<IBBH', 1 << 20, 1, 1, "
                                             "0) + b'xy'])\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kProtocol) << Show(ran);
}

TEST_F(Oci, ALimitOfMemoryIsTheHostsWordAlone) {
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
  if (RuntimeForTests()->kind != machine::oci::RuntimeKind::kRunc) return;
  // Reserved, and never touched.
  const Ran ran = RunJob(*runtime_, BlockJob("x = []\nwhile True: x.append(bytearray(1 << 20))\n"));
  EXPECT_EQ(ran.outcome.fault, Fault::kMemory) << Show(ran);
  EXPECT_EQ(ran.outcome.message, "the script used more memory than its limit of 536870912 bytes");
}

TEST_F(Oci, CanBeCancelledAtAnyTime) {
  for (const auto after : {0ms, 30ms, 500ms}) {
    std::stop_source stop;
    std::jthread canceller([&] {
      std::this_thread::sleep_for(after);
      stop.request_stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    const Ran ran = RunJob(*runtime_, BlockJob("while True: pass\n"), stop.get_token());
    EXPECT_EQ(ran.outcome.fault, Fault::kKilled) << Show(ran);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  }
  ExpectServes();
}

TEST_F(Oci, ManyRunAtOnceAndEachGetsItsOwn) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string number = std::to_string(i);
      const Ran ran = Body("    return {'n': " + number + "}\n");
      EXPECT_EQ(ran.sink.done, std::vector<std::string>{"{\"n\":" + number + "}"}) << Show(ran);
    });
  }
}

TEST_F(Oci, LeavesNothingBehind) {
  ExpectServes();
  (void)RunJob(*runtime_, BlockJob("import os\nos._exit(1)\n"));
  runtime_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  for (const char* place : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"}) {
    const std::string prefix = os::Cgroup::NamePrefix();
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator entry(place, error), end;
         !error && entry != end; entry.increment(error)) {
      EXPECT_FALSE(entry->path().filename().string().starts_with(prefix)) << entry->path();
    }
  }
}

// A runtime that is not what it says: it drops a part of the configuration before it runs it.
struct Change {
  const char* name;
  const char* code;
};
void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

class Unfaithful : public testing::TestWithParam<Change> {};

TEST_P(Unfaithful, IsFoundOutFromInside) {
  CAISSON_NEEDS_CONTAINERS();
  const auto real = RuntimeForTests();
  ASSERT_TRUE(real);
  const StateFolder tools;
  const StateFolder folder;
  OciOptions options;
  options.runtime = *real;
  options.runtime.program =
      WriteProgram(tools.path() + "/runc",
                   "#!/usr/bin/env python3\nimport json, os, sys\n"
                   "if '--bundle' in sys.argv:\n"
                   "    path = sys.argv[sys.argv.index('--bundle') + 1] + '/config.json'\n"
                   "    config = json.load(open(path))\n    " +
                       std::string(GetParam().code) +
                       "\n    json.dump(config, open(path, 'w'))\n"
                       "os.execv('" +
                       real->program + "', sys.argv)\n");
  options.state = folder.path();
  options.root = jail::RootForTests();
  auto runtime = OciRuntime::Create(std::move(options));
  ASSERT_TRUE(runtime);
  Collector sink;
  const auto outcome = (*runtime)->Run(BlockJob("done(1)\n"), sink, {});
  ASSERT_FALSE(outcome) << "the script ran";
  EXPECT_EQ(outcome.error().code, errors::kJailUnavailable) << outcome.error().message;
  EXPECT_TRUE(sink.done.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, Unfaithful,
    testing::Values(Change{"no_seccomp", "del config['linux']['seccomp']"},
                    Change{"writable_root", "config['root']['readonly'] = False"},
                    Change{"root_user", "config['process']['user'] = {'uid': 0, 'gid': 0}"},
                    Change{"privileges",
                           "config['process']['noNewPrivileges'] = False; del config['linux']"
                           "['seccomp']"},
                    Change{"capabilities",
                           "config['process']['capabilities']['bounding'] = ['CAP_NET_RAW']"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(OciStart, TellsTheRuntimesLastWords) {
  CAISSON_NEEDS_CONTAINERS();
  const StateFolder tools;
  const StateFolder folder;
  OciOptions options;
  options.runtime = *RuntimeForTests();
  options.runtime.program =
      WriteProgram(tools.path() + "/runc", "#!/bin/sh\necho no room left >&2\nexit 3\n");
  options.state = folder.path();
  options.root = jail::RootForTests();
  auto runtime = OciRuntime::Create(std::move(options));
  ASSERT_TRUE(runtime);
  const auto prepared = (*runtime)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, errors::kOciFailed);
  EXPECT_NE(prepared.error().message.find("exited with code 3"), std::string::npos);
  EXPECT_NE(prepared.error().message.find("no room left"), std::string::npos);
}

// An engine's command line on a real container: what it asks for is put into a bundle.
constexpr const char* kEngine = R"(#!/usr/bin/env python3
import json, os, subprocess, sys
HERE = os.path.dirname(os.path.abspath(__file__))
RUNC = ["runc", "--root", HERE + "/runc"]
def value(flag):
    return [word.split("=", 1)[1] for word in sys.argv if word.startswith(flag + "=")]
if sys.argv[1] == "run":
    name, image = value("--name")[0], sys.argv.index("image")
    config = json.load(open(HERE + "/config.json"))
    config["process"]["args"] = value("--entrypoint") + sys.argv[image + 1:]
    profile = [text for text in value("--security-opt") if text.startswith("seccomp=")][0]
    config["linux"]["seccomp"] = json.load(open(profile.split("=", 1)[1]))
    config["linux"]["cgroupsPath"] = name
    bundle = HERE + "/" + name
    os.mkdir(bundle)
    json.dump(config, open(bundle + "/config.json", "w"))
    os.execvp("runc", RUNC + ["run", "--bundle", bundle, name])
if sys.argv[1] == "rm":
    subprocess.run(RUNC + ["delete", "--force", sys.argv[-1]])
if sys.argv[1] == "events":
    print("oom" if os.path.exists(HERE + "/oom") else "", end="")
)";

class Engine : public testing::Test {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_CONTAINERS();
    machine::oci::ContainerPolicy policy;
    policy.root = jail::RootForTests();
    policy.memory_bytes = 128u << 20;
    std::ofstream(tools_.path() + "/config.json")
        << *json::Write(machine::oci::RuntimeConfig(policy));
    OciOptions options;
    options.runtime = {.kind = machine::oci::RuntimeKind::kDocker,
                       .program = WriteProgram(tools_.path() + "/docker", kEngine),
                       .version = {}};
    options.state = folder_.path();
    options.image = "image";
    auto runtime = OciRuntime::Create(std::move(options));
    ASSERT_TRUE(runtime) << runtime.error().message;
    runtime_ = *std::move(runtime);
  }
  StateFolder tools_;
  StateFolder folder_;
  std::unique_ptr<OciRuntime> runtime_;
};

TEST_F(Engine, BringsResultsAndStreamsOutOfTwoPipes) {
  const Ran ran = RunJob(*runtime_, BlockJob("import sys\nprint('x' * 200000)\n"
                                             "print('complained', file=sys.stderr)\n"
                                             "done(1, final=False)\nprint('last')\n"));
  EXPECT_TRUE(ran.outcome.ok()) << Show(ran);
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"});
  EXPECT_EQ(ran.sink.out, std::string(200000, 'x') + "\nlast\n");
  EXPECT_EQ(ran.sink.err, "complained\n");
}

TEST_F(Engine, EndsAreNamedByTheCodesOfTheEngine) {
  const Ran exit = RunJob(*runtime_, BlockJob("import os\nos._exit(7)\n"));
  EXPECT_EQ(exit.outcome.fault, Fault::kExited) << Show(exit);
  EXPECT_EQ(exit.outcome.exit_code, 7);
  const Ran crash = RunJob(*runtime_, BlockJob("import faulthandler\nfaulthandler._read_null()\n"));
  EXPECT_EQ(crash.outcome.fault, Fault::kArtifact) << Show(crash);
}

TEST_F(Engine, IsAskedWhetherMemoryRanOut) {
  const std::string source =
      "import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor at in range(0, len(m), 4096): m[at] = 1\n";
  EXPECT_EQ(RunJob(*runtime_, BlockJob(source)).outcome.fault, Fault::kKilled);
  std::ofstream(tools_.path() + "/oom") << "";
  EXPECT_EQ(RunJob(*runtime_, BlockJob(source)).outcome.fault, Fault::kMemory);
}

TEST_F(Engine, IsAskedForNoLimitThatItCannotCount) {
  ScriptJob job = BlockJob("done(1)\n");
  job.limits.cpu = 1s;
  Collector sink;
  const auto outcome = runtime_->Run(job, sink, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errors::kOciUnavailable);
}

TEST_F(Engine, ARunThatTakesTooLongIsEnded) {
  ScriptJob job = BlockJob("while True: pass\n");
  job.limits.wall_clock = 2s;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(RunJob(*runtime_, job).outcome.fault, Fault::kWallClock);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

// A process that has a run going and is killed, its keeper too if wanted. Gives the pid of the
// container's first process.
pid_t AbandonARun(const StateFolder& folder, bool with_keeper) {
  auto ends = os::MakePipe();
  const pid_t child = ::fork();
  if (child == 0) {
    auto runtime = MakeOci(folder);
    class Told final : public ScriptSink {
     public:
      explicit Told(int fd) : fd_(fd) {}
      bool Take(const ScriptMessage&) override { return ::write(fd_, "x", 1) == 1; }

     private:
      int fd_;
    } sink(ends->second.get());
    if (runtime != nullptr) {
      (void)runtime->Run(BlockJob("debug(1)\nwhile True: pass\n"), sink, {});
    }
    ::_exit(1);
  }
  ends->second.Reset();
  char byte = 0;
  EXPECT_EQ(::read(ends->first.get(), &byte, 1), 1);
  pid_t first = 0;
  // The runtime writes it when the script runs already.
  for (int attempt = 0; attempt < 500 && first == 0; ++attempt) {
    std::this_thread::sleep_for(10ms);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (entry.path().filename() == "pid") std::ifstream(entry.path()) >> first;
    }
  }
  EXPECT_GT(first, 0);
  const auto parent = os::ReadSmallFile("/proc/" + std::to_string(first) + "/stat");
  pid_t keeper = 0;
  if (parent) keeper = std::atoi(parent->c_str() + parent->rfind(')') + 4);
  EXPECT_GT(keeper, 1);
  if (with_keeper && keeper > 1) ::kill(keeper, SIGKILL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return first;
}

bool EndsWithin(pid_t pid, std::chrono::seconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (::kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

bool TellsPids() { return RuntimeForTests()->kind == machine::oci::RuntimeKind::kRunc; }

TEST(OciOrphans, TheKeeperEndsWhatItsOwnerLeft) {
  CAISSON_NEEDS_CONTAINERS();
  if (!TellsPids()) GTEST_SKIP() << "only runc tells the pid of a container";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const StateFolder folder;
  const pid_t first = AbandonARun(folder, false);
  EXPECT_TRUE(EndsWithin(first, 10s));
}

TEST(OciOrphans, AreReapedAtTheNextStart) {
  CAISSON_NEEDS_CONTAINERS();
  if (!TellsPids()) GTEST_SKIP() << "only runc tells the pid of a container";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const StateFolder folder;
  const pid_t first = AbandonARun(folder, true);
  EXPECT_EQ(::kill(first, 0), 0) << "nobody else may have ended it";
  const auto runtime = MakeOci(folder);
  ASSERT_NE(runtime, nullptr);
  EXPECT_EQ(runtime->Describe().Find("orphans_removed")->as_int(), 1);
  EXPECT_TRUE(EndsWithin(first, 10s));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "only what is ours";
}

TEST(OciOrphans, AHalfRemovedFolderGoes) {
  CAISSON_NEEDS_CONTAINERS();
  const StateFolder folder;
  std::filesystem::create_directories(folder.path() + "/caisson.1-2-3.0123/runtime");
  const auto runtime = MakeOci(folder);
  ASSERT_NE(runtime, nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/caisson.1-2-3.0123"));
}

TEST(OciOrphans, TheLivingAreLeftAlone) {
  CAISSON_NEEDS_CONTAINERS();
  const StateFolder folder;
  const auto one = MakeOci(folder);
  ASSERT_NE(one, nullptr);
  const auto other = MakeOci(folder);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->Describe().Find("orphans_removed")->as_int(), 0);
  const Ran ran = RunJob(*one, BlockJob("done(1)\n"));
  EXPECT_EQ(ran.sink.done, std::vector<std::string>{"1"}) << Show(ran);
}

}  // namespace
}  // namespace caisson::isolate::oci
