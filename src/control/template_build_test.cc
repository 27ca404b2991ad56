// SPDX-License-Identifier: Apache-2.0
// Builds of templates over the real agent, in a pid namespace of its own, and a driver that keeps
// what it was told. The agent sees the host's files: steps stay in its folder.
#include "control/template_build.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/agent_under_test.h"
#include "control/fake_driver.h"
#include "errors/control.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

class TemplateDriver final : public FakeDriver {
 public:
  machine::Capabilities capabilities() const override {
    machine::Capabilities capabilities = FakeDriver::capabilities();
    capabilities.snapshot = snapshots;
    return capabilities;
  }
  Result<os::UniqueFd> Connect(const std::string&) override { return agent.Connect(); }
  Result<machine::Snapshot> TakeSnapshot(const std::string& id, const std::string& snapshot,
                                         machine::Extent most) override {
    EXPECT_EQ(most, machine::Extent::kFilesystem) << "no process of the build goes on";
    taken.push_back(id + " as " + snapshot);
    return machine::Snapshot{.id = snapshot, .image = {}, .disk_bytes = 1, .stored_bytes = 2};
  }

  agent::AgentUnderTest agent;
  machine::Extent snapshots = machine::Extent::kFilesystem;
  std::vector<std::string> taken;
};

class TemplateBuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "namespaces for the agent need root";
    driver_ = std::make_unique<TemplateDriver>();
  }
  Result<machine::Snapshot> Build(const std::string& dockerfile) {
    build_.machine.id = "build-1";
    build_.snapshot = "template-1";
    build_.file =
        images::ParseDockerfile(dockerfile, {.images = {{"devbox:1", "devbox:1"}}}).value();
    log_.clear();
    return BuildTemplate(
        *driver_, build_,
        [&](const TemplateLog& line) {
          log_ += (line.level == TemplateLog::Level::kError ? "! " : "") + line.line + "\n";
          if (line.line == "stop here") stop_.request_stop();
        },
        stop_.get_token());
  }
  std::string Refusal(const std::string& dockerfile) {
    const auto built = Build(dockerfile);
    EXPECT_TRUE(driver_->taken.empty());
    EXPECT_TRUE(driver_->machines.empty());
    return built ? "built" : std::string(built.error().code.name) + ": " + built.error().message;
  }

  std::unique_ptr<TemplateDriver> driver_;
  TemplateBuild build_;
  std::string log_;
  std::stop_source stop_;
};

TEST_F(TemplateBuildTest, runs_the_steps_and_keeps_the_disk) {
  const std::string folder = driver_->agent.folder();
  const auto built = Build("FROM devbox:1\nENV WHO=world\nWORKDIR " + folder +
                           "/app\nRUN echo \"hello $WHO\" > greeting; pwd; echo careful >&2\n");
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->id, "template-1");
  EXPECT_EQ(driver_->taken, std::vector<std::string>{"build-1 as template-1"});
  EXPECT_TRUE(driver_->machines.empty());
  std::string greeting;
  std::getline(std::ifstream(folder + "/app/greeting"), greeting);
  EXPECT_EQ(greeting, "hello world");
  EXPECT_NE(log_.find("Step 1/2: WORKDIR " + folder + "/app\n"), std::string::npos) << log_;
  EXPECT_NE(log_.find("\n" + folder + "/app\n"), std::string::npos) << log_;
  EXPECT_NE(log_.find("\ncareful\n"), std::string::npos) << log_;
}

TEST_F(TemplateBuildTest, a_step_that_fails_ends_the_build) {
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN true\n\nRUN exit 7\nRUN echo never\n"),
            "control.template_failed: line 4: the command ended with exit code 7");
  EXPECT_TRUE(log_.ends_with("! line 4: the command ended with exit code 7\n")) << log_;
  EXPECT_EQ(log_.find("never"), std::string::npos);
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN kill -9 $$\n"),
            "control.template_failed: line 2: the command was ended by signal 9");
  EXPECT_TRUE(Refusal("FROM devbox:1\nRUN [\"/nonexistent\"]\n")
                  .starts_with("control.template_failed: line 2: the command cannot be started"));
}

TEST_F(TemplateBuildTest, ends_in_time_and_when_it_is_stopped) {
  build_.time_limit = std::chrono::milliseconds(500);
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN sleep 100\n"),
            "control.template_failed: line 2: the time for the build is over");
  build_.time_limit = std::chrono::minutes(1);
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN echo stop here; sleep 100\n"),
            "control.template_stopped: the build was stopped");
}

TEST_F(TemplateBuildTest, waits_for_its_machine_to_be_prepared) {
  int asked = 0;
  driver_->before = [&](const std::string& operation, const std::string&) -> Result<void> {
    if (operation != "create" || ++asked > 2) return {};
    return Fail(errors::kMachinePreparing, "ask again");
  };
  EXPECT_TRUE(Build("FROM devbox:1\nRUN true\n"));
  EXPECT_EQ(asked, 3);
  driver_->taken.clear();
  driver_->machines.clear();
  asked = -1'000'000;
  build_.time_limit = std::chrono::milliseconds(300);
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN true\n"), "machine.preparing: ask again");
  build_.time_limit = std::chrono::minutes(1);
  stop_.request_stop();
  EXPECT_EQ(Refusal("FROM devbox:1\nRUN true\n"),
            "control.template_stopped: the build was stopped");
}

TEST_F(TemplateBuildTest, output_is_bounded_and_fit_to_be_shown) {
  build_.max_log_bytes = 1000;
  ASSERT_TRUE(Build("FROM devbox:1\nRUN yes | head -c 100000; printf 'a\\033[31mb'\n"));
  EXPECT_LT(log_.size(), 1400u);
  EXPECT_NE(log_.find("more output, which is left out"), std::string::npos);
  build_.max_log_bytes = 1 << 20;
  ASSERT_TRUE(Build("FROM devbox:1\nRUN printf 'a\\033[31mb\\377'\n"));
  EXPECT_NE(log_.find("\na\\x1b[31mb\\xff\n"), std::string::npos) << log_;
}

TEST_F(TemplateBuildTest, a_driver_without_snapshots_is_refused_before_anything_runs) {
  driver_->snapshots = machine::Extent::kNone;
  EXPECT_TRUE(
      Refusal("FROM devbox:1\nRUN true\n").starts_with("control.template_failed: the driver"));
  EXPECT_EQ(log_, "");
}

}  // namespace
}  // namespace caisson::control
