// SPDX-License-Identifier: Apache-2.0
// That what we ask of Firecracker keeps to the rules of its API, and that the double refuses what
// does not: else the first says nothing.
#include "machine/firecracker/calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "json/reader.h"
#include "json/writer.h"
#include "machine/firecracker/fake/api_model.h"
#include "machine/firecracker/jail.h"

namespace caisson::machine::firecracker {
namespace {

using fake::Answer;
using fake::ApiModel;

class Nothing final : public fake::Effects {
 public:
  std::string Boot(const json::Object&) override { return Did("boot"); }
  std::string Load(const json::Value&, json::Object& resources) override {
    resources = json::Object{{"/drives/disk", json::Object{}}};
    return Did("load");
  }
  std::string Save(const json::Value&, const json::Object&) override { return Did("save"); }
  void Pause() override { Did("pause"); }
  void Resume() override { Did("resume"); }
  std::vector<std::string> did;

 private:
  std::string Did(const char* what) {
    did.emplace_back(what);
    return "";
  }
};

class Calls : public testing::Test {
 protected:
  static microvm::Plan PlanFor(bool network) {
    microvm::Plan plan;
    plan.processors = 2;
    plan.ram_bytes = 208u << 20;
    plan.network = network;
    return plan;
  }
  // Files that are in a jail are not here: in their place one that is.
  static std::string BodyOf(const Call& call) {
    json::Value body = call.body;
    for (const char* file : {"kernel_image_path", "initrd_path", "path_on_host"}) {
      if (body.Find(file) != nullptr) body.mutable_object().Set(file, "/dev/null");
    }
    if (call.path == "/snapshot/load") {
      body.mutable_object().Set("snapshot_path", "/dev/null");
      body.mutable_object()
          .FindMutable("mem_backend")
          ->mutable_object()
          .Set("backend_path", "/dev/null");
    }
    return json::Write(body).value();
  }
  std::string Do(const Call& call) {
    const Answer answer = model_.Handle(call.method, call.path, BodyOf(call));
    return answer.status == 204 ? "" : answer.body;
  }
  std::string Ask(const char* method, const char* path, const char* body) {
    return model_.Handle(method, path, body).body;
  }
  void Boot(bool network = true) {
    for (const Call& call : BootCalls(PlanFor(network))) ASSERT_EQ(Do(call), "") << call.path;
  }
  Nothing nothing_;
  ApiModel model_{nothing_};
};

TEST_F(Calls, AMachineBootsIsPausedSavedAndGoesOn) {
  Boot();
  for (const Call& call : {PauseCall(), SaveCall(), ResumeCall(), GrownDiskCall()}) {
    EXPECT_EQ(Do(call), "") << call.path;
  }
  EXPECT_EQ(nothing_.did, (std::vector<std::string>{"boot", "pause", "save", "resume"}));
  EXPECT_TRUE(model_.resources().Contains("/network-interfaces/eth0"));
  EXPECT_EQ(model_.resources().Find("/machine-config")->Find("mem_size_mib")->as_int(), 208);
}

TEST_F(Calls, WithoutNetworksThereIsNoCard) {
  Boot(false);
  EXPECT_FALSE(model_.resources().Contains("/network-interfaces/eth0"));
}

TEST_F(Calls, AMachineGoesOnFromWhatWasSavedWithoutAnotherCall) {
  for (const Call& call : LoadCalls(PlanFor(true))) EXPECT_EQ(Do(call), "") << call.path;
  EXPECT_EQ(nothing_.did, (std::vector<std::string>{"load", "resume"}));
  EXPECT_EQ(Do(GrownDiskCall()), "");
}

TEST_F(Calls, TheDoubleRefusesWhatIsOutOfOrder) {
  EXPECT_NE(Do(PauseCall()).find("before starting"), std::string::npos);
  EXPECT_NE(Do(SaveCall()).find("before starting"), std::string::npos);
  EXPECT_NE(Ask("PUT", "/actions", R"({"action_type":"InstanceStart"})").find("kernel"),
            std::string::npos);
  Boot();
  EXPECT_NE(Do(SaveCall()).find("is running"), std::string::npos);
  EXPECT_NE(Do(BootCalls(PlanFor(false)).front()).find("after starting"), std::string::npos);
  EXPECT_NE(Do(LoadCalls(PlanFor(false)).front()).find("after starting"), std::string::npos);
  EXPECT_EQ(nothing_.did, (std::vector<std::string>{"boot"}));
}

TEST_F(Calls, TheDoubleLoadsOnlyIntoAFreshProcess) {
  ASSERT_EQ(Do(BootCalls(PlanFor(false)).front()), "");
  EXPECT_NE(Do(LoadCalls(PlanFor(false)).front()).find("not allowed after configuring"),
            std::string::npos);
}

TEST_F(Calls, TheDoubleRefusesWhatItDoesNotKnow) {
  EXPECT_NE(Ask("PUT", "/vsock", R"({"guest_cid":3,"uds_path":"/v","more":1})").find("unknown"),
            std::string::npos);
  EXPECT_NE(Ask("PUT", "/vsock", R"({"guest_cid":2,"uds_path":"/v"})").find("invalid value"),
            std::string::npos);
  EXPECT_NE(Ask("PUT", "/vsock", R"({"guest_cid":3})").find("missing field"), std::string::npos);
  EXPECT_NE(Ask("PUT", "/vsock", R"({"guest_cid":"3","uds_path":"/v"})").find("invalid type"),
            std::string::npos);
  EXPECT_NE(Ask("PUT", "/vsock", "no json").find("deserializing"), std::string::npos);
  EXPECT_NE(Ask("PUT", "/drives/a-b", "{}").find("alphanumeric"), std::string::npos);
  EXPECT_NE(Ask("PUT", "/drives/a",
                R"({"drive_id":"b","is_root_device":false,"is_read_only":true,)"
                R"("path_on_host":"/dev/null"})")
                .find("does not match"),
            std::string::npos);
  EXPECT_NE(Ask("PUT", "/nothing", "{}").find("Invalid request method"), std::string::npos);
  EXPECT_NE(Ask("POST", "/vsock", "{}").find("Invalid request method"), std::string::npos);
  EXPECT_EQ(model_.state(), ApiModel::State::kFresh);
}

TEST(Jailer, IsToldOfAJailInWhichEveryPathIsTheSame) {
  microvm::Plan plan;
  plan.uid = 1'879'048'192;
  plan.scratch = "/state/scratch";
  plan.firecracker = "/opt/firecracker-v1.12.1";
  plan.jailer = "/opt/jailer";
  plan.jail_name = "caisson-01234567-3-89abcdef";
  plan.network_namespace = "/run/net/7";
  EXPECT_EQ(JailOf(plan), "/state/scratch/firecracker-v1.12.1/caisson-01234567-3-89abcdef/root");
  EXPECT_EQ(
      JailerCommand(plan),
      (std::vector<std::string>{"/opt/jailer", "--id", "caisson-01234567-3-89abcdef", "--exec-file",
                                "/opt/firecracker-v1.12.1", "--uid", "1879048192", "--gid",
                                "1879048192", "--chroot-base-dir", "/state/scratch", "--new-pid-ns",
                                "--netns", "/run/net/7", "--", "--api-sock", "/run/api.sock"}));
  plan.network_namespace.clear();
  const auto words = JailerCommand(plan);
  EXPECT_EQ(std::ranges::find(words, "--netns"), words.end());
}

TEST(FirecrackerKernelCommand, TellsTheAgentsPortAndLeavesModulesOn) {
  const std::string words = KernelCommand();
  EXPECT_NE(words.find(" caisson.vsock=1000"), std::string::npos);
  EXPECT_EQ(words.find("nomodule"), std::string::npos) << "the guest's devices are modules";
}

}  // namespace
}  // namespace caisson::machine::firecracker
