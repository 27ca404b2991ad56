// SPDX-License-Identifier: Apache-2.0
// Engines that are away, that hang, that say what is not so, and others who use the same engine.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "machine/oci/engines/test_engines.h"
#include "machine/record.h"
#include "machine/test_guest.h"
#include "machine/test_traces.h"

namespace caisson::machine::oci {
namespace {

using namespace std::chrono_literals;

// One variable of this process's environment, and of the helpers that it starts meanwhile.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    before_ = before == nullptr ? "" : before;
    ::setenv(name, value.c_str(), 1);
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;
  ~WithVariable() { ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

// By engine.
class EngineFaults : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoEngine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    program_ = os::FindProgram(GetParam());
  }
  void Start(std::size_t prepared = 0) {
    helper_ = std::make_unique<HelperProcess>(OciHelper(GetParam(), false, prepared));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
  }
  // Stands in for the engine's command where `condition`, in shell, holds of its words.
  void StandIn(const std::string& condition, const std::string& instead) {
    char name[] = "/tmp/caisson-stand-in-XXXXXX";
    stand_in_ = ::mkdtemp(name);
    const std::string path = stand_in_ + "/" + GetParam();
    std::ofstream(path) << "#!/bin/sh\nif " << condition << "; then " << instead << "; fi\nexec "
                        << program_ << " \"$@\"\n";
    ::chmod(path.c_str(), 0755);
    path_ =
        std::make_unique<WithVariable>("PATH", stand_in_ + ":" + std::string(std::getenv("PATH")));
  }
  void TearDown() override {
    driver_.reset();
    helper_.reset();
    path_.reset();
    std::error_code error;
    if (!stand_in_.empty()) std::filesystem::remove_all(stand_in_, error);
  }

  Driver& driver() { return *driver_; }
  static MachineSpec Spec(const std::string& id) {
    return {.id = id,
            .image = ImageForTests(),
            .memory_bytes = 64ull << 20,
            .disk_bytes = 64ull << 20,
            .pids = 32,
            .network = egress::Policy::DenyAll()};
  }
  std::string CodeOfMaking(const std::string& id) {
    const auto made = driver().Create(Spec(id));
    words_ = made ? "" : made.error().message;
    return made ? "fine" : std::string(made.error().code.name);
  }
  std::string Say(const std::string& id, const std::string& code) {
    const Ran ran = Python(driver(), id, code);
    return ran.error + ran.out;
  }
  std::string StateOf(const std::string& id) {
    const auto list = driver().List();
    if (!list) return list.error().message;
    for (const Machine& machine : *list) {
      if (machine.id == id) return std::string(NameOf(machine.state));
    }
    return "none";
  }
  // Of the container that holds it.
  std::string ContainerOf(const std::string& id) {
    for (const auto& entry : std::filesystem::directory_iterator(helper_->state() + "/machines")) {
      const auto record = ReadRecord(entry.path(), entry.path().filename());
      if (record && record->spec.id == id) return entry.path().filename();
    }
    return "";
  }
  std::string Engine(std::vector<std::string> words) {
    words.insert(words.begin(), program_);
    const auto end = os::RunProgram({.arguments = std::move(words)});
    return end ? end->output + end->messages : end.error().message;
  }
  std::string Containers() {
    return Engine({"ps", "--all", "--quiet", "--filter=label=caisson.state=" + helper_->state()});
  }
  std::string AwaitNoContainers() {
    std::string left;
    for (int i = 0; i < 100; ++i) {
      left = Containers();
      if (left.empty()) break;
      std::this_thread::sleep_for(100ms);
    }
    return left;
  }

  std::string program_, stand_in_, words_;
  std::unique_ptr<WithVariable> path_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<Driver> driver_;
};

TEST_P(EngineFaults, ACommandThatIsNotThereIsTold) {
  const WithVariable path("PATH", "/nowhere");
  const auto runtime = ChooseRuntime(GetParam());
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code.name, "oci.unavailable");
  EXPECT_NE(runtime.error().message.find("install it"), std::string::npos);
}

TEST_P(EngineFaults, ContainersNameTheirMachineAndItsStateAndGoWithIt) {
  Start();
  ASSERT_EQ(CodeOfMaking("labelled"), "fine") << words_;
  const std::string name = ContainerOf("labelled");
  EXPECT_EQ(Engine({"inspect", "--format", "{{index .Config.Labels \"caisson.machine\"}}", name}),
            name + "\n");
  EXPECT_NE(Containers(), "");
  // Its first process has laid down every right, and the guest does not see it.
  const std::string pid = Engine({"inspect", "--format", "{{.State.Pid}}", name});
  const std::string status = ContentOf("/proc/" + pid.substr(0, pid.find('\n')) + "/status");
  EXPECT_NE(status.find("CapEff:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("CapPrm:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
  EXPECT_EQ(Say("labelled", "print(open('/proc/1/comm').read().strip())"), "caisson-agent\n");
  EXPECT_TRUE(driver().Destroy("labelled"));
  EXPECT_EQ(Containers(), "");
}

TEST_P(EngineFaults, AContainerThatIsRemovedBehindOurBackIsAMachineThatIsStopped) {
  Start();
  ASSERT_EQ(CodeOfMaking("robbed"), "fine") << words_;
  EXPECT_EQ(Say("robbed", "import os; open('/kept', 'w').write('1'); os.sync()"), "");
  (void)Engine({"rm", "--force", ContainerOf("robbed")});
  for (int i = 0; i < 100 && StateOf("robbed") == "running"; ++i) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(StateOf("robbed"), "stopped");
  const auto resumed = driver().Resume("robbed");
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(Say("robbed", "print(open('/kept').read())"), "1\n");
  EXPECT_TRUE(driver().Destroy("robbed"));
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, WhoPausesTheContainerStopsNothingAndHindersNoEnd) {
  Start();
  ASSERT_EQ(CodeOfMaking("paused"), "fine") << words_;
  (void)Engine({"pause", ContainerOf("paused")});
  EXPECT_EQ(Say("paused", "print(1)"), "1\n");
  const auto gone = driver().Destroy("paused");
  EXPECT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(AwaitNoContainers(), "");
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, AnInspectThatNamesAnotherProcessIsNotBelieved) {
  StandIn("[ \"$1 $2\" = \"container inspect\" ] || [ \"$2 $3\" = \"container inspect\" ]",
          "echo $$; exit");
  Start();
  EXPECT_EQ(CodeOfMaking("lied"), "oci.engine_untrue") << words_;
  EXPECT_EQ(StateOf("lied"), "none");
  EXPECT_EQ(AwaitNoContainers(), "");
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, AnEngineThatStartsNothingIsTold) {
  StandIn("[ \"$1\" = run ] || [ \"$2\" = run ]", "exit 0");
  Start();
  EXPECT_EQ(CodeOfMaking("nothing"), "oci.failed") << words_;
  EXPECT_NE(words_.find("nothing has begun"), std::string::npos) << words_;
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, AnEngineThatHangsIsToldInTime) {
  StandIn("[ \"$1\" = run ] || [ \"$2\" = run ]", "exec sleep 300");
  Start();
  EXPECT_EQ(CodeOfMaking("hung"), "oci.engine_silent") << words_;
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, AnotherImageUnderTheNameOfOursIsRefused) {
  Start();
  const std::string name = Engine(
      {"image", "ls", "--format={{.Repository}}:{{.Tag}}", "--filter=reference=*container-init"});
  const std::string first = name.substr(0, name.find('\n'));
  ASSERT_NE(first, "");
  const std::string file = helper_->directory() + "/other.tar";
  std::ofstream(file) << InitImage("another program");
  (void)Engine({"image", "rm", "--force", first});
  (void)Engine({"import", file, first});
  helper_->Stop();
  const auto opened = oci::Engine::Open(*ChooseRuntime(GetParam()), CAISSON_TEST_CONTAINER_INIT,
                                        helper_->directory(), helper_->state());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code.name, "oci.unavailable");
  EXPECT_NE(opened.error().message.find("another image"), std::string::npos);
  (void)Engine({"image", "rm", "--force", first});
}

TEST_P(EngineFaults, AContainerWithoutAMachineIsSweptByTheNextHelper) {
  Start();
  ASSERT_EQ(CodeOfMaking("lost"), "fine") << words_;
  const std::string name = ContainerOf("lost");
  helper_->Kill();
  std::filesystem::rename(helper_->state() + "/machines/" + name, helper_->directory() + "/taken");
  EXPECT_NE(Containers(), "");
  helper_->Start();
  ASSERT_TRUE(helper_->Open());
  EXPECT_EQ(AwaitNoContainers(), "");
  std::error_code error;
  std::filesystem::remove_all(helper_->directory() + "/taken", error);
}

TEST_P(EngineFaults, MachinesOutliveDockersServiceAndCanBeEndedWithoutIt) {
  if (GetParam() != "docker") GTEST_SKIP() << "Podman has no service";
  Start();
  ASSERT_EQ(CodeOfMaking("alone"), "fine") << words_;
  ASSERT_EQ(CodeOfMaking("other"), "fine") << words_;
  Docker().End(SIGKILL);
  EXPECT_EQ(Say("alone", "print(1)"), "1\n");
  EXPECT_EQ(CodeOfMaking("late"), "oci.engine_silent") << words_;
  EXPECT_TRUE(driver().Destroy("alone"));
  EXPECT_EQ(StateOf("alone"), "none");
  Docker().Start();
  ASSERT_TRUE(TestDocker::Answers());
  EXPECT_EQ(CodeOfMaking("late"), "fine") << words_;
  EXPECT_EQ(Say("late", "print(2)"), "2\n");
  EXPECT_TRUE(driver().Destroy("late"));
  EXPECT_TRUE(driver().Destroy("other"));
  EXPECT_EQ(AwaitNoContainers(), "");
  EXPECT_EQ(AwaitNoTraces(*helper_), "");
}

TEST_P(EngineFaults, AServiceThatIsNotThereIsTold) {
  if (GetParam() != "docker") GTEST_SKIP() << "Podman has no service";
  const WithVariable host("DOCKER_HOST", "unix:///nowhere/docker.sock");
  const auto runtime = ChooseRuntime("docker");
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code.name, "oci.unavailable");
}

INSTANTIATE_TEST_SUITE_P(Podman, EngineFaults, testing::Values("podman"),
                         [](const auto& engine) { return engine.param; });
INSTANTIATE_TEST_SUITE_P(Docker, EngineFaults, testing::Values("docker"),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace caisson::machine::oci
