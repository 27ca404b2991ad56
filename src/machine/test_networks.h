// SPDX-License-Identifier: Apache-2.0
// That machines of every driver have the networks of their policies, by address and by name, at
// every moment of their lives, and reach each other in the networks that they share. Which requests
// pass is the egress matrix (machine/test_egress_matrix.h). A driver's test program says
// INSTANTIATE_TEST_SUITE_P(Jail, MachineNetworks, testing::Values(...), NameOfDriver).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "errors/machine.h"
#include "machine/test_networked.h"

namespace caisson::machine {

class MachineNetworks : public Networked {
 protected:
  void ExpectHolds(const std::string& id, const std::string& when) {
    Expect(id,
           {{"fetch('good.test', 443)", "200"},
            {"fetch('x', 8080, '203.0.113.77')", "200"},
            {"fetch('evil.test', 443)", "no name"},
            {"fetch('evil.test', 443, '203.0.113.20')", "refused"},
            {"fetch('evil.test', 443, '203.0.113.10')", "closed"}},
           when);
  }
  // "open" when a server of machine `to` answers `from`.
  std::string Reach(const std::string& from, const std::string& to, const std::string& ip) {
    // Returns once it listens; what stands of earlier calls does no harm.
    const Ran server = Python(*driver_, to,
                              "import os, socket\n"
                              "s = socket.create_server(('0.0.0.0', 80), reuse_port=True)\n"
                              "if os.fork(): os._exit(0)\n"
                              "os.setsid(); s.settimeout(20)\n"
                              "try:\n"
                              "  c = s.accept()[0]; c.sendall(c.recv(1)); c.recv(1)\n"
                              "except OSError: pass");
    EXPECT_EQ(server.exit_code, 0) << server.error << server.out;
    const Ran ran = Python(*driver_, from,
                           "import socket\n"
                           "try:\n"
                           "  s = socket.create_connection(('" +
                               ip +
                               "', 80), 3); s.sendall(b'x'); s.settimeout(3)\n"
                               "  print('open' if s.recv(1) == b'x' else 'closed')\n"
                               "except OSError: print('closed')");
    return ran.error + ran.out.substr(0, ran.out.find('\n'));
  }
  std::string IpOf(const std::string& id) {
    const auto list = driver_->List();
    for (const Machine& machine : list.value()) {
      if (machine.id == id) return machine.ip;
    }
    return "";
  }
  std::size_t NetworksLeft() const {
    std::size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(helper_->directory() + "/network/machines"))
      count += entry.path().filename().string().find_first_of("0123456789") == 0 ? 1 : 0;
    return count;
  }
};

TEST_P(MachineNetworks, APolicyHoldsFromTheFirstInstructionAndChangesLive) {
  EXPECT_NE(Make("one", Rules({"203.0.113.10:80"})).ip, "");
  Expect("one", {{"fetch('x', 80, '203.0.113.10')", "200"},
                 {"fetch('x', 8080, '203.0.113.10')", "refused"},
                 {"fetch('x', 80, '203.0.113.20')", "refused"},
                 {"fetch('x', 8080, '198.51.100.1')", "refused"}});  // the host
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"203.0.113.20"})));
  Expect("one", {{"fetch('x', 80, '203.0.113.10')", "refused"},
                 {"fetch('x', 80, '203.0.113.20')", "200"},
                 {"fetch('evil.test', 80)", "no name"}});
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"good.test"})));
  Expect("one", {{"fetch('x', 80, '203.0.113.20')", "refused"},
                 {"fetch('good.test', 443, '203.0.113.10')", "refused"},
                 {"fetch('good.test', 443)", "200"}});
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"evil.test"})));
  Expect("one", {{"fetch('good.test', 443)", "no name"},
                 {"fetch('good.test', 443, '203.0.113.10')", "refused"},
                 {"fetch('evil.test', 443)", "200"}});
  ASSERT_TRUE(driver_->SetNetwork("one", egress::Policy::DenyAll()));
  Expect("one", {{"fetch('evil.test', 443)", "no name"},
                 {"fetch('evil.test', 443, '203.0.113.20')", "refused"}});
  const auto stats = driver_->ReadStats("one");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->network_sent_bytes, 0u);
  EXPECT_GT(stats->network_received_bytes, 0u);
}

TEST_P(MachineNetworks, APolicyOutlivesPausesForksSnapshotsAndTheHelper) {
  const std::vector<std::string> rules = {"good.test", "203.0.113.77:8080"};
  Make("one", Rules(rules));
  ExpectHolds("one", "first");
  Watch("one", {"203.0.113.77:8080", "203.0.113.20:80"});
  helper_->Kill();
  helper_->Start();
  ExpectHolds("one", "after the helper was killed");
  for (const Level level : {Level::kMemory, Level::kDisk}) {
    ASSERT_TRUE(driver_->Pause("one", level));
    ASSERT_TRUE(driver_->Resume("one"));
    ExpectHolds("one", "after a pause");
  }
  EXPECT_EQ(Reached("one"), (std::set<std::string>{"one 203.0.113.77:8080"}));
  Watch("one", {"203.0.113.77:8080", "203.0.113.20:80"});  // where a pause ends processes
  // gVisor writes no connection to a file.
  const Extent most = driver_->capabilities().isolation_class == "user-space-kernel"
                          ? Extent::kFilesystem
                          : Extent::kFull;
  const auto taken = driver_->TakeSnapshot("one", "kept", most);
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"evil.test"})));
  for (const bool of_snapshot : {false, true}) {
    const std::string id = of_snapshot ? "restored" : "forked";
    const MachineSpec spec = Spec(id, egress::Policy::DenyAll());
    const auto child =
        of_snapshot ? driver_->Restore("kept", spec) : driver_->Fork("one", spec, most);
    ASSERT_TRUE(child) << child.error().message;
    Expect(id, {{"fetch('x', 8080, '203.0.113.77')", "refused"},
                {"fetch('good.test', 443)", "no name"},
                {"fetch('good.test', 443, '203.0.113.10')", "refused"}});
    EXPECT_FALSE(Reached(id).contains(id + " 203.0.113.77:8080")) << "in its first moments";
    ASSERT_TRUE(driver_->SetNetwork(id, Rules(rules)));
    ExpectHolds(id, "its own rules");
  }
  ASSERT_TRUE(driver_->Resume("one"));
  Expect("one",
         {{"fetch('good.test', 443)", "no name"},
          {"fetch('x', 8080, '203.0.113.77')", "refused"},
          {"fetch('evil.test', 443)", "200"}},
         "changed while it was paused");
}

TEST_P(MachineNetworks, ACapHoldsFromTheStartAndOutlivesTheHelper) {
  MachineSpec spec = Spec("one", Rules({"203.0.113.10"}));
  spec.sent_cap = 20'000;
  ASSERT_TRUE(driver_->Create(spec));
  const std::string request = "fetch('x', 80, '203.0.113.10')";
  Expect("one", {{request, "200"}});
  const Ran ran = Python(*driver_, "one",
                         "import socket, time\n"
                         "s = socket.create_connection(('203.0.113.10', 80), 3)\n"
                         "try:\n"
                         "  for i in range(200): s.sendall(b'x' * 1000); time.sleep(0.01)\n"
                         "except OSError: print('refused')");
  EXPECT_EQ(ran.out, "refused\n") << ran.error;
  EXPECT_LE(driver_->ReadStats("one")->network_sent_bytes, 20'000u);
  helper_->Kill();
  helper_->Start();
  Expect("one", {{request, "refused"}});
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"203.0.113.10"})));
  Expect("one", {{request, "200"}});
}

TEST_P(MachineNetworks, MachinesDoNotReachOneAnother) {
  Make("one", egress::Policy::PublicOnly());
  const Machine other = Make("other", egress::Policy::PublicOnly());
  EXPECT_EQ(Reach("one", "other", other.ip), "closed");
  EXPECT_EQ(Reach("other", "other", "127.0.0.1"), "open") << "it has a low port";
}

TEST_P(MachineNetworks, MachinesOfANetworkReachEachOther) {
  MachineSpec spec = Spec("one", egress::Policy::DenyAll());
  spec.shared_networks = {"net-a"};
  ASSERT_TRUE(driver_->Create(spec));
  Make("two", egress::Policy::DenyAll());
  EXPECT_EQ(Reach("one", "two", IpOf("two")), "closed");
  ASSERT_TRUE(driver_->SetSharedNetworks("two", {"net-a", "net-b"}));
  EXPECT_EQ(Reach("one", "two", IpOf("two")), "open");
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Reach("two", "one", IpOf("one")), "open") << "after the helper was killed";
  ASSERT_TRUE(driver_->Pause("two", Level::kDisk));
  const auto child = driver_->Fork("two", Spec("child", egress::Policy::DenyAll()));
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(Reach("one", "child", child->ip), "closed") << "a fork is in no network";
  ASSERT_TRUE(driver_->Resume("two"));
  EXPECT_EQ(Reach("one", "two", IpOf("two")), "open") << "after a pause on disk";
  ASSERT_TRUE(driver_->SetSharedNetworks("two", {"net-b"}));
  EXPECT_EQ(Reach("one", "two", IpOf("two")), "closed");
  EXPECT_EQ(driver_->SetSharedNetworks("two", {"NOT"}).error().code, errors::kMachineInvalid);
}

TEST_P(MachineNetworks, NothingIsLeftOfThem) {
  for (const char* id : {"a", "b"}) Make(id, egress::Policy::PublicOnly());
  EXPECT_GE(NetworksLeft(), 2u);
  ASSERT_TRUE(driver_->Destroy("a"));
  helper_->Kill();  // also with what it had prepared
  helper_->Start();
  ASSERT_TRUE(driver_->Destroy("b"));
  helper_->Stop();
  EXPECT_EQ(NetworksLeft(), 0u);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MachineNetworks);

}  // namespace caisson::machine
