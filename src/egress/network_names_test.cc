// SPDX-License-Identifier: Apache-2.0
// What the gateway lets through for rules by name, with a gate that the test plays: sockets that
// echo where the gate's are, and pins as the test says. The gate itself is tested in gate_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "egress/network.h"
#include "egress/test_world.h"
#include "errors/egress.h"

namespace caisson::egress {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGood = "203.0.113.10";
constexpr const char* kOther = "203.0.113.20";
constexpr const char* kThird = "203.0.113.77";
constexpr const char* kResolver = "198.51.100.53";

std::uint32_t Number(const std::string& address) { return *ParseAddress(address); }
Policy Rules(const std::vector<std::string>& rules) {
  return Policy::Parse(rules, HostNames::kEnforced).value();
}

// What the gateway told the gate.
struct Told {
  GateEvents* events = nullptr;
  GateOptions options;
  std::map<std::uint32_t, GateMachine> machines;
};

class PlayedGate final : public GateProcess {
 public:
  explicit PlayedGate(Told& told) : told_(told) {}
  ~PlayedGate() override { told_.machines.clear(); }
  Result<void> SetMachine(std::uint32_t address, std::uint64_t generation,
                          std::span<const NameRule> rules) override {
    if (address == Number("10.231.0.0")) return {};  // only whether it answers
    GateMachine& machine = told_.machines[address];
    EXPECT_GT(generation, machine.generation);
    machine = {address, generation, {rules.begin(), rules.end()}};
    return {};
  }
  Result<void> Forget(std::uint32_t address) override {
    EXPECT_EQ(told_.machines.erase(address), 1u);
    return {};
  }
  std::vector<GateWall> walls() const override { return {}; }
  int pid() const override { return 0; }

 private:
  Told& told_;
};

class NamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanMakeNetworks()) GTEST_SKIP() << "needs root, nft and ip";
    world_.emplace();
    Reopen();
    Listen();
  }
  void TearDown() override {
    questions_.reset();
    stream_questions_.reset();
    proxy_.reset();
    if (gateway_) {
      EXPECT_TRUE(gateway_->Dismantle());
    }
    gateway_.reset();
    world_.reset();
  }
  void Reopen() {
    gateway_.reset();
    GatewayOptions options = world_->Options();
    options.start_gate = [this](const GateOptions& gate, GateEvents& events) {
      told_.events = &events;
      told_.options = gate;
      return Result<std::unique_ptr<GateProcess>>(std::make_unique<PlayedGate>(told_));
    };
    auto opened = Gateway::Open(options);
    ASSERT_TRUE(opened) << opened.error().message << opened.error().details;
    gateway_ = *std::move(opened);
    ASSERT_TRUE(gateway_->enforces_names());
  }
  template <typename Work>
  auto InGateway(Work work) -> decltype(work()) {
    const auto fd = os::OpenNetworkNamespace(world_->directory() + "/network/gateway").value();
    return World::In(fd.get(), work);
  }
  void Listen() {
    InGateway([this] {
      questions_.emplace(SOCK_DGRAM, kGateNamesPort);
      stream_questions_.emplace(SOCK_STREAM, kGateNamesPort);
      proxy_.emplace(SOCK_STREAM, kGateProxyPort);
      return true;
    });
  }
  Guest Make(const std::vector<std::string>& rules) {
    auto made = gateway_->Make(Rules(rules));
    EXPECT_TRUE(made) << made.error().message << made.error().details;
    return Guest(made.value());
  }
  // Which of them were opened.
  std::vector<std::uint32_t> PinAll(const Guest& guest, const std::string& name,
                                    const std::vector<std::uint32_t>& addresses,
                                    std::uint32_t seconds = 60) {
    const std::uint32_t machine = Number(guest.address());
    return told_.events->Pin({.id = 1,
                              .machine = machine,
                              .generation = told_.machines[machine].generation,
                              .name = name,
                              .seconds = seconds,
                              .addresses = addresses});
  }
  bool Pin(const Guest& guest, const std::string& name, const std::string& address,
           std::uint32_t seconds = 60) {
    return !PinAll(guest, name, {Number(address)}, seconds).empty();
  }
  // Where a TCP connection went that is open: "gate", "server", or how it failed.
  std::string Went(const Guest& guest, const std::string& address, std::uint16_t port) {
    const int before = proxy_->streams();
    std::string how = guest.Tcp(address, port);
    if (how != "open") return how;
    return proxy_->streams() > before ? "gate" : "server";
  }

  std::optional<World> world_;
  Told told_;
  std::unique_ptr<Gateway> gateway_;
  std::optional<EchoServer> questions_, stream_questions_, proxy_;
};

TEST_F(NamesTest, the_gate_knows_the_rules_before_a_policy_is_set) {
  EXPECT_EQ(told_.options.resolvers.at(0).address, Number(kResolver));
  const Guest guest = Make({"good.test", "203.0.113.77", "*.good.test:8080"});
  const std::uint32_t machine = Number(guest.address());
  ASSERT_EQ(told_.machines.count(machine), 1u);
  EXPECT_EQ(told_.machines[machine].rules.size(), 2u);
  const std::uint64_t generation = told_.machines[machine].generation;
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"})));
  EXPECT_GT(told_.machines[machine].generation, generation);
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"203.0.113.77"})));
  EXPECT_EQ(told_.machines.count(machine), 0u);
  (void)Make({"*", "good.test"});
  (void)Make({"203.0.113.77"});
  EXPECT_TRUE(told_.machines.empty());
}

TEST_F(NamesTest, nothing_is_open_before_a_name_is_resolved) {
  const Guest guest = Make({"good.test", "good.test:8080"});
  for (const char* address : {kGood, kOther, "10.9.9.9", "169.254.169.254", "198.51.100.1"}) {
    for (const std::uint16_t port : {80, 443, 8080}) {
      EXPECT_EQ(guest.Tcp(address, port), "refused") << address << " " << port;
    }
    EXPECT_EQ(guest.Udp(address, 443), "prohibited");
    EXPECT_EQ(guest.Ping(address), "prohibited");
  }
  EXPECT_EQ(proxy_->streams(), 0);
}

TEST_F(NamesTest, every_question_for_names_goes_to_the_gate) {
  const Guest guest = Make({"good.test"});
  int expected = 0;
  for (const char* resolver : {"10.231.0.1", kResolver, kGood, "8.8.8.8", "10.9.9.9"}) {
    EXPECT_EQ(guest.Udp(resolver, 53), "open") << resolver;
    EXPECT_EQ(questions_->datagrams(), ++expected);
    EXPECT_EQ(guest.Tcp(resolver, 53), "open") << resolver;
    EXPECT_EQ(stream_questions_->streams(), expected);
  }
  EXPECT_EQ(world_->Server(SOCK_DGRAM, 53).datagrams(), 0);
  EXPECT_EQ(guest.Tcp(kResolver, 853), "refused");
}

TEST_F(NamesTest, a_flood_of_questions_does_not_reach_the_gate) {
  const Guest guest = Make({"good.test"});
  const Guest other = Make({"good.test"});
  const auto start = std::chrono::steady_clock::now();
  guest.Do([] {
    const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = SocketAddress("10.231.0.1", 53);
    for (int i = 0; i < 5000; ++i) {
      ::sendto(fd.get(), "?", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    }
    return true;
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::string passed = InGateway([&] {
    return ShellOutput("nft list counter inet caisson sent" + std::to_string(guest.index()) +
                       " | sed -n 's/.*packets \\([0-9]*\\).*/\\1/p'");
  });
  EXPECT_GE(std::stoi(passed), 400);
  EXPECT_LE(std::stoi(passed), 400 + 200 * (took.count() + 1));
  EXPECT_EQ(other.Udp("10.231.0.1", 53), "open") << "each has its own";
}

TEST_F(NamesTest, the_sockets_of_the_gate_are_not_reached_directly) {
  const Guest guest = Make({"good.test"});
  const Guest addresses = Make({"203.0.113.77"});
  const Guest open = Make({"*"});
  for (const Guest* each : {&guest, &addresses, &open}) {
    EXPECT_EQ(each->Tcp("10.231.0.1", kGateProxyPort), "refused");
    EXPECT_EQ(each->Tcp("10.231.0.1", kGateNamesPort), "refused");
    EXPECT_EQ(each->Udp("10.231.0.1", kGateNamesPort), "prohibited");
    EXPECT_EQ(each->Tcp("169.254.243.254", kGateProxyPort), "refused");
  }
  EXPECT_EQ(addresses.Udp("10.231.0.1", 53), "prohibited");
  EXPECT_EQ(questions_->datagrams() + proxy_->streams() + stream_questions_->streams(), 0);
}

TEST_F(NamesTest, a_resolved_address_is_reached_by_way_of_the_gate_at_80_and_443) {
  const Guest guest = Make({"good.test"});
  const Guest other = Make({"good.test"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_EQ(Went(guest, kGood, 80), "gate");
  EXPECT_EQ(Went(guest, kGood, 443), "gate");
  EXPECT_EQ(Went(guest, kGood, 8080), "refused");
  EXPECT_EQ(guest.Udp(kGood, 443), "prohibited") << "QUIC";
  EXPECT_EQ(guest.Udp(kGood, 9000), "prohibited");
  EXPECT_EQ(guest.Ping(kGood), "prohibited");
  EXPECT_EQ(Went(guest, kOther, 443), "refused");
  EXPECT_EQ(Went(other, kGood, 443), "refused") << "of another machine";
}

TEST_F(NamesTest, a_rule_with_a_port_opens_that_port_alone) {
  const Guest guest = Make({"good.test:8080", "*.web.test:443", "dns.test:53"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_EQ(Went(guest, kGood, 8080), "server");
  EXPECT_EQ(Went(guest, kGood, 80), "refused");
  EXPECT_EQ(Went(guest, kGood, 443), "refused");
  ASSERT_TRUE(Pin(guest, "a.web.test", kOther));
  EXPECT_EQ(Went(guest, kOther, 443), "gate");
  EXPECT_EQ(Went(guest, kOther, 80), "refused");
  EXPECT_FALSE(Pin(guest, "web.test", kThird));
  ASSERT_TRUE(Pin(guest, "dns.test", kThird));
  EXPECT_EQ(guest.Udp(kThird, 53), "open");
  EXPECT_EQ(questions_->datagrams(), 0) << "a rule of its own";
}

TEST_F(NamesTest, rules_by_address_go_directly_beside_rules_by_name) {
  const Guest guest = Make({"good.test", "203.0.113.10:443", "203.0.113.77", "198.51.100.53:53"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_EQ(Went(guest, kGood, 443), "server");
  EXPECT_EQ(Went(guest, kGood, 80), "gate");
  EXPECT_EQ(Went(guest, kThird, 80), "server");
  EXPECT_EQ(guest.Udp(kResolver, 53), "open");
  EXPECT_EQ(questions_->datagrams(), 0);
}

TEST_F(NamesTest, pins_of_what_is_not_allowed_are_refused) {
  const Guest guest = Make({"good.test", "*.web.test"});
  const Guest addresses = Make({"203.0.113.77"});
  EXPECT_FALSE(Pin(guest, "evil.test", kGood));
  EXPECT_FALSE(Pin(guest, "web.test", kGood));
  for (const char* address : {"10.9.9.9", "169.254.169.254", "127.0.0.1", "10.231.0.1",
                              "198.51.100.1", "168.63.129.16"}) {
    EXPECT_FALSE(Pin(guest, "good.test", address)) << address;
    EXPECT_EQ(guest.Tcp(address, 80), "refused") << address;
  }
  EXPECT_FALSE(Pin(addresses, "good.test", kGood));
  GatePin pin{.id = 1,
              .machine = Number(guest.address()),
              .generation = told_.machines[Number(guest.address())].generation,
              .name = "good.test",
              .seconds = 60,
              .addresses = {Number(kGood)}};
  for (const std::uint32_t machine : {Number("8.8.8.8"), Number("10.231.0.1"), pin.machine + 100}) {
    GatePin foreign = pin;
    foreign.machine = machine;
    EXPECT_TRUE(told_.events->Pin(foreign).empty());
  }
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"})));
  EXPECT_TRUE(told_.events->Pin(pin).empty()) << "of earlier rules";
  EXPECT_EQ(Went(guest, kGood, 80), "refused");
  EXPECT_TRUE(Pin(guest, "good.test", kGood));
}

TEST_F(NamesTest, a_name_that_leads_to_the_host_among_others_is_opened_without_that) {
  const Guest guest = Make({"203.0.113.77", "good.test"});
  const std::uint32_t host = Number("198.51.100.1");
  EXPECT_EQ(PinAll(guest, "good.test", {host, Number(kGood), Number(kOther)}),
            (std::vector{Number(kGood), Number(kOther)}));
  EXPECT_EQ(Went(guest, kGood, 443), "gate");
  EXPECT_EQ(guest.Tcp("198.51.100.1", 443), "refused");
  const NetworkLog log = gateway_->ReadLog(guest.index(), 0).value();
  ASSERT_FALSE(log.denials.empty());
  EXPECT_EQ(log.denials[0].kind, "rebinding");
  EXPECT_EQ(log.denials[0].name, "good.test");
  EXPECT_EQ(log.denials[0].address, "198.51.100.1");
  EXPECT_EQ(log.denials[0].rule, "good.test");
  EXPECT_NE(log.denials[0].why.find("the host"), std::string::npos) << log.denials[0].why;
}

TEST_F(NamesTest, a_pin_that_the_filter_does_not_take_leaves_no_trace) {
  const Guest guest = Make({"good.test:8080"});
  ASSERT_TRUE(Pin(guest, "good.test", kOther));
  const std::string set = "directopen" + std::to_string(guest.index());
  const std::string fill =
      "(echo 'add element inet caisson " + set + " {'; for i in $(seq 16383); do " +
      "echo \"9.9.$((i / 256)).$((i % 256)) . 1 timeout 1h,\"; done; echo '}') | nft -f - 2>&1";
  ASSERT_EQ(InGateway([&] { return ShellOutput(fill); }), "");
  EXPECT_FALSE(Pin(guest, "good.test", kGood)) << "the set is full";
  EXPECT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_EQ(Went(guest, kGood, 8080), "server");
  EXPECT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test:8080", "203.0.113.77"})));
  EXPECT_EQ(Went(guest, kGood, 8080), "server");
}

TEST_F(NamesTest, a_pin_ends_for_new_connections_and_not_for_open_ones) {
  const Guest guest = Make({"good.test", "good.test:8080"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood, 5));
  const os::UniqueFd checked = guest.Connect(kGood, 443);
  const os::UniqueFd direct = guest.Connect(kGood, 8080);
  EXPECT_EQ(Exchange(checked.get(), "1"), "open");
  EXPECT_EQ(Exchange(direct.get(), "1"), "open");
  std::this_thread::sleep_for(5500ms);
  EXPECT_EQ(Went(guest, kGood, 443), "refused");
  EXPECT_EQ(Went(guest, kGood, 8080), "refused");
  EXPECT_EQ(Exchange(checked.get(), "2"), "open");
  EXPECT_EQ(Exchange(direct.get(), "2"), "open");
  ASSERT_TRUE(Pin(guest, "good.test", kGood, 5)) << "resolved again";
  EXPECT_EQ(Went(guest, kGood, 443), "gate");
  EXPECT_EQ(Went(guest, kGood, 8080), "server");
  std::this_thread::sleep_for(3s);
  ASSERT_TRUE(Pin(guest, "good.test", kGood, 5));
  std::this_thread::sleep_for(3s);
  EXPECT_EQ(Went(guest, kGood, 8080), "server") << "a pin is renewed before it ends";
}

TEST_F(NamesTest, new_rules_drop_what_they_do_not_allow_and_keep_the_rest) {
  const Guest guest = Make({"good.test", "good.test:8080", "other.test"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  ASSERT_TRUE(Pin(guest, "other.test", kOther));
  const os::UniqueFd checked = guest.Connect(kGood, 443);
  const os::UniqueFd direct = guest.Connect(kGood, 8080);
  const os::UniqueFd other = guest.Connect(kOther, 443);
  for (const auto* each : {&checked, &direct, &other})
    ASSERT_EQ(Exchange(each->get(), "1"), "open");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"*.test"})));
  EXPECT_FALSE(Pin(guest, "test", kGood));
  EXPECT_EQ(Exchange(checked.get(), "2"), "open");
  EXPECT_NE(Exchange(direct.get(), "2"), "open");
  EXPECT_EQ(Exchange(other.get(), "2"), "open");
  EXPECT_EQ(Went(guest, kGood, 443), "gate") << "what was resolved stays";
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"other.test:443", "203.0.113.77"})));
  EXPECT_NE(Exchange(checked.get(), "3"), "open");
  EXPECT_EQ(Exchange(other.get(), "3"), "open");
  EXPECT_EQ(Went(guest, kGood, 443), "refused");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"203.0.113.77"})));
  EXPECT_NE(Exchange(other.get(), "4"), "open");
  EXPECT_EQ(guest.Udp("10.231.0.1", 53), "prohibited");
}

TEST_F(NamesTest, a_connection_that_was_opened_without_a_check_does_not_live_on_under_one) {
  const Guest guest = Make({"203.0.113.10"});
  const os::UniqueFd direct = guest.Connect(kGood, 443);
  ASSERT_EQ(Exchange(direct.get(), "1"), "open");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"})));
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_NE(Exchange(direct.get(), "2"), "open");
  EXPECT_EQ(Went(guest, kGood, 443), "gate");
}

TEST_F(NamesTest, the_next_process_finds_what_was_resolved_and_the_next_policy_drops_it) {
  const std::vector<std::string> rules = {"good.test", "good.test:8080"};
  const Guest guest = Make(rules);
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  const os::UniqueFd direct = guest.Connect(kGood, 8080);
  ASSERT_EQ(Exchange(direct.get(), "1"), "open");
  Reopen();
  EXPECT_EQ(Exchange(direct.get(), "2"), "open");
  EXPECT_FALSE(Pin(guest, "good.test", kOther)) << "before it is adopted";
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Rules(rules)));
  EXPECT_EQ(Exchange(direct.get(), "3"), "open");
  EXPECT_EQ(Went(guest, kGood, 8080), "server");
  EXPECT_TRUE(Pin(guest, "good.test", kOther));
  EXPECT_EQ(Went(guest, kOther, 443), "gate");
  Reopen();
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Rules({"other.test", "other.test:8080"})));
  EXPECT_NE(Exchange(direct.get(), "4"), "open");
  EXPECT_EQ(Went(guest, kGood, 8080), "refused");
}

TEST_F(NamesTest, without_the_gate_names_fail_at_once_and_nothing_opens) {
  const Guest guest = Make({"good.test"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  questions_.reset();
  stream_questions_.reset();
  proxy_.reset();
  EXPECT_EQ(guest.Udp("10.231.0.1", 53), "refused");
  EXPECT_EQ(guest.Tcp("10.231.0.1", 53), "refused");
  EXPECT_EQ(guest.Tcp(kGood, 443), "refused");
  Listen();
  EXPECT_EQ(guest.Udp("10.231.0.1", 53), "open");
  EXPECT_EQ(Went(guest, kGood, 443), "gate");
}

TEST_F(NamesTest, a_gate_that_does_not_start_opens_nothing) {
  const Guest guest = Make({"good.test"});
  gateway_.reset();
  GatewayOptions options = world_->Options();
  options.start_gate = [](const GateOptions&, GateEvents&) {
    return Result<std::unique_ptr<GateProcess>>(Fail(errors::kEgressGateFailed, "no"));
  };
  gateway_ = Gateway::Open(options).value();
  EXPECT_FALSE(gateway_->enforces_names());
  EXPECT_EQ(gateway_->gate_failure()->code, errors::kEgressGateFailed);
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Rules({"good.test", "203.0.113.77"})));
  EXPECT_EQ(guest.Tcp(kGood, 443), "refused");
  EXPECT_EQ(guest.Tcp(kThird, 80), "open");
}

TEST_F(NamesTest, the_gate_itself_reaches_what_it_needs_and_nothing_else) {
  const Guest guest = Make({"good.test"});
  const auto server = guest.Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  const auto try_tcp = [&](const std::string& address, std::uint16_t port) {
    return InGateway([&] {
      std::string how;
      const os::UniqueFd fd = Connected(SOCK_STREAM, address, port, how);
      return how == "open" ? Exchange(fd.get(), "hello") : how;
    });
  };
  const auto try_udp = [&](const std::string& address, std::uint16_t port) {
    return InGateway([&] {
      std::string how;
      const os::UniqueFd fd = Connected(SOCK_DGRAM, address, port, how);
      return how == "open" ? Exchange(fd.get(), "hello", 300) : how;
    });
  };
  EXPECT_EQ(try_tcp(kGood, 443), "open");
  EXPECT_EQ(try_tcp(kGood, 80), "open");
  EXPECT_EQ(try_tcp(kResolver, 53), "open");
  EXPECT_EQ(try_udp(kResolver, 53), "open");
  EXPECT_NE(try_tcp(kGood, 8080), "open");
  EXPECT_NE(try_udp(kGood, 443), "open");
  EXPECT_NE(try_udp(kGood, 53), "open");
  for (const char* address : {"10.9.9.9", "169.254.169.254", "198.51.100.1", "169.254.243.253"}) {
    EXPECT_NE(try_tcp(address, 80), "open") << address;
    EXPECT_NE(try_tcp(address, 443), "open") << address;
    EXPECT_NE(try_udp(address, 53), "open") << address;
  }
  EXPECT_NE(try_tcp("198.51.100.1", 8080), "open");
  EXPECT_NE(try_tcp(guest.address(), 7777), "open");
}

TEST_F(NamesTest, removal_leaves_nothing) {
  const auto state = [&] { return InGateway([] { return ShellOutput("nft -s list ruleset"); }); };
  Reopen();  // knows both ends of its link to the host
  const std::string before = state();
  const Guest guest = Make({"good.test", "203.0.113.77"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  EXPECT_NE(state(), before);
  ASSERT_TRUE(gateway_->Remove(guest.index()));
  EXPECT_EQ(state(), before);
  EXPECT_TRUE(told_.machines.empty());
  const Guest late = Make({"203.0.113.77"});
  ASSERT_TRUE(gateway_->Apply(late.index(), Rules({"good.test"})));
  ASSERT_TRUE(gateway_->Apply(late.index(), Policy::DenyAll()));
  Reopen();
  ASSERT_TRUE(gateway_->Remove(late.index())) << "not adopted";
  EXPECT_EQ(state(), before);
}

TEST_F(NamesTest, what_is_sent_by_way_of_the_gate_is_counted_and_capped) {
  const Guest guest = Make({"good.test"});
  ASSERT_TRUE(Pin(guest, "good.test", kGood));
  const os::UniqueFd fd = guest.Connect(kGood, 443);
  EXPECT_EQ(Exchange(fd.get(), std::string(50'000, 'x')), "open");
  const Traffic traffic = gateway_->ReadTraffic(guest.index()).value();
  EXPECT_GT(traffic.sent_bytes, 50'000u);
  EXPECT_GT(traffic.received_bytes, 50'000u);
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"}), 1000));
  EXPECT_EQ(guest.Tcp(kGood, 443), "refused");
  EXPECT_EQ(guest.Udp("10.231.0.1", 53), "prohibited");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"})));
  EXPECT_EQ(Went(guest, kGood, 443), "gate") << "a cap does not drop what was resolved";
}

// The latest denial of this kind to have come, after a moment.
std::optional<Denial> Latest(Gateway& gateway, const Guest& guest, const std::string& kind,
                             const std::string& address, const std::string& protocol = "tcp") {
  for (int i = 0; i < 100; ++i) {
    const NetworkLog log = gateway.ReadLog(guest.index(), 0).value();
    for (auto it = log.denials.rbegin(); it != log.denials.rend(); ++it) {
      if (it->kind == kind && it->address == address && it->protocol == protocol) return *it;
    }
    std::this_thread::sleep_for(20ms);
  }
  return std::nullopt;
}

TEST_F(NamesTest, what_the_filter_refused_can_be_read) {
  const Guest guest = Make({"good.test"});
  const Guest addresses = Make({"203.0.113.77:8080"});
  const struct {
    const Guest& guest;
    bool udp;
    const char* address;
    std::uint16_t port;
    const char* why;
  } cases[] = {
      {guest, false, kGood, 443, "no allowed name has resolved"},
      {guest, true, kGood, 443, "QUIC"},
      {guest, false, "169.254.169.254", 80, "link-local"},
      {guest, false, "198.51.100.1", 8080, "the host"},
      {guest, false, "10.231.9.9", 80, "another machine"},
      {addresses, true, "10.231.0.1", 53, "no names are resolved"},
      {addresses, true, "8.8.8.8", 53, "no names are resolved"},
      {addresses, false, kThird, 443, "no rule opens"},
  };
  for (const auto& each : cases) {
    if (each.udp) {
      EXPECT_EQ(each.guest.Udp(each.address, each.port), "prohibited");
    } else {
      EXPECT_EQ(each.guest.Tcp(each.address, each.port), "refused");
    }
    const auto denial =
        Latest(*gateway_, each.guest, "packet", each.address, each.udp ? "udp" : "tcp");
    ASSERT_TRUE(denial) << each.address;
    EXPECT_EQ(denial->port, each.port);
    EXPECT_EQ(denial->protocol, each.udp ? "udp" : "tcp");
    EXPECT_NE(denial->why.find(each.why), std::string::npos) << denial->why;
    EXPECT_GT(denial->time, 1'600'000'000'000);
  }
  const NetworkLog log = gateway_->ReadLog(addresses.index(), 0).value();
  EXPECT_GE(log.refused_packets, 3u);
  EXPECT_EQ(log.denials.size(), 3u);
  const NetworkLog rest = gateway_->ReadLog(addresses.index(), log.denials[1].number).value();
  ASSERT_EQ(rest.denials.size(), 1u);
  EXPECT_EQ(rest.denials[0].number, log.denials[2].number);
  EXPECT_TRUE(gateway_->ReadLog(addresses.index(), rest.last)->denials.empty());
  EXPECT_FALSE(gateway_->ReadLog(9999, 0));
}

TEST_F(NamesTest, what_the_gate_refused_and_let_through_can_be_read) {
  const Guest guest = Make({"203.0.113.77", "good.test", "*.web.test:443"});
  const std::uint32_t machine = Number(guest.address());
  const std::uint64_t generation = told_.machines[machine].generation;
  told_.events->Denied({.machine = machine,
                        .generation = generation,
                        .kind = GateDenialKind::kForeignName,
                        .name = "evil.test",
                        .address = Number(kGood),
                        .port = 443,
                        .suppressed = 7});
  told_.events->Denied({.machine = machine,
                        .generation = generation,
                        .kind = GateDenialKind::kRebinding,
                        .name = "a.web.test",
                        .rule = 2});  // of all rules, those by address too
  told_.events->Denied({.machine = 1, .generation = generation, .name = "nobody.test"});
  told_.events->Counted({.machine = machine,
                         .generation = generation,
                         .denials = 9,
                         .entries = {{.rule = 1, .answers = 2, .connections = 5},
                                     {.rule = 0, .answers = 4, .connections = 4},
                                     {.rule = 400, .answers = 1, .connections = 1}}});
  const NetworkLog log = gateway_->ReadLog(guest.index(), 0).value();
  ASSERT_EQ(log.denials.size(), 2u);
  EXPECT_EQ(log.denials[0].kind, "foreign_name");
  EXPECT_EQ(log.denials[0].name, "evil.test");
  EXPECT_EQ(log.denials[0].address, kGood);
  EXPECT_EQ(log.denials[1].rule, "*.web.test:443");
  EXPECT_EQ(log.lost, 7u);
  EXPECT_EQ(log.refused_by_gate, 9u);
  ASSERT_EQ(log.rules.size(), 2u);
  EXPECT_EQ(log.rules[0].rule, "good.test");
  EXPECT_EQ(log.rules[0].connections, 5u);
  EXPECT_EQ(log.rules[0].answers, 2u);
  EXPECT_EQ(log.rules[1].answers, 0u);
}

TEST_F(NamesTest, a_guest_that_floods_the_log_loses_only_its_own) {
  const Guest guest = Make({"good.test"});
  const Guest other = Make({"good.test"});
  EXPECT_EQ(other.Tcp("10.9.9.9", 80), "refused");
  for (int i = 0; i < 400; ++i) {
    told_.events->Denied({.machine = Number(guest.address()),
                          .generation = 1,
                          .name = "n" + std::to_string(i) + ".test"});
  }
  const NetworkLog log = gateway_->ReadLog(guest.index(), 0).value();
  EXPECT_EQ(log.denials.size(), kMaxDenials);
  EXPECT_EQ(log.lost, 400 - kMaxDenials);
  EXPECT_EQ(log.denials.back().name, "n399.test");
  EXPECT_TRUE(Latest(*gateway_, other, "packet", "10.9.9.9"));
}

// ---- networks that machines share

TEST_F(NamesTest, machines_of_a_network_reach_each_other_whatever_their_policies_say) {
  const Guest one = Make({"240.0.0.0/4"});
  const Guest two = Make({"240.0.0.0/4"});
  const Guest three = Make({"*"});
  std::vector<std::unique_ptr<EchoServer>> servers;
  for (const Guest* each : {&one, &two, &three}) {
    servers.push_back(each->Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); }));
    servers.push_back(each->Do([] { return std::make_unique<EchoServer>(SOCK_DGRAM, 7777); }));
  }
  EXPECT_EQ(one.Tcp(two.address(), 7777), "refused");
  ASSERT_TRUE(gateway_->Share(one.index(), {"a"}));
  EXPECT_EQ(one.Tcp(two.address(), 7777), "refused");
  ASSERT_TRUE(gateway_->Share(two.index(), {"a", "b"}));
  for (const auto& [from, to] : {std::pair(&one, &two), std::pair(&two, &one)}) {
    EXPECT_EQ(from->Tcp(to->address(), 7777), "open");
    EXPECT_EQ(from->Udp(to->address(), 7777), "open");
    EXPECT_EQ(from->Ping(to->address()), "open");
    EXPECT_EQ(from->Tcp(kGood, 80), "refused") << "nothing else is open by it";
    EXPECT_EQ(from->Udp("10.231.0.1", 53), "prohibited");
    EXPECT_EQ(from->Tcp(three.address(), 7777), "refused");
    EXPECT_EQ(three.Tcp(from->address(), 7777), "refused");
  }
  ASSERT_TRUE(gateway_->Share(three.index(), {"b"}));
  EXPECT_EQ(three.Tcp(two.address(), 7777), "open");
  EXPECT_EQ(one.Tcp(three.address(), 7777), "refused") << "in no network together";
}

TEST_F(NamesTest, leaving_a_network_closes_at_once) {
  const Guest one = Make({"*"});
  const Guest two = Make({"*"});
  const auto server = two.Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  ASSERT_TRUE(gateway_->Share(one.index(), {"a"}));
  ASSERT_TRUE(gateway_->Share(two.index(), {"a"}));
  const os::UniqueFd live = one.Connect(two.address(), 7777);
  EXPECT_EQ(Exchange(live.get(), "1"), "open");
  Reopen();
  EXPECT_EQ(Exchange(live.get(), "2"), "open") << "before it is adopted";
  ASSERT_TRUE(gateway_->Adopt(one.index(), Policy::PublicOnly()));
  ASSERT_TRUE(gateway_->Adopt(two.index(), Policy::PublicOnly()));
  ASSERT_TRUE(gateway_->Share(two.index(), {"a"}));
  ASSERT_TRUE(gateway_->Share(one.index(), {"a"}));
  EXPECT_EQ(Exchange(live.get(), "3"), "open");
  ASSERT_TRUE(gateway_->Share(one.index(), {}));
  EXPECT_NE(Exchange(live.get(), "4"), "open");
  EXPECT_EQ(one.Tcp(two.address(), 7777), "refused");
  EXPECT_EQ(gateway_->Share(one.index(), {"Not a name"}).error().code, errors::kEgressBadNetwork);
  EXPECT_EQ(gateway_->Share(4000, {"a"}).error().code, errors::kEgressNoNetwork);
}

TEST_F(NamesTest, an_address_that_is_given_out_again_is_in_no_network) {
  const Guest one = Make({"*"});
  const Guest two = Make({"*"});
  const auto server = two.Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  ASSERT_TRUE(gateway_->Share(one.index(), {"a"}));
  ASSERT_TRUE(gateway_->Share(two.index(), {"a"}));
  EXPECT_EQ(one.Tcp(two.address(), 7777), "open");
  Reopen();
  ASSERT_TRUE(gateway_->Remove(one.index())) << "by a process that knows nothing of networks";
  EXPECT_EQ(InGateway([] { return ShellOutput("nft list set inet caisson joined | grep 10.231"); }),
            "");
}

}  // namespace
}  // namespace caisson::egress
