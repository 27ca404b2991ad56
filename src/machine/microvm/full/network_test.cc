// SPDX-License-Identifier: Apache-2.0
// That virtual machines have the networks of their gateway, behind their tap, at every moment of
// their lives. In a world of namespaces of its own.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egress/test_world.h"
#include "machine/microvm/test_microvm.h"
#include "machine/test_guest.h"

namespace caisson::machine::microvm {
namespace {

constexpr const char* kOne = "203.0.113.10";
constexpr const char* kOther = "203.0.113.20";

class VmNetworks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoVirtualMachines(); !why.empty()) GTEST_SKIP() << why;
    if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
    world_.emplace();
    helper_ = std::make_unique<HelperProcess>(MicrovmHelper(true));
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
            .memory_bytes = 128ull << 20,
            .disk_bytes = 128ull << 20,
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
                               "), 5); s.sendall(b'x'); s.settimeout(5)\n"
                               "  print('open' if s.recv(1) == b'x' else 'closed')\n"
                               "except OSError as e: print('closed')");
    return ran.error + ran.out.substr(0, ran.out.find('\n'));
  }

  std::optional<egress::World> world_;
  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

TEST_F(VmNetworks, APolicyHoldsFromTheFirstInstructionChangesLiveAndOutlivesPausesForksAndHelpers) {
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
  const auto stats = driver_->ReadStats("one");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->network_sent_bytes, 0u);
  helper_->Kill();
  helper_->Start();
  EXPECT_EQ(Try("one", kOther), "open");
  for (const Level level : {Level::kMemory, Level::kDisk}) {
    ASSERT_TRUE(driver_->Pause("one", level));
    ASSERT_TRUE(driver_->Resume("one"));
    EXPECT_EQ(Try("one", kOther), "open");
    EXPECT_EQ(Try("one", kOne), "closed");
  }
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  ASSERT_TRUE(driver_->SetNetwork("one", Rules({kOne})));
  const auto child = driver_->Fork("one", Spec("child", egress::Policy::DenyAll()));
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_NE(child->ip, made->ip);
  EXPECT_EQ(Try("child", kOne), "closed");
  EXPECT_EQ(Try("child", kOther), "closed");
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Try("one", kOne), "open") << "changed while it was paused";
  EXPECT_EQ(Try("one", kOther), "closed");
  // Whatever it says on the wire, it has no other address and no IPv6.
  EXPECT_EQ(
      machine::Run(*driver_, "one",
                   {"python3", "-ISc",
                    "import socket\n"
                    "try: socket.socket(socket.AF_INET6, socket.SOCK_STREAM).bind(('::1', 0)); "
                    "print('there')\n"
                    "except OSError: print('none')"})
          .out,
      "none\n");
}

}  // namespace
}  // namespace caisson::machine::microvm
