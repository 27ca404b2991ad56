// SPDX-License-Identifier: Apache-2.0
// For tests of machines' networks, of every driver: a helper of the driver in a world with names
// (egress/test_names.h), in which machines ask from inside their walls. The test program must be
// the gate, too: its main is RunTestsOrGate.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sanitizer.h"
#include "egress/gate/program.h"
#include "egress/test_matrix.h"
#include "egress/test_names.h"
#include "machine/test_guest.h"
#include "machine/test_helper.h"

namespace caisson::machine {

struct NetworkedDriver {
  std::string name;
  HelperProcess::Options helper;         // its network is this header's affair
  std::function<std::string()> why_not;  // why it cannot be had here; empty when it can
};
inline void PrintTo(const NetworkedDriver& driver, std::ostream* out) { *out << driver.name; }
inline std::string NameOfDriver(const testing::TestParamInfo<NetworkedDriver>& driver) {
  return driver.param.name;
}

inline egress::Policy Rules(const std::vector<std::string>& rules) {
  return egress::Policy::Parse(rules, egress::HostNames::kEnforced).value();
}

class Networked : public testing::TestWithParam<NetworkedDriver> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam().why_not(); !why.empty()) GTEST_SKIP() << why;
    if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
    if (!egress::HasNameTools()) GTEST_SKIP() << "needs curl, openssl and python3";
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer needs calls that a sealed gate has not";
    world_.emplace(egress::World::Servers::kNames);
    names_.emplace(*world_, "198.51.100.53");
    HelperProcess::Options options = GetParam().helper;
    options.network = true;
    options.names = true;
    options.nft = world_->directory() + "/nft";
    std::ofstream(options.nft) << "#!/bin/sh\n[ -e " << nft_fault() << " ] && . " << nft_fault()
                               << "\nexec nft \"$@\"\n";
    std::filesystem::permissions(options.nft, std::filesystem::perms::owner_all);
    helper_ = std::make_unique<HelperProcess>(std::move(options));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
    ASSERT_TRUE(driver_->capabilities().network);
    ASSERT_TRUE(driver_->capabilities().host_name_rules);
    ASSERT_TRUE(driver_->capabilities().shared_networks);
  }
  void TearDown() override {
    driver_.reset();
    helper_.reset();
    names_.reset();
    world_.reset();
  }

  static MachineSpec Spec(const std::string& id, const egress::Policy& policy) {
    return {.id = id,
            .image = ImageForTests(),
            .memory_bytes = 128ull << 20,
            .disk_bytes = 128ull << 20,
            .pids = 64,
            .network = policy};
  }
  Machine Make(const std::string& id, const egress::Policy& policy) {
    const auto made = driver_->Create(Spec(id, policy));
    EXPECT_TRUE(made) << made.error().message << " " << made.error().details;
    return made ? *made : Machine{};
  }

  // Runs a program of egress/test_matrix.h there: what it printed.
  std::string RunProbe(const std::string& id, const std::string& program) {
    // The image asks no name servers.
    const Ran ran = Python(
        *driver_, id, "open('/etc/nsswitch.conf', 'w').write('hosts: files dns\\n')\n" + program,
        std::chrono::minutes(3));
    return ran.out + ran.error;
  }
  std::vector<std::string> Ask(const std::string& id, const std::vector<std::string>& requests) {
    std::vector<std::string> said;
    for (egress::Answer& answer :
         egress::AnswersOf(RunProbe(id, egress::ProbeProgram(requests)), requests.size())) {
      said.push_back(std::move(answer.said));
    }
    return said;
  }
  // Pairs of a request and what it must say.
  using Expected = std::vector<std::pair<std::string, std::string>>;
  void Expect(const std::string& id, const Expected& expected, const std::string& when = "") {
    std::vector<std::string> requests;
    for (const auto& [request, says] : expected) requests.push_back(request);
    const std::vector<std::string> said = Ask(id, requests);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(said[i], expected[i].second) << id << " " << when << ": " << requests[i];
    }
  }

  // Tries, as long as the machine lives, to connect to each of these "ADDRESS:PORT"s, and notes in
  // its file which could be reached, under its host name.
  void Watch(const std::string& id, const std::vector<std::string>& places) {
    std::string program =
        "import os, socket, time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "while True:\n"
        "  for place in [";
    for (const std::string& place : places) program += "'" + place + "', ";
    program +=
        "]:\n"
        "    try:\n"
        "      address, port = place.split(':')\n"
        "      socket.create_connection((address, int(port)), 1).close()\n"
        "      with open('/var/reached', 'a') as f: f.write(os.uname().nodename + ' ' + place + "
        "'\\n')\n"
        "    except OSError: pass\n"
        "  time.sleep(0.2)\n";
    const Ran ran = Python(*driver_, id, program);
    EXPECT_EQ(ran.exit_code, 0) << ran.error << ran.out;
  }
  // What it noted: "one 203.0.113.10:80", each once.
  std::set<std::string> Reached(const std::string& id) {
    const Ran ran = Python(*driver_, id,
                           "import os\n"
                           "if os.path.exists('/var/reached'):\n"
                           "  print(*set(open('/var/reached').read().splitlines()), sep='\\n')");
    EXPECT_EQ(ran.error, "");
    std::set<std::string> reached;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) reached.insert(line);
    }
    return reached;
  }

  std::string nft_fault() const { return world_->directory() + "/nft-fault"; }

  std::optional<egress::World> world_;
  std::optional<egress::NamedServers> names_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

// The gate is this program, started anew.
inline int RunTestsOrGate(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate")
    return egress::gate::GateMain(argv[argc - 1]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace caisson::machine
