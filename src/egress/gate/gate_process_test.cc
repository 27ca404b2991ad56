// SPDX-License-Identifier: Apache-2.0
// The gate as it runs: a jailed process of its own beside a real packet filter, in a network
// namespace of this test. This program is the gate, too (see main).
#include "egress/gate_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/sanitizer.h"
#include "egress/gate/dns_message.h"
#include "egress/gate/program.h"
#include "egress/gate/test_gate.h"
#include "egress/gate/test_hello.h"
#include "egress/test_world.h"
#include "errors/egress.h"
#include "jail/walls.h"

namespace caisson::egress::gate {
namespace {

constexpr std::uint32_t kGuest = 0x0ae70010;  // 10.231.0.16
constexpr std::uint32_t kGood = 0xcb00710a;   // 203.0.113.10

// In it: a guest, a destination, and a filter that redirects the one's connections to the other.
void MakeNamespace() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  Shell(
      "ip link set lo up && ip addr add 10.231.0.16/32 dev lo && ip addr add 203.0.113.10/32 dev "
      "lo");
  Shell(
      "nft 'table ip test { chain output { type nat hook output priority -100; ip saddr "
      "10.231.0.16 ip daddr 203.0.113.10 tcp dport { 80, 443 } redirect to :10080; }; }'");
}

class Helper : public GateEvents {
 public:
  std::vector<std::uint32_t> Pin(const GatePin& pin) override {
    const std::lock_guard lock(mutex_);
    pins_.push_back(pin);
    return pin.addresses;
  }
  void Denied(const GateDenial& denial) override {
    const std::lock_guard lock(mutex_);
    denials_.push_back(denial);
  }
  void Counted(const GateCounters&) override {}
  std::size_t denials() {
    const std::lock_guard lock(mutex_);
    return denials_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<GatePin> pins_;
  std::vector<GateDenial> denials_;
};

class GateProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanMakeNetworks()) GTEST_SKIP() << "needs root, ip and nft";
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer needs calls that a sealed gate has not";
    before_ = os::OpenFile("/proc/thread-self/ns/net", O_RDONLY).value();
    ASSERT_NO_FATAL_FAILURE(MakeNamespace());
    inside_ = os::OpenFile("/proc/thread-self/ns/net", O_RDONLY).value();
    names_.emplace([](const std::string& question, bool) {
      return std::vector{
          EncodeAnswer(DecodeQuery(question)->query, Rcode::kNoError, {kGood}, 60, 512)};
    });
    destination_.emplace(SOCK_STREAM, 443);
  }
  void TearDown() override {
    gate_.reset();
    if (before_.valid()) {
      EXPECT_EQ(::setns(before_.get(), CLONE_NEWNET), 0);
    }
  }
  GateOptions Options() {
    GateOptions options{.namespace_fd = inside_.get(), .resolvers = {names_->address()}};
    options.patience = std::chrono::seconds(20);
    return options;
  }
  void Start() {
    auto started = GateProcess::Start(Options(), helper_);
    ASSERT_TRUE(started) << started.error().message;
    gate_ = *std::move(started);
    const auto set = gate_->SetMachine(kGuest, 1, std::vector{RuleFor("good.test")});
    ASSERT_TRUE(set) << set.error().message;
  }
  static std::string Ask(const std::string& name) {
    const os::UniqueFd fd = Bound(SOCK_DGRAM, kGuest);
    const sockaddr_in to = LoopbackAddress(kLoopback, kGateNamesPort);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string question = EncodeQuestion(7, WireName(name), false);
    EXPECT_GE(::send(fd.get(), question.data(), question.size(), 0), 0);
    const auto answer = DecodeAnswer(TestGate::Answer(fd), 7, WireName(name));
    if (!answer) return "nothing";
    if (answer->rcode == Rcode::kNoName) return "NXDOMAIN";
    return answer->addresses.empty() ? "no address" : FormatAddress(answer->addresses.front());
  }
  static std::string Try(const std::string& name) {
    std::string how;
    const os::UniqueFd fd = Connected(SOCK_STREAM, "203.0.113.10", 443, how, "10.231.0.16");
    return how == "open" ? Exchange(fd.get(), HelloFor(name), kLongMilliseconds) : how;
  }
  std::string StatusOf(const std::string& field) const {
    std::ifstream file("/proc/" + std::to_string(gate_->pid()) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(field + ":")) return line.substr(field.size() + 2);
    }
    return "";
  }

  os::UniqueFd before_, inside_;
  Helper helper_;
  std::optional<FakeServer> names_;
  std::optional<EchoServer> destination_;
  std::unique_ptr<GateProcess> gate_;
};

TEST_F(GateProcessTest, serves_from_behind_its_walls) {
  Start();
  EXPECT_EQ(Try("good.test"), "refused") << "it has not been resolved";
  EXPECT_EQ(Ask("evil.test"), "NXDOMAIN");
  EXPECT_EQ(Ask("good.test"), "203.0.113.10");
  EXPECT_EQ(Try("good.test"), "open");
  EXPECT_EQ(Try("evil.test"), "refused");
  for (int i = 0; i < 200 && helper_.denials() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(helper_.denials(), 3u);
  ASSERT_TRUE(gate_->Forget(kGuest));
  EXPECT_EQ(Try("good.test"), "refused");
}

TEST_F(GateProcessTest, has_no_rights) {
  Start();
  for (const GateWall& wall : gate_->walls()) {
    const bool is_left_out = wall.name == "network_namespace";
    const auto* info = std::ranges::find(jail::AllWalls(), wall.name, &jail::WallInfo::name).base();
    EXPECT_TRUE(wall.stands || is_left_out || !info->mandatory) << wall.name << wall.reason;
  }
  EXPECT_GE(gate_->walls().size(), 15u);
  EXPECT_EQ(StatusOf("CapEff"), "0000000000000000");
  EXPECT_EQ(StatusOf("CapBnd"), "0000000000000000");
  EXPECT_EQ(StatusOf("NoNewPrivs"), "1");
  EXPECT_EQ(StatusOf("Seccomp"), "2");
  EXPECT_EQ(StatusOf("Threads"), "1");
  EXPECT_FALSE(StatusOf("Uid").starts_with("0\t")) << StatusOf("Uid");
}

TEST_F(GateProcessTest, is_started_anew_with_what_it_has_to_know) {
  Start();
  EXPECT_EQ(Ask("good.test"), "203.0.113.10");
  const int first = gate_->pid();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  // Its sockets are kept: the question waits for it.
  EXPECT_EQ(Ask("good.test"), "203.0.113.10");
  EXPECT_NE(gate_->pid(), first);
  EXPECT_EQ(Try("good.test"), "open");
  ASSERT_TRUE(gate_->SetMachine(kGuest, 2, {}));
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN");
}

TEST_F(GateProcessTest, is_ended_when_it_does_not_take_new_rules) {
  auto options = Options();
  options.patience = std::chrono::seconds(5);
  gate_ = GateProcess::Start(options, helper_).value();
  ASSERT_TRUE(gate_->SetMachine(kGuest, 1, std::vector{RuleFor("good.test")}));
  const int first = gate_->pid();
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  const auto set = gate_->SetMachine(kGuest, 2, {});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, errors::kEgressGateFailed);
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN") << "by the next one, to which the new rules were told";
  EXPECT_NE(gate_->pid(), first);
}

TEST_F(GateProcessTest, ends_with_its_helper) {
  Start();
  const int pid = gate_->pid();
  gate_.reset();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(GateProcessTest, does_not_run_when_it_cannot_be_sealed) {
  auto options = Options();
  options.executable = "/bin/true";
  auto started = GateProcess::Start(options, helper_);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, errors::kEgressGateFailed);
  EXPECT_NE(started.error().message.find("exited with code"), std::string::npos)
      << started.error().message;
  options.executable = "/nowhere/caisson";
  EXPECT_FALSE(GateProcess::Start(options, helper_));
  // Its ports are taken.
  const os::UniqueFd taken = Listening(0, kGateProxyPort);
  EXPECT_FALSE(GateProcess::Start(Options(), helper_));
}

}  // namespace
}  // namespace caisson::egress::gate

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate") {
    return caisson::egress::gate::GateMain(argv[argc - 1]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
