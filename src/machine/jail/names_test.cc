// SPDX-License-Identifier: Apache-2.0
// That rules by name hold for machines, at every moment of their lives, and that machines reach
// each other in the networks that they share. Which requests pass is tested in
// egress/gate/matrix_test.cc; here a machine asks itself, from inside its walls.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "egress/gate/program.h"
#include "egress/test_names.h"
#include "errors/egress.h"
#include "errors/machine.h"
#include "machine/jail/test_jail.h"
#include "machine/test_guest.h"

namespace caisson::machine::jail {
namespace {

constexpr const char* kGood = "203.0.113.10";
constexpr const char* kEvil = "203.0.113.20";

egress::Policy Rules(const std::vector<std::string>& rules) {
  return egress::Policy::Parse(rules, egress::HostNames::kEnforced).value();
}
MachineSpec Spec(const std::string& id, const egress::Policy& policy) {
  return {.id = id,
          .image = ImageForTests(),
          .memory_bytes = 96ull << 20,
          .disk_bytes = 64ull << 20,
          .pids = 32,
          .network = policy};
}

// What a guest runs (its image asks no name servers, which it changes first): fetch(name, port,
// address, says) connects to the address, or else to what the name resolves to, and says that it
// wants `says`, or else the name.
constexpr const char* kFetch = R"(
import socket, ssl
open('/etc/nsswitch.conf', 'w').write('hosts: files dns\n')
def fetch(name, port, address=None, says=None):
    try:
        s = socket.create_connection((address or name, port), 5)
        s.settimeout(5)
        if port == 443:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            s = context.wrap_socket(s, server_hostname=says or name)
        s.sendall(b'GET / HTTP/1.1\r\nHost: ' + (says or name).encode() + b'\r\n\r\n')
        got = s.recv(100)
        return got.split(b' ')[1].decode() if got else 'closed'
    except socket.gaierror: return 'no name'
    except ConnectionRefusedError: return 'refused'
    except (ConnectionResetError, ssl.SSLError): return 'closed'
    except TimeoutError: return 'hangs'
    except OSError as e: return 'prohibited'
)";

class MachineNames : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
    if (!egress::HasNameTools()) GTEST_SKIP() << "needs curl, openssl and python3";
    world_.emplace(egress::World::Servers::kNames);
    names_.emplace(*world_, "198.51.100.53");
    HelperProcess::Options options = JailHelper(true);
    options.names = true;
    helper_ = std::make_unique<HelperProcess>(std::move(options));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
    ASSERT_TRUE(driver_->capabilities().host_name_rules);
    ASSERT_TRUE(driver_->capabilities().shared_networks);
  }
  void TearDown() override {
    driver_.reset();
    helper_.reset();
    names_.reset();
    world_.reset();
  }
  std::string Fetch(const std::string& id, const std::string& arguments) {
    const Ran ran = Python(*driver_, id, std::string(kFetch) + "print(fetch(" + arguments + "))");
    return ran.error + ran.out.substr(0, ran.out.find('\n'));
  }
  void ExpectHolds(const std::string& id, const std::string& when) {
    EXPECT_EQ(Fetch(id, "'good.test', 443"), "200") << when;
    EXPECT_EQ(Fetch(id, "'evil.test', 443"), "no name") << when;
    EXPECT_EQ(Fetch(id, "'evil.test', 443, '203.0.113.20'"), "refused") << when;
    EXPECT_EQ(Fetch(id, "'good.test', 443, None, 'evil.test'"), "closed") << when;
  }
  // "open" when a server of machine `to` answers `from`.
  std::string Reach(const std::string& from, const std::string& to, const std::string& ip) {
    std::thread server([this, to] {
      (void)Python(*driver_, to,
                   "import socket\n"
                   "s = socket.create_server(('0.0.0.0', 80)); s.settimeout(4)\n"
                   "try:\n"
                   "  c = s.accept()[0]; c.sendall(c.recv(1)); c.recv(1)\n"
                   "except OSError: pass");
    });
    const Ran ran = Python(*driver_, from,
                           "import socket, time\n"
                           "said = 'closed'\n"
                           "for i in range(15):\n"
                           "  time.sleep(0.2)\n"
                           "  try:\n"
                           "    s = socket.create_connection(('" +
                               ip +
                               "', 80), 1); s.sendall(b'x'); s.settimeout(1)\n"
                               "    if s.recv(1) == b'x': said = 'open'; break\n"
                               "  except OSError: pass\n"
                               "print(said)");
    server.join();
    return ran.error + ran.out.substr(0, ran.out.find('\n'));
  }

  std::optional<egress::World> world_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
  std::optional<egress::NamedServers> names_;
};

TEST_F(MachineNames, RulesByNameHoldFromTheFirstInstructionAndChangeLive) {
  const auto made =
      driver_->Create(Spec("one", Rules({"good.test", "*.good.test", "203.0.113.77:8080"})));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(Fetch("one", "'good.test', 443, '203.0.113.10'"), "refused") << "before it is resolved";
  ExpectHolds("one", "first");
  EXPECT_EQ(Fetch("one", "'good.test', 80"), "200");
  EXPECT_EQ(Fetch("one", "'good.test', 80, None, 'evil.test'"), "closed");
  EXPECT_EQ(Fetch("one", "'good.test', 8080"), "refused");
  EXPECT_EQ(Fetch("one", "'x', 8080, '203.0.113.77'"), "200");
  EXPECT_EQ(Fetch("one", "'sub.good.test', 443"), "200");
  EXPECT_EQ(Fetch("one", "'rebind.test', 80"), "no name");
  EXPECT_EQ(Fetch("one", "'x', 80, '169.254.169.254'"), "refused");
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({"evil.test"})));
  EXPECT_EQ(Fetch("one", "'good.test', 443"), "no name");
  EXPECT_EQ(Fetch("one", "'good.test', 443, '203.0.113.10'"), "refused");
  EXPECT_EQ(Fetch("one", "'evil.test', 443"), "200");
  const auto bad = driver_->SetNetwork("one", egress::Policy::PublicOnly());
  EXPECT_TRUE(bad);
  EXPECT_EQ(Fetch("one", "'good.test', 443"), "200");
}

TEST_F(MachineNames, RulesByNameOutlivePausesForksAndTheHelper) {
  ASSERT_TRUE(driver_->Create(Spec("one", Rules({"good.test"}))));
  ExpectHolds("one", "first");
  helper_->Kill();
  EXPECT_NE(Fetch("one", "'good.test', 443, '203.0.113.10'"), "200") << "no gate";
  helper_->Start();
  ExpectHolds("one", "after the helper was killed");
  ASSERT_TRUE(driver_->Pause("one", Level::kMemory));
  ASSERT_TRUE(driver_->Resume("one"));
  ExpectHolds("one", "after a pause in memory");
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  const auto child = driver_->Fork("one", Spec("child", Rules({"good.test"})));
  ASSERT_TRUE(child) << child.error().message;
  ExpectHolds("child", "in a fork");
  ASSERT_TRUE(driver_->Resume("one"));
  ExpectHolds("one", "after a pause on disk");
}

TEST_F(MachineNames, WhatWasDeniedCanBeRead) {
  ASSERT_TRUE(driver_->Create(Spec("one", Rules({"good.test"}))));
  ExpectHolds("one", "first");
  bool name = false;
  bool packet = false;
  bool foreign = false;
  for (int i = 0; i < 100 && !(name && packet && foreign); ++i) {
    const auto log = driver_->ReadNetworkLog("one", 0);
    ASSERT_TRUE(log) << log.error().message;
    for (const egress::Denial& denial : log->denials) {
      name = name || (denial.kind == "name" && denial.name == "evil.test");
      packet = packet || (denial.kind == "packet" && denial.address == kEvil && denial.port == 443);
      foreign = foreign || (denial.kind == "foreign_name" && denial.address == kGood);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(name && packet && foreign) << name << packet << foreign;
  const auto log = driver_->ReadNetworkLog("one", 0);
  EXPECT_TRUE(driver_->ReadNetworkLog("one", log->last)->denials.empty());
  EXPECT_EQ(log->rules.at(0).rule, "good.test");
}

TEST_F(MachineNames, MachinesOfANetworkReachEachOther) {
  MachineSpec spec = Spec("one", egress::Policy::DenyAll());
  spec.shared_networks = {"net-a"};
  ASSERT_TRUE(driver_->Create(spec));
  const auto ip = [this](const std::string& id) {
    const auto list = driver_->List();
    for (const Machine& machine : *list) {
      if (machine.id == id) return machine.ip;
    }
    return std::string();
  };
  ASSERT_TRUE(driver_->Create(Spec("two", egress::Policy::DenyAll())));
  EXPECT_EQ(Reach("one", "two", ip("two")), "closed");
  ASSERT_TRUE(driver_->SetSharedNetworks("two", {"net-a", "net-b"}));
  EXPECT_EQ(Reach("one", "two", ip("two")), "open");
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Reach("two", "one", ip("one")), "open") << "after the helper was killed";
  ASSERT_TRUE(driver_->Pause("two", Level::kDisk));
  const auto child = driver_->Fork("two", Spec("child", egress::Policy::DenyAll()));
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(Reach("one", "child", child->ip), "closed") << "a fork is in no network";
  ASSERT_TRUE(driver_->Resume("two"));
  EXPECT_EQ(Reach("one", "two", ip("two")), "open") << "after a pause on disk";
  ASSERT_TRUE(driver_->SetSharedNetworks("two", {"net-b"}));
  EXPECT_EQ(Reach("one", "two", ip("two")), "closed");
  EXPECT_EQ(driver_->SetSharedNetworks("two", {"NOT"}).error().code, errors::kMachineInvalid);
}

class WithoutGate : public MachineNames {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
    world_.emplace();
    helper_ = std::make_unique<HelperProcess>(JailHelper(true));
    driver_ = helper_->Open().value();
  }
};

TEST_F(WithoutGate, RulesByNameAreRefused) {
  EXPECT_FALSE(driver_->capabilities().host_name_rules);
  EXPECT_EQ(driver_->Create(Spec("one", Rules({"203.0.113.10", "good.test"}))).error().code,
            errors::kEgressHostNamesUnsupported);
  ASSERT_TRUE(driver_->Create(Spec("one", egress::Policy::DenyAll())));
  EXPECT_EQ(driver_->SetNetwork("one", Rules({"good.test"})).error().code,
            errors::kEgressHostNamesUnsupported);
}

}  // namespace
}  // namespace caisson::machine::jail

// The gate is this program, started anew.
int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate")
    return caisson::egress::gate::GateMain(argv[argc - 1]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
