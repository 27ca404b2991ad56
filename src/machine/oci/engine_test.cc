// SPDX-License-Identifier: Apache-2.0
// The image and the command line of containers that hold machines; nothing here runs an engine.
#include "machine/oci/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace caisson::machine::oci {
namespace {

std::vector<std::string> Words(RuntimeKind kind) {
  const Engine engine({.kind = kind, .program = "/usr/bin/engine", .version = {}},
                      "/var/lib/state");
  return engine.StartCommand({.name = "caisson-ab-1-cd",
                              .handover = "/var/lib/state/handover",
                              .seccomp_file = "/var/lib/state/seccomp.json"});
}

TEST(EngineContainer, HasOneCapabilityOneDirectoryAndNoNetwork) {
  for (const RuntimeKind kind : {RuntimeKind::kDocker, RuntimeKind::kPodman}) {
    const std::vector<std::string> words = Words(kind);
    const std::set<std::string> flags(words.begin(), words.end());
    for (const char* flag :
         {"--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--cap-add=SYS_ADMIN",
          "--security-opt=no-new-privileges", "--security-opt=seccomp=/var/lib/state/seccomp.json",
          "--pull=never", "--ipc=private", "--label=caisson.machine=caisson-ab-1-cd",
          "--label=caisson.state=/var/lib/state", "--name=caisson-ab-1-cd"}) {
      EXPECT_TRUE(flags.contains(flag)) << NameOf(kind) << " " << flag;
    }
    for (const char* opening : {"--privileged", "--pid=host", "--ipc=host", "--network=host",
                                "--security-opt=seccomp=unconfined", "--device"}) {
      EXPECT_FALSE(flags.contains(opening)) << NameOf(kind) << " " << opening;
    }
    const auto begins = [&words](const std::string& start) {
      return std::ranges::count_if(
          words, [&start](const std::string& word) { return word.starts_with(start); });
    };
    EXPECT_EQ(begins("--mount="), 1);
    EXPECT_EQ(begins("--volume"), 0);
    EXPECT_EQ(begins("--cap-add="), 1);
    EXPECT_EQ(words.back(), "/caisson-container-init");
  }
}

TEST(EngineContainer, RaisesNoLimitInPodman) {
  const std::vector<std::string> words = Words(RuntimeKind::kPodman);
  for (const std::string start : {"--ulimit=nofile=", "--ulimit=nproc="}) {
    const auto found = std::ranges::find_if(
        words, [&start](const std::string& word) { return word.starts_with(start); });
    ASSERT_NE(found, words.end()) << start;
    EXPECT_EQ(found->find('-', start.size()), std::string::npos) << *found;
  }
}

TEST(InitImage, IsATarOfOneProgramAndAlwaysTheSame) {
  const std::string program(700, 'x');
  const std::string tar = InitImage(program);
  EXPECT_EQ(tar, InitImage(program));
  ASSERT_EQ(tar.size() % 512, 0U);
  std::vector<std::string> names;
  std::string content;
  for (std::size_t at = 0; at + 512 <= tar.size() && tar[at] != '\0';) {
    const std::string header = tar.substr(at, 512);
    EXPECT_EQ(header.substr(257, 5), "ustar");
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i) {
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
    }
    EXPECT_EQ(std::stoul(header.substr(148, 6), nullptr, 8), sum);
    names.emplace_back(header.c_str());
    const std::size_t size = std::stoul(header.substr(124, 11), nullptr, 8);
    if (size > 0) content = tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  EXPECT_EQ(names.size(), 8U);
  EXPECT_EQ(names.back(), "./caisson-container-init");
  EXPECT_EQ(content, program);
}

}  // namespace
}  // namespace caisson::machine::oci
