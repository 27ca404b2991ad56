// SPDX-License-Identifier: Apache-2.0
// That machines have the networks of their gateway, at every moment of their lives; what the
// gateway itself lets through is tested in egress/network_test.cc. In a world of namespaces of its
// own.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "egress/test_world.h"
#include "machine/jail/test_jail.h"
#include "machine/test_guest.h"

namespace caisson::machine::jail {
namespace {

constexpr const char* kOne = "203.0.113.10";
constexpr const char* kOther = "203.0.113.20";

class MachineNetworks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
    world_.emplace();
    helper_ = std::make_unique<HelperProcess>(JailHelper(true));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
    ASSERT_TRUE(driver_->capabilities().network);
  }
  static egress::Policy Rules(const std::vector<std::string>& rules) {
    return egress::Policy::Parse(rules).value();
  }
  static MachineSpec Spec(const std::string& id, const egress::Policy& policy) {
    return {.id = id,
            .image = ImageForTests(),
            .memory_bytes = 64ull << 20,
            .disk_bytes = 64ull << 20,
            .pids = 32,
            .network = policy};
  }
  // "open" or "closed".
  std::string Try(const std::string& id, const std::string& address, int port = 80) {
    const Ran ran = Python(*driver_, id,
                           "import socket\n"
                           "try:\n"
                           "  s = socket.create_connection(('" +
                               address + "', " + std::to_string(port) +
                               "), 1); s.sendall(b'x'); s.settimeout(1)\n"
                               "  print('open' if s.recv(1) == b'x' else 'closed')\n"
                               "except OSError as e: print('closed')");
    return ran.error + ran.out.substr(0, ran.out.find('\n'));
  }
  std::size_t NetworksLeft() const {
    std::size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(helper_->directory() + "/network/machines"))
      count += entry.path().filename().string().find_first_of("0123456789") == 0 ? 1 : 0;
    return count;
  }

  std::optional<egress::World> world_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

TEST_F(MachineNetworks, APolicyHoldsFromTheFirstInstructionAndChangesLive) {
  const auto made = driver_->Create(Spec("one", Rules({std::string(kOne) + ":80"})));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NE(made->ip, "");
  EXPECT_EQ(Try("one", kOne), "open");
  EXPECT_EQ(Try("one", kOne, 443), "closed");
  EXPECT_EQ(Try("one", kOther), "closed");
  EXPECT_EQ(Try("one", "198.51.100.1", 8080), "closed") << "the host";
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({kOther})));
  EXPECT_EQ(Try("one", kOne), "closed");
  EXPECT_EQ(Try("one", kOther), "open");
  ASSERT_TRUE(driver_->SetNetwork("one", egress::Policy::DenyAll()));
  EXPECT_EQ(Try("one", kOther), "closed");
  const auto stats = driver_->ReadStats("one");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->network_sent_bytes, 0u);
  EXPECT_GT(stats->network_received_bytes, 0u);
}

TEST_F(MachineNetworks, ACapHoldsFromTheStartAndOutlivesTheHelper) {
  MachineSpec spec = Spec("one", Rules({kOne}));
  spec.sent_cap = 20'000;
  ASSERT_TRUE(driver_->Create(spec));
  EXPECT_EQ(Try("one", kOne), "open");
  const Ran ran = Python(*driver_, "one",
                         "import socket\n"
                         "s = socket.create_connection(('203.0.113.10', 80), 1)\n"
                         "try:\n"
                         "  for i in range(100): s.sendall(b'x' * 1000); s.recv(1000)\n"
                         "except OSError: print('refused')");
  EXPECT_EQ(ran.out, "refused\n") << ran.error;
  EXPECT_LE(driver_->ReadStats("one")->network_sent_bytes, 20'000u);
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Try("one", kOne), "closed");
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({kOne})));
  EXPECT_EQ(Try("one", kOne), "open");
}

TEST_F(MachineNetworks, APolicyOutlivesPausesForksAndTheHelper) {
  ASSERT_TRUE(driver_->Create(Spec("one", Rules({kOne}))));
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Try("one", kOne), "open");
  EXPECT_EQ(Try("one", kOther), "closed");
  for (const Level level : {Level::kMemory, Level::kDisk}) {
    ASSERT_TRUE(driver_->Pause("one", level));
    ASSERT_TRUE(driver_->Resume("one"));
    EXPECT_EQ(Try("one", kOne), "open");
    EXPECT_EQ(Try("one", kOther), "closed");
  }
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({kOther})));
  const auto child = driver_->Fork("one", Spec("child", egress::Policy::DenyAll()));
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(Try("child", kOne), "closed");
  EXPECT_EQ(Try("child", kOther), "closed");
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Try("one", kOne), "closed") << "changed while it was paused";
  EXPECT_EQ(Try("one", kOther), "open");
}

TEST_F(MachineNetworks, MachinesDoNotReachOneAnotherAndListenOnEveryPort) {
  ASSERT_TRUE(driver_->Create(Spec("one", egress::Policy::PublicOnly())));
  const auto other = driver_->Create(Spec("other", egress::Policy::PublicOnly()));
  ASSERT_TRUE(other) << other.error().message;
  std::thread server([this] {
    (void)Python(*driver_, "other",
                 "import socket\n"
                 "s = socket.create_server(('0.0.0.0', 80)); s.settimeout(5)\n"
                 "c = s.accept()[0]; c.sendall(c.recv(1))");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_EQ(Try("one", other->ip), "closed");
  EXPECT_EQ(Try("other", "127.0.0.1"), "open") << "it has a low port";
  server.join();
}

TEST_F(MachineNetworks, NothingIsLeftOfThem) {
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(driver_->Create(Spec(id, egress::Policy::PublicOnly())));
  }
  EXPECT_GE(NetworksLeft(), 2u);
  ASSERT_TRUE(driver_->Destroy("a"));
  helper_->Kill();  // also with what it had prepared
  helper_->Start();
  ASSERT_TRUE(driver_->Destroy("b"));
  helper_->Stop();
  EXPECT_EQ(NetworksLeft(), 0u);
}

}  // namespace
}  // namespace caisson::machine::jail
