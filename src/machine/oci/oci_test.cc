// SPDX-License-Identifier: Apache-2.0
// Names, config.json and command lines; nothing here runs a container runtime.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "errors/oci.h"
#include "jail/interpreter_syscalls.h"
#include "json/reader.h"
#include "machine/oci/names.h"
#include "machine/oci/policy.h"
#include "machine/oci/runtime.h"

namespace caisson::machine::oci {
namespace {

constexpr const char* kDigest =
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const json::Value* At(const json::Value& value, std::initializer_list<std::string_view> keys) {
  const json::Value* at = &value;
  for (const std::string_view key : keys) at = at == nullptr ? nullptr : at->Find(key);
  return at;
}

std::set<std::string> TypesIn(const json::Value* namespaces) {
  std::set<std::string> types;
  for (const json::Value& entry : namespaces->as_array()) {
    types.insert(entry.Find("type")->as_string());
  }
  return types;
}

TEST(ImageReference, TakesRegistriesPortsTagsAndDigests) {
  const struct {
    std::string text, registry, repository, tag, digest;
  } cases[] = {
      {"python-science", "", "python-science", "", ""},
      {"guardian/python-sandbox:latest", "", "guardian/python-sandbox", "latest", ""},
      {"localhost/tool:1", "localhost", "tool", "1", ""},
      {"registry.example:5000/team/tool:1.2_3", "registry.example:5000", "team/tool", "1.2_3", ""},
      {std::string("tool@") + kDigest, "", "tool", "", kDigest},
      {std::string("registry.example:5000/a/b:v1@") + kDigest, "registry.example:5000", "a/b", "v1",
       kDigest},
  };
  for (const auto& test : cases) {
    const auto image = ParseImageReference(test.text);
    ASSERT_TRUE(image) << test.text;
    EXPECT_EQ(image->registry, test.registry) << test.text;
    EXPECT_EQ(image->repository, test.repository) << test.text;
    EXPECT_EQ(image->tag, test.tag) << test.text;
    EXPECT_EQ(image->digest, test.digest) << test.text;
    EXPECT_EQ(image->ToText(), test.text);
  }
}

TEST(ImageReference, RefusesWhatCouldBeAnythingElse) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "--privileged",
                                          "-v",
                                          "a b",
                                          "a\nb",
                                          "a;b",
                                          "a$(b)",
                                          "Tool",
                                          "a//b",
                                          "/a",
                                          "a/",
                                          "a:",
                                          "a@",
                                          "a@sha256:12",
                                          "a@md5:0123",
                                          "../a",
                                          "a/../b",
                                          "a..b",
                                          ".a",
                                          "host:port/a",
                                          "host:123456/a",
                                          "a:-v",
                                          "a:b:c",
                                          "a=b",
                                          "a,b",
                                          std::string("a\0b", 3),
                                          std::string(300, 'a'),
                                          std::string("a@") + kDigest + "0",
                                          "a\xc3\xa4"};
  for (const std::string& text : texts) {
    const auto image = ParseImageReference(text);
    ASSERT_FALSE(image) << text;
    EXPECT_EQ(image.error().code, errors::kOciBadName);
  }
}

TEST(ContainerName, IsLettersDigitsAndFewMarks) {
  EXPECT_TRUE(IsContainerName("caisson.12-345.0a1b2c-7"));
  for (const std::string& text :
       {std::string(), std::string("-a"), std::string(".a"), std::string("a/b"), std::string("a b"),
        std::string("a\n"), std::string(129, 'a')}) {
    EXPECT_FALSE(IsContainerName(text)) << text;
  }
}

class Config : public testing::Test {
 protected:
  json::Value Make(DangerouslyWithout without = {}) {
    ContainerPolicy policy;
    policy.root = "/image/root";
    policy.arguments = {"python3", "-I"};
    policy.cgroup = "caisson.1-2.x";
    policy.memory_bytes = 256u << 20;
    policy.cpus = 1.5;
    policy.pids = 64;
    policy.tmp_bytes = 1u << 20;
    policy.syscalls = rules_;
    policy.without = without;
    return RuntimeConfig(policy);
  }
  std::vector<os::SyscallRule> rules_ = jail::ContainerSyscalls(std::nullopt, false);
};

TEST_F(Config, GrantsNothing) {
  const json::Value config = Make();
  EXPECT_EQ(At(config, {"root", "path"})->as_string(), "/image/root");
  EXPECT_TRUE(At(config, {"root", "readonly"})->as_bool());
  EXPECT_TRUE(At(config, {"process", "noNewPrivileges"})->as_bool());
  EXPECT_FALSE(At(config, {"process", "terminal"})->as_bool());
  EXPECT_EQ(At(config, {"process", "user", "uid"})->as_int(), 1001);
  EXPECT_EQ(At(config, {"process", "user", "gid"})->as_int(), 1001);
  EXPECT_EQ(At(config, {"process", "rlimits"}), nullptr);
  EXPECT_EQ(At(config, {"hooks"}), nullptr);
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    EXPECT_TRUE(At(config, {"process", "capabilities", set})->as_array().empty()) << set;
  }
  EXPECT_EQ(TypesIn(At(config, {"linux", "namespaces"})),
            (std::set<std::string>{"mount", "pid", "network", "ipc", "uts", "cgroup"}));
  for (const json::Value& entry : At(config, {"linux", "namespaces"})->as_array()) {
    EXPECT_EQ(entry.Find("path"), nullptr) << "a namespace of somebody else";
  }
}

TEST_F(Config, LimitsMemoryProcessorsAndProcesses) {
  const json::Value config = Make();
  EXPECT_EQ(At(config, {"linux", "cgroupsPath"})->as_string(), "caisson.1-2.x");
  EXPECT_EQ(At(config, {"linux", "resources", "memory", "limit"})->as_int(), 256 << 20);
  EXPECT_EQ(At(config, {"linux", "resources", "memory", "swap"})->as_int(), 256 << 20);
  EXPECT_EQ(At(config, {"linux", "resources", "cpu", "quota"})->as_int(), 150'000);
  EXPECT_EQ(At(config, {"linux", "resources", "cpu", "period"})->as_int(), 100'000);
  EXPECT_EQ(At(config, {"linux", "resources", "pids", "limit"})->as_int(), 64);
  const json::Value& devices = At(config, {"linux", "resources", "devices"})->as_array().at(0);
  EXPECT_FALSE(devices.Find("allow")->as_bool());
}

TEST_F(Config, NothingCanBeWrittenButTmpfs) {
  const json::Value config = Make();
  for (const json::Value& mount : At(config, {"mounts"})->as_array()) {
    const std::string type = mount.Find("type")->as_string();
    EXPECT_TRUE(type == "tmpfs" || type == "proc") << type;
    std::set<std::string> options;
    for (const json::Value& option : mount.Find("options")->as_array()) {
      options.insert(option.as_string());
    }
    EXPECT_TRUE(options.contains("nosuid") && options.contains("noexec"));
    if (mount.Find("destination")->as_string() == "/tmp") {
      EXPECT_TRUE(options.contains("size=1048576"));
    }
  }
}

TEST_F(Config, MasksWhatTheKernelTells) {
  const json::Value config = Make();
  std::set<std::string> masked;
  for (const json::Value& path : At(config, {"linux", "maskedPaths"})->as_array()) {
    masked.insert(path.as_string());
  }
  for (const char* path : {"/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/timer_list"}) {
    EXPECT_TRUE(masked.contains(path)) << path;
  }
  EXPECT_FALSE(At(config, {"linux", "readonlyPaths"})->as_array().empty());
}

TEST_F(Config, SeccompIsTheJailsOwnList) {
  const json::Value config = Make();
  const json::Value* seccomp = At(config, {"linux", "seccomp"});
  ASSERT_NE(seccomp, nullptr);
  EXPECT_EQ(seccomp->Find("defaultAction")->as_string(), "SCMP_ACT_ERRNO");
  EXPECT_EQ(seccomp->Find("defaultErrnoRet")->as_int(), EPERM);
  const json::Array& entries = seccomp->Find("syscalls")->as_array();
  ASSERT_EQ(entries.size(), rules_.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].Find("names")->as_array().at(0).as_string(), rules_[i].name);
    EXPECT_EQ(entries[i].Find("args") != nullptr, !rules_[i].checks.empty()) << rules_[i].name;
    if (entries[i].Find("action")->as_string() == "SCMP_ACT_ALLOW") names.insert(rules_[i].name);
  }
  for (const char* name : {"socket", "ptrace", "io_uring_setup", "userfaultfd", "keyctl", "bpf",
                           "mount", "unshare", "setns", "fork", "vfork", "clone3"}) {
    EXPECT_FALSE(names.contains(name)) << name;
  }
  EXPECT_TRUE(names.contains("execve"));  // the interpreter itself; the script's filter closes it
}

TEST_F(Config, EachWallCanBeLeftOutAloneAndOnlyByName) {
  const json::Value whole = Make();
  for (std::size_t i = 0; i < kWallCount; ++i) {
    const auto wall = static_cast<Wall>(i);
    EXPECT_FALSE(Make(DangerouslyWithout({wall})) == whole) << NameOf(wall);
  }
}

class Engine : public testing::Test {
 protected:
  std::vector<std::string> Make(RuntimeKind kind) {
    ContainerPolicy policy;
    policy.arguments = {"python3", "-I", "-c", "pass"};
    return EngineCommand({.kind = kind, .program = "/usr/bin/engine", .version = {}}, policy,
                         {.name = "caisson.1-2.x-0",
                          .owner = "caisson.1-2.x",
                          .image = kDigest,
                          .seccomp_file = "/run/x/seccomp.json"});
  }
};

TEST_F(Engine, RunsWithEveryFlagOfTheContainerMode) {
  for (const RuntimeKind kind : {RuntimeKind::kDocker, RuntimeKind::kPodman}) {
    const std::vector<std::string> words = Make(kind);
    const std::set<std::string> flags(words.begin(), words.end());
    for (const char* flag :
         {"run", "--rm", "--interactive", "--name=caisson.1-2.x-0", "--network=none",
          "--cap-drop=ALL", "--security-opt=no-new-privileges",
          "--security-opt=seccomp=/run/x/seccomp.json", "--user=1001:1001", "--read-only",
          "--log-driver=none", "--pull=never", "--memory=536870912", "--memory-swap=536870912",
          "--cpus=1.000", "--pids-limit=128", "--init", "--entrypoint=python3"}) {
      EXPECT_TRUE(flags.contains(flag)) << NameOf(kind) << " " << flag;
    }
    EXPECT_TRUE(
        flags.contains(kind == RuntimeKind::kDocker
                           ? "--tmpfs=/tmp:rw,noexec,nosuid,nodev,mode=1777,size=67108864,"
                             "nr_inodes=16384"
                           : "--tmpfs=/tmp:rw,noexec,nosuid,nodev,mode=1777,size=67108864"));
    for (const char* opening : {"--privileged", "--volume", "-v", "--mount", "--device",
                                "--cap-add", "--pid=host", "--ipc=host"}) {
      EXPECT_FALSE(flags.contains(opening)) << opening;
    }
    // The image, then what runs in it.
    EXPECT_EQ(words[words.size() - 4], kDigest);
    EXPECT_EQ(words.back(), "pass");
  }
}

TEST(EngineGaps, AreWhatTheEngineDoesNotEnforce) {
  const auto docker = [](const char* text) {
    return FindGaps(RuntimeKind::kDocker, json::Read(text).value());
  };
  EXPECT_TRUE(docker(R"({"MemoryLimit":true,"SwapLimit":true,"PidsLimit":true,"CpuCfsQuota":true,
                         "SecurityOptions":["name=seccomp,profile=default"]})")
                  .empty());
  EXPECT_EQ(docker(R"({"MemoryLimit":true,"SwapLimit":false,"PidsLimit":true,"CpuCfsQuota":true,
                       "SecurityOptions":["name=seccomp"]})"),
            std::vector<std::string>{"limits on swap"});
  EXPECT_EQ(docker("{}").size(), 5U);
  const auto podman = [](const char* text) {
    return FindGaps(RuntimeKind::kPodman, json::Read(text).value());
  };
  EXPECT_TRUE(podman(R"({"host":{"cgroupControllers":["cpu","memory","pids"],
                         "security":{"seccompEnabled":true}}})")
                  .empty());
  EXPECT_EQ(podman(R"({"host":{"cgroupControllers":["memory","pids"],
                       "security":{"seccompEnabled":false}}})"),
            (std::vector<std::string>{"the cgroup controller cpu", "seccomp"}));
  EXPECT_EQ(podman("{}").size(), 4U);
}

TEST(RuntimeProbe, SaysWhatIsMissing) {
  const auto runtime = ProbeRuntime(RuntimeKind::kPodman, "/no/such/podman");
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code, errors::kOciUnavailable);
  EXPECT_NE(runtime.error().message.find("/no/such/podman"), std::string::npos);
  EXPECT_FALSE(ProbeRuntime(RuntimeKind::kDocker, "/bin/false"));
}

}  // namespace
}  // namespace caisson::machine::oci
