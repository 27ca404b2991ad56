// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/machine_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caisson::machine::oci {
namespace {

MachineBundle Bundle(RuntimeKind kind) {
  return {.kind = kind,
          .root = "/place/root",
          .agent = "/place/agent",
          .host_name = "box",
          .first_host_id = 0x70010000,
          .network = "/proc/1/ns/net",
          .cgroup = "caisson-1-2-3",
          .command_tasks = 2,
          .socket_directory = "/place/disk/agent",
          .processes = 40};
}

std::vector<std::string> Texts(const json::Value& array) {
  std::vector<std::string> texts;
  for (const json::Value& item : array.as_array()) texts.push_back(item.as_string());
  return texts;
}

const json::Value* MountAt(const json::Value& config, const std::string& place) {
  for (const json::Value& mount : config.Find("mounts")->as_array()) {
    if (mount.Find("destination")->as_string() == place) return &mount;
  }
  return nullptr;
}

TEST(MachineConfig, GivesTheRootOfAMachineIdsThatAreNobodysOutside) {
  for (const RuntimeKind kind : {RuntimeKind::kRunc, RuntimeKind::kRunsc}) {
    const json::Value config = MachineConfig(Bundle(kind));
    const json::Value& part = *config.Find("linux");
    for (const char* map : {"uidMappings", "gidMappings"}) {
      const json::Value& only = part.Find(map)->as_array().at(0);
      EXPECT_EQ(only.Find("containerID")->as_int(), 0);
      EXPECT_EQ(only.Find("hostID")->as_int(), 0x70010000);
      EXPECT_EQ(only.Find("size")->as_int(), 65536);
    }
    EXPECT_TRUE(config.Find("process")->Find("noNewPrivileges")->as_bool());
    EXPECT_EQ(Texts(*config.Find("process")->Find("capabilities")->Find("bounding")).size(),
              kind == RuntimeKind::kRunc ? 7U : 9U);
  }
}

TEST(MachineConfig, NeverRaisesALimit) {
  for (const RuntimeKind kind : {RuntimeKind::kRunc, RuntimeKind::kRunsc}) {
    const json::Value config = MachineConfig(Bundle(kind));
    for (const json::Value& limit : config.Find("process")->Find("rlimits")->as_array()) {
      EXPECT_EQ(limit.Find("hard")->as_int(), 0) << limit.Find("type")->as_string();
    }
  }
}

TEST(MachineConfig, TellsTheAgentHowItIsReached) {
  const json::Value runc = MachineConfig(Bundle(RuntimeKind::kRunc));
  EXPECT_EQ(Texts(*runc.Find("process")->Find("args")),
            (std::vector<std::string>{kAgentInside, "--listen-fd", "3", "--cgroup-procs", "4,5"}));
  const json::Value runsc = MachineConfig(Bundle(RuntimeKind::kRunsc));
  EXPECT_EQ(Texts(*runsc.Find("process")->Find("args")),
            (std::vector<std::string>{kAgentInside, "--listen-path", "/run/caisson/host/agent.sock",
                                      "--command-processes", "40"}));
  EXPECT_EQ(MountAt(runsc, kSocketPlace)->Find("source")->as_string(), "/place/disk/agent");
  EXPECT_EQ(MountAt(runc, kSocketPlace), nullptr);
}

TEST(MachineConfig, PutsNothingOfGvisorsOwnWhereTheDiskShouldCount) {
  const json::Value runsc = MachineConfig(Bundle(RuntimeKind::kRunsc));
  EXPECT_EQ(MountAt(runsc, "/tmp")->Find("source")->as_string(), "/place/root/tmp");
}

TEST(MachineConfig, RefusesSystemCallsWhereTheHostsKernelAnswersThem) {
  const json::Value runc = MachineConfig(Bundle(RuntimeKind::kRunc));
  EXPECT_EQ(runc.Find("linux")->Find("seccomp")->Find("defaultAction")->as_string(),
            "SCMP_ACT_ERRNO");
  EXPECT_EQ(runc.Find("linux")->Find("cgroupsPath")->as_string(), "caisson-1-2-3");
}

}  // namespace
}  // namespace caisson::machine::oci
