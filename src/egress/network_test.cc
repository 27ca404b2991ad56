// SPDX-License-Identifier: Apache-2.0
// What the network of a machine lets through, in a world of namespaces. Each denial has a control:
// the same probe without our rules.
#include "egress/network.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "egress/test_world.h"
#include "errors/egress.h"
#include "os/fd.h"

namespace caisson::egress {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPublic = "203.0.113.10";
constexpr const char* kOtherPublic = "203.0.113.20";
constexpr const char* kHost = "198.51.100.1";
constexpr const char* kResolver = "198.51.100.53";

Policy Rules(const std::vector<std::string>& rules) { return Policy::Parse(rules).value(); }

class NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanMakeNetworks()) GTEST_SKIP() << "needs root, nft and ip";
    world_.emplace();
    Reopen(world_->Options());
  }
  void TearDown() override {
    if (gateway_) {
      EXPECT_TRUE(gateway_->Dismantle());
    }
    gateway_.reset();
    world_.reset();
  }
  void Reopen(const GatewayOptions& options) {
    gateway_.reset();
    auto opened = Gateway::Open(options);
    ASSERT_TRUE(opened) << opened.error().message << opened.error().details;
    gateway_ = *std::move(opened);
  }
  Guest Make(const Policy& policy) {
    auto made = gateway_->Make(policy);
    EXPECT_TRUE(made) << made.error().message << made.error().details;
    return Guest(made.value());
  }
  // Opens a connection to each of so many ports.
  static void Flood(const Guest& guest, unsigned count, unsigned first_port = 10'000) {
    guest.Do([&] {
      const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      for (unsigned i = 0; i < count; ++i) {
        const sockaddr_in to = SocketAddress(kPublic, static_cast<std::uint16_t>(first_port + i));
        ::sendto(fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
      }
      return true;
    });
  }
  template <typename Work>
  auto InGateway(Work work) -> decltype(work()) {
    const auto fd = os::OpenNetworkNamespace(world_->directory() + "/network/gateway").value();
    return World::In(fd.get(), work);
  }
  // Takes all our rules away but the translation of addresses.
  void WithoutRules() {
    Shell(
        "nft flush ruleset && nft 'add table ip t; add chain ip t p { type nat hook postrouting "
        "priority 100; "
        "}; add rule ip t p oifname wan0 masquerade'");
    InGateway([] {
      Shell(
          "nft flush ruleset && nft 'add table ip t; add chain ip t p { type nat hook postrouting "
          "priority "
          "100; }; add rule ip t p oifname up masquerade'");
      return true;
    });
  }
  // Options with a program in place of nft that does this instead.
  GatewayOptions WithNft(const std::string& script) {
    GatewayOptions options = world_->Options();
    options.nft = world_->directory() + "/nft";
    options.patience = 300ms;
    std::ofstream(options.nft) << "#!/bin/sh\n" << script << "\n";
    ::chmod(options.nft.c_str(), 0755);
    return options;
  }

  std::optional<World> world_;
  std::unique_ptr<Gateway> gateway_;
};

const std::vector<const char*> kClosedAddresses = {
    "10.9.9.9",        "172.16.5.5",    "192.168.7.7", "100.64.9.9",
    "169.254.169.254", "168.63.129.16", "192.0.0.192", "198.18.1.1"};

TEST_F(NetworkTest, without_our_rules_every_probe_succeeds) {
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  WithoutRules();
  for (const char* address : kClosedAddresses) {
    EXPECT_EQ(guest.Tcp(address, 80), "open") << address;
    EXPECT_EQ(guest.Udp(address, 9000), "open") << address;
  }
  for (const std::uint16_t port : {80, 443, 8080}) EXPECT_EQ(guest.Tcp(kPublic, port), "open");
  EXPECT_EQ(guest.Udp(kPublic, 443), "open");
  EXPECT_EQ(guest.Tcp(kResolver, 53), "open");
  EXPECT_EQ(guest.Udp(kResolver, 53), "open");
  EXPECT_EQ(guest.Ping(kPublic), "open");
  EXPECT_EQ(guest.Tcp(kHost, 8080), "open");
  EXPECT_EQ(guest.Tcp("169.254.243.253", 8080), "open");  // the host's end of the link
  const auto server = other.Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  EXPECT_EQ(guest.Tcp(other.address(), 7777), "open");
  const auto gateway_server =
      InGateway([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  EXPECT_EQ(guest.Tcp("10.231.0.1", 7777), "open");
}

TEST_F(NetworkTest, public_addresses_are_open_and_nothing_else) {
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  for (const std::uint16_t port : {80, 443, 8080}) EXPECT_EQ(guest.Tcp(kPublic, port), "open");
  EXPECT_EQ(guest.Tcp(kOtherPublic, 80), "open");
  EXPECT_EQ(guest.Udp(kPublic, 9000), "open");
  EXPECT_EQ(guest.Ping(kPublic), "open");
  for (const char* address : kClosedAddresses) {
    EXPECT_EQ(guest.Tcp(address, 80), "refused") << address;
    EXPECT_EQ(guest.Udp(address, 9000), "prohibited") << address;
    EXPECT_EQ(guest.Ping(address), "prohibited") << address;
  }
  EXPECT_EQ(guest.Tcp(kHost, 8080), "refused");
  EXPECT_EQ(guest.Tcp("169.254.243.253", 8080), "refused");
  const auto server = other.Do([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  EXPECT_EQ(guest.Tcp(other.address(), 7777), "refused");
  EXPECT_EQ(guest.Udp(other.address(), 7777), "prohibited");
  const auto gateway_server =
      InGateway([] { return std::make_unique<EchoServer>(SOCK_STREAM, 7777); });
  EXPECT_EQ(guest.Tcp("10.231.0.1", 7777), "refused");
}

TEST_F(NetworkTest, nothing_is_open_under_deny_all) {
  const Guest guest = Make(Rules({"240.0.0.0/4"}));
  for (const char* address :
       {kPublic, "10.9.9.9", "169.254.169.254", kHost, kResolver, "240.0.0.7"}) {
    EXPECT_EQ(guest.Tcp(address, 80), "refused") << address;
    EXPECT_EQ(guest.Udp(address, 53), "prohibited") << address;
    EXPECT_EQ(guest.Ping(address), "prohibited") << address;
  }
}

TEST_F(NetworkTest, address_rules_open_what_they_name) {
  const Guest guest = Make(Rules({"203.0.113.77", "203.0.113.8/30:443", "10.9.9.9", "0.0.0.0/8"}));
  EXPECT_EQ(guest.Tcp("203.0.113.77", 8080), "open");
  EXPECT_EQ(guest.Udp("203.0.113.77", 9000), "open");
  EXPECT_EQ(guest.Ping("203.0.113.77"), "open");
  EXPECT_EQ(guest.Tcp(kPublic, 443), "open");  // 203.0.113.10
  EXPECT_EQ(guest.Udp(kPublic, 443), "open");
  EXPECT_EQ(guest.Tcp(kPublic, 80), "refused");
  EXPECT_EQ(guest.Udp(kPublic, 9000), "prohibited");
  EXPECT_EQ(guest.Ping(kPublic), "prohibited");
  EXPECT_EQ(guest.Tcp(kOtherPublic, 443), "refused");
  EXPECT_EQ(guest.Tcp("10.9.9.9", 80), "refused");
  EXPECT_EQ(guest.Udp(kResolver, 53), "prohibited");
}

TEST_F(NetworkTest, a_wide_rule_does_not_open_closed_ranges) {
  const Guest guest = Make(Rules({"0.0.0.0/0"}));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  for (const char* address : kClosedAddresses)
    EXPECT_EQ(guest.Tcp(address, 80), "refused") << address;
}

TEST_F(NetworkTest, names_are_resolved_for_public_addresses_only) {
  const std::string server = gateway_->name_servers().at(0);
  const Guest open = Make(Policy::PublicOnly());
  EXPECT_EQ(open.Udp(server, 53), "open");
  EXPECT_EQ(open.Tcp(server, 53), "open");
  EXPECT_EQ(open.Udp(server, 9000), "prohibited");
  for (const auto& rules : {std::vector<std::string>{"203.0.113.77"}, {"240.0.0.0/4"}}) {
    const Guest guest = Make(Rules(rules));
    EXPECT_EQ(guest.Udp(server, 53), "prohibited");
    EXPECT_EQ(guest.Tcp(server, 53), "refused");
  }
}

TEST_F(NetworkTest, a_private_resolver_of_the_host_answers_names_and_is_closed_otherwise) {
  ASSERT_TRUE(gateway_->Dismantle());
  GatewayOptions options = world_->Options();
  options.resolvers = {{*ParseAddress("10.9.9.9")}};
  Reopen(options);
  const Guest guest = Make(Policy::PublicOnly());
  EXPECT_EQ(guest.Udp(gateway_->name_servers().at(0), 53), "open");
  EXPECT_EQ(guest.Udp("10.9.9.9", 53), "prohibited");
  EXPECT_EQ(guest.Udp("10.9.9.9", 9000), "prohibited");
}

TEST_F(NetworkTest, a_resolver_on_the_host_answers_names_and_the_host_is_closed_otherwise) {
  ASSERT_TRUE(gateway_->Dismantle());
  GatewayOptions options = world_->Options();
  options.resolvers = {{*ParseAddress(kHost)}};
  Reopen(options);
  const EchoServer resolver(SOCK_DGRAM, 53);
  const Guest guest = Make(Policy::PublicOnly());
  EXPECT_EQ(guest.Udp(gateway_->name_servers().at(0), 53), "open");
  EXPECT_EQ(guest.Udp(kHost, 53), "prohibited");
  EXPECT_EQ(guest.Tcp(kHost, 8080), "refused");
}

TEST_F(NetworkTest, a_foreign_source_address_goes_nowhere) {
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  EchoServer& server = world_->Server(SOCK_DGRAM, 9000);
  const auto send_as = [&](const std::string& source) {
    return guest.Do([&] {
      Shell("ip addr replace " + source + "/32 dev eth0");
      const int before = server.datagrams();
      std::string how;
      const os::UniqueFd fd = Connected(SOCK_DGRAM, kPublic, 9000, how, source);
      ::send(fd.get(), "x", 1, 0);
      std::this_thread::sleep_for(200ms);
      return server.datagrams() - before;
    });
  };
  EXPECT_EQ(send_as(guest.address()), 1);
  EXPECT_EQ(send_as("10.231.200.7"), 0);
  EXPECT_EQ(send_as(other.address()), 0);
  EXPECT_EQ(send_as("8.8.8.8"), 0);
  WithoutRules();
  EXPECT_EQ(send_as("10.231.200.7"), 1);
}

TEST_F(NetworkTest, ipv6_is_dropped_even_when_all_around_forwards_it) {
  const Guest guest = Make(Policy::PublicOnly());
  EXPECT_EQ(guest.Do([] { return ShellOutput("ip -6 addr show dev eth0"); }), "");
  // Addresses, routes and neighbours of all are set by hand, so that only a filter can be in the
  // way.
  const std::string link = LinkName(guest.index());
  const auto configure = [](const std::string& link_name, const std::string& address,
                            const std::string& route, const std::string& neighbour) {
    Shell("sysctl -qw net.ipv6.conf." + link_name + ".disable_ipv6=0");
    Shell("ip -6 addr replace " + address + "/64 dev " + link_name + " nodad");
    if (!route.empty()) Shell("ip -6 route replace " + route);
    Shell("ip -6 neigh replace " + neighbour + " dev " + link_name);
    return true;
  };
  Shell("sysctl -qw net.ipv6.conf.all.forwarding=1");
  configure("caisson0", "fd01::2", "", "fd01::1 lladdr 02:ca:15:50:00:02");
  configure("wan0", "fd02::1", "", "fd02::2 lladdr 02:00:00:00:00:02");
  InGateway([&] {
    Shell("sysctl -qw net.ipv6.conf.all.forwarding=1");
    configure("up", "fd01::1", "default via fd01::2", "fd01::2 lladdr 02:ca:15:50:00:01");
    return configure(link, "fd00::1", "", "fd00::2 lladdr 02:ca:00:00:00:10");
  });
  world_->InInternet([&] {
    return configure("net0", "fd02::2", "default via fd02::1", "fd02::1 lladdr 02:00:00:00:00:01");
  });
  const auto heard = [&] {
    return world_->InInternet(
        [] { return ShellOutput("awk '/Icmp6InEchos/ { print $2 }' /proc/net/snmp6"); });
  };
  const auto ping = [&] {
    return guest.Do([&] {
      configure("eth0", "fd00::2", "default via fd00::1", "fd00::1 lladdr 02:ca:15:50:00:03");
      const os::UniqueFd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMPV6));
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      ::inet_pton(AF_INET6, "fd02::2", &to.sin6_addr);
      const std::array<unsigned char, 8> request = {128, 0, 0, 0, 0, 0, 0, 1};
      ::sendto(fd.get(), request.data(), request.size(), 0, reinterpret_cast<const sockaddr*>(&to),
               sizeof(to));
      std::this_thread::sleep_for(300ms);
      return true;
    });
  };
  const std::string before = heard();
  ping();
  EXPECT_EQ(heard(), before);
  WithoutRules();
  ping();
  EXPECT_NE(heard(), before);
}

TEST_F(NetworkTest, a_policy_holds_for_what_is_open_already) {
  const Guest guest = Make(Policy::PublicOnly());
  const os::UniqueFd stays = guest.Connect("203.0.113.77", 80);
  const os::UniqueFd goes = guest.Connect(kPublic, 80);
  EXPECT_EQ(Exchange(stays.get(), "1"), "open");
  EXPECT_EQ(Exchange(goes.get(), "1"), "open");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"203.0.113.77:80"})));
  EXPECT_EQ(Exchange(stays.get(), "2"), "open");
  EXPECT_NE(Exchange(goes.get(), "2"), "open");
  EXPECT_EQ(guest.Tcp(kPublic, 80), "refused");
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"203.0.113.10"})));
  EXPECT_NE(Exchange(stays.get(), "3"), "open");
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  EXPECT_EQ(guest.Tcp("203.0.113.77", 80), "refused");
}

TEST_F(NetworkTest, no_answer_comes_in_once_its_sender_is_closed) {
  const Guest guest = Make(Policy::PublicOnly());
  const os::UniqueFd fd = guest.Do([] {
    std::string how;
    return Connected(SOCK_DGRAM, kPublic, 9000, how);
  });
  EXPECT_EQ(Exchange(fd.get(), "1"), "open");
  // The world outside goes on sending to the tracked connection.
  const std::string address = ShellOutput("ip -4 -o addr show dev wan0 | grep -o '198.51.100.1'");
  ASSERT_FALSE(address.empty());
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    world_->InInternet([&] {
      const os::UniqueFd out(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      while (!stop) {
        ::send(fd.get(), "x", 1, MSG_NOSIGNAL);  // keeps the flow alive; the server echoes it
        std::this_thread::sleep_for(2ms);
      }
      return true;
    });
  });
  const auto received = [&] {
    int count = 0;
    const auto end = std::chrono::steady_clock::now() + 200ms;
    while (std::chrono::steady_clock::now() < end) {
      std::array<char, 64> buffer;
      if (::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) ++count;
    }
    return count;
  };
  EXPECT_GT(received(), 0);
  ASSERT_TRUE(gateway_->Apply(guest.index(), Policy::DenyAll()));
  received();  // what had come before
  EXPECT_EQ(received(), 0);
  stop = true;
  sender.join();
}

TEST_F(NetworkTest, counts_what_passed) {
  const Guest guest = Make(Rules({"203.0.113.10"}));
  EXPECT_EQ(gateway_->ReadTraffic(guest.index())->sent_bytes, 0u);
  EXPECT_EQ(guest.Tcp(kOtherPublic, 80), "refused");
  EXPECT_EQ(gateway_->ReadTraffic(guest.index())->sent_bytes, 0u);
  const os::UniqueFd fd = guest.Connect(kPublic, 80);
  EXPECT_EQ(Exchange(fd.get(), std::string(50'000, 'x')), "open");
  const Traffic traffic = gateway_->ReadTraffic(guest.index()).value();
  EXPECT_GT(traffic.sent_bytes, 50'000u);
  EXPECT_LT(traffic.sent_bytes, 80'000u);
  EXPECT_GT(traffic.received_bytes, 50'000u);
  EXPECT_LT(traffic.received_bytes, 80'000u);
  EXPECT_EQ(gateway_->ReadTraffic(9999).error().code, errors::kEgressNoNetwork);
}

TEST_F(NetworkTest, a_cap_holds_and_may_be_raised) {
  const Guest guest = Make(Policy::PublicOnly());
  ASSERT_TRUE(gateway_->Apply(guest.index(), Policy::PublicOnly(), 20'000));
  const os::UniqueFd fd = guest.Connect(kPublic, 80);
  EXPECT_EQ(Exchange(fd.get(), std::string(10'000, 'x')), "open");
  EXPECT_NE(Exchange(fd.get(), std::string(20'000, 'x')), "open");
  EXPECT_LT(gateway_->ReadTraffic(guest.index())->sent_bytes, 22'000u);
  EXPECT_EQ(guest.Tcp(kPublic, 80), "refused");
  EXPECT_EQ(guest.Udp(gateway_->name_servers().at(0), 53), "prohibited");
  // What was used stays used: 20 kB more are open, no more.
  ASSERT_TRUE(gateway_->Apply(guest.index(), Policy::PublicOnly(), 40'000));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  const os::UniqueFd again = guest.Connect(kPublic, 80);
  EXPECT_NE(Exchange(again.get(), std::string(30'000, 'x')), "open");
}

TEST_F(NetworkTest, one_machine_cannot_use_up_the_tracked_connections) {
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  Flood(guest, 1000);
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  Flood(guest, kMaxFlows + 2000);
  EXPECT_EQ(guest.Tcp(kPublic, 80), "refused");
  EXPECT_EQ(other.Tcp(kPublic, 80), "open");
}

TEST_F(NetworkTest, every_machine_has_room_while_the_host_can_hardly_track_more) {
  TrackedConnections tracked{.count = 100, .most = 1000};
  GatewayOptions options = world_->Options();
  options.tracked = [&tracked] { return tracked; };
  Reopen(options);
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  const auto refreshed = gateway_->Refresh();
  ASSERT_TRUE(refreshed) << refreshed.error().message;
  Flood(guest, kMaxFlowsInACrowd + 500);
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  tracked.count = 900;
  ASSERT_TRUE(gateway_->Refresh());
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open") << "what it has does not count";
  Flood(guest, kMaxFlowsInACrowd + 100, 30'000);
  EXPECT_EQ(guest.Tcp(kPublic, 80), "refused");
  EXPECT_EQ(other.Tcp(kPublic, 80), "open");
  tracked.count = 400;
  ASSERT_TRUE(gateway_->Refresh());
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
}

TEST_F(NetworkTest, the_next_process_adopts_what_lives_and_nothing_is_interrupted) {
  const Guest guest = Make(Rules({"203.0.113.10"}));
  const os::UniqueFd fd = guest.Connect(kPublic, 80);
  EXPECT_EQ(Exchange(fd.get(), "1"), "open");
  Reopen(world_->Options());
  EXPECT_EQ(Exchange(fd.get(), "2"), "open");  // before anything is adopted
  EXPECT_EQ(gateway_->List().value(), std::vector<std::uint32_t>{guest.index()});
  const auto adopted = gateway_->Adopt(guest.index(), Rules({"203.0.113.10"}));
  ASSERT_TRUE(adopted);
  EXPECT_EQ(adopted->address, guest.address());
  EXPECT_EQ(Exchange(fd.get(), "3"), "open");
  EXPECT_GT(gateway_->ReadTraffic(guest.index())->sent_bytes, 100u);
  const Guest another = Make(Policy::PublicOnly());
  EXPECT_NE(another.address(), guest.address());
  EXPECT_EQ(gateway_->Adopt(4000, Policy::PublicOnly()).error().code, errors::kEgressNoNetwork);
}

TEST_F(NetworkTest, rules_of_another_version_close_everything_until_adoption) {
  const Guest guest = Make(Policy::PublicOnly());
  GatewayOptions options = world_->Options();
  options.resolvers = std::vector<std::uint32_t>{};
  Reopen(options);
  EXPECT_NE(guest.Tcp(kPublic, 80), "open");
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Policy::PublicOnly()));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  EXPECT_TRUE(gateway_->name_servers().empty());
}

TEST_F(NetworkTest, two_processes_do_not_manage_the_same_networks) {
  GatewayOptions options = world_->Options();
  options.patience = 50ms;
  EXPECT_EQ(Gateway::Open(options).error().code, errors::kEgressUnavailable);
}

TEST_F(NetworkTest, waits_for_what_a_killed_process_has_left) {
  gateway_.reset();
  os::UniqueFd lock(::open((world_->directory() + "/network/.lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  std::thread ending([&lock] {
    std::this_thread::sleep_for(50ms);
    lock.Reset();
  });
  Reopen(world_->Options());
  ending.join();
}

TEST_F(NetworkTest, removal_leaves_nothing_and_may_be_repeated) {
  const auto state = [&] {
    return InGateway([] {
      return ShellOutput(
          "nft -s list ruleset; ip -o link | sed 's/^[0-9]*: //; s/@if[0-9]*//; s/qdisc.*//'; ip "
          "addr show | "
          "grep inet; ip route; ip neigh | sort");
    });
  };
  const std::string before = state();
  const Guest guest = Make(Rules({"203.0.113.10", "203.0.113.20:443"}));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  EXPECT_NE(state(), before);
  ASSERT_TRUE(gateway_->Remove(guest.index()));
  EXPECT_EQ(state(), before);
  EXPECT_TRUE(gateway_->List()->empty());
  EXPECT_FALSE(std::filesystem::exists(world_->directory() + "/network/machines/" +
                                       std::to_string(guest.index())));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "prohibited");
  ASSERT_TRUE(gateway_->Remove(guest.index()));
  ASSERT_TRUE(gateway_->Remove(12345));
  EXPECT_EQ(gateway_->Apply(guest.index(), Policy::PublicOnly()).error().code,
            errors::kEgressNoNetwork);
}

TEST_F(NetworkTest, dismantling_leaves_the_host_as_it_was) {
  ASSERT_TRUE(gateway_->Dismantle());
  EXPECT_EQ(ShellOutput("nft list ruleset"), "");
  EXPECT_EQ(ShellOutput("ip -o link | grep caisson"), "");
  EXPECT_EQ(ShellOutput("cat /proc/sys/net/ipv4/ip_forward"), "0\n");
  Reopen(world_->Options());
  EXPECT_EQ(ShellOutput("cat /proc/sys/net/ipv4/ip_forward"), "1\n");
  EXPECT_EQ(Make(Policy::PublicOnly()).Tcp(kPublic, 80), "open");
}

TEST_F(NetworkTest, looks_after_the_host_that_others_change) {
  const Guest guest = Make(Rules({"198.51.100.0/24", "203.0.113.10"}));
  Shell("ip addr add 198.51.100.2/24 dev wan0");
  EXPECT_EQ(guest.Tcp("198.51.100.2", 8080), "refused");  // by the rules of the host
  Shell("nft flush ruleset");
  EXPECT_EQ(guest.Tcp("198.51.100.2", 8080), "open");  // what Refresh is for
  ASSERT_TRUE(gateway_->Refresh());
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  EXPECT_EQ(guest.Tcp("198.51.100.2", 8080), "refused");
  Shell("nft flush ruleset");
  EXPECT_EQ(guest.Tcp("198.51.100.2", 8080), "refused");  // by the rules of the gateway
}

TEST_F(NetworkTest, the_host_forwards_for_nobody_else_when_it_did_not_before) {
  // Another network of the host: nothing of it reaches the internet by our switching forwarding on.
  const auto other = os::MakeNetworkNamespace(world_->directory() + "/other", [] {
                       return Result<void>();
                     }).value();
  Links links = Links::Open().value();
  ASSERT_TRUE(
      links.MakePair({"lan0", {2, 0, 0, 0, 0, 3}}, {"lan1", {2, 0, 0, 0, 0, 4}}, other.get()));
  Shell("ip addr add 192.0.2.1/24 dev lan0 && ip link set lan0 up");
  World::In(other.get(), [] {
    Shell(
        "ip addr add 192.0.2.2/24 dev lan1 && ip link set lan1 up && ip route add default via "
        "192.0.2.1");
    return true;
  });
  world_->InInternet([] {
    Shell("ip route add 192.0.2.0/24 via 198.51.100.1");
    return true;
  });
  const auto probe = [&] {
    return World::In(other.get(), [] {
      std::string how;
      Connected(SOCK_STREAM, kPublic, 80, how);
      return how;
    });
  };
  EXPECT_EQ(probe(), "nothing");
  Shell("nft flush ruleset");
  EXPECT_EQ(probe(), "open");
  ASSERT_TRUE(os::DropNetworkNamespace(world_->directory() + "/other"));
}

TEST_F(NetworkTest, addresses_run_out_with_a_word_and_come_back) {
  ASSERT_TRUE(gateway_->Dismantle());
  GatewayOptions options = world_->Options();
  options.pool = NetworkOf(*ParseAddress("10.77.0.0"), 26);
  Reopen(options);
  std::vector<std::uint32_t> made;
  for (;;) {
    const auto network = gateway_->Make(Policy::DenyAll());
    if (!network) {
      EXPECT_EQ(network.error().code, errors::kEgressExhausted);
      break;
    }
    made.push_back(network->index);
    ASSERT_LT(made.size(), 64u);
  }
  EXPECT_EQ(made.size(), 47u);
  ASSERT_TRUE(gateway_->Remove(made[5]));
  EXPECT_EQ(gateway_->Make(Policy::DenyAll())->index, made[5]);
}

TEST_F(NetworkTest, refuses_pools_that_are_public) {
  GatewayOptions options = world_->Options();
  options.pool = NetworkOf(*ParseAddress("203.0.113.0"), 24);
  EXPECT_EQ(Gateway::Open(options).error().code, errors::kEgressUnavailable);
}

// What an nft may do instead of what it is told.
struct Fault {
  const char* name;
  const char* script;
};
const Fault kFaults[] = {
    {"fails", "echo 'Error: no' >&2; exit 1"},
    {"does_nothing_and_says_that_all_is_well", "exit 0"},
    {"hangs", "exec sleep 1000"},
    {"is_killed", "kill -9 $$"},
};

class FaultTest : public NetworkTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(FaultTest, no_gateway_opens) {
  ASSERT_TRUE(gateway_->Dismantle());
  gateway_.reset();
  EXPECT_EQ(Gateway::Open(WithNft(GetParam().script)).error().code, errors::kEgressFilterFailed);
  EXPECT_EQ(ShellOutput("ip -o link | grep caisson"), "");
  Reopen(world_->Options());
  EXPECT_EQ(Make(Policy::PublicOnly()).Tcp(kPublic, 80), "open");
}

TEST_P(FaultTest, old_rules_stand_until_one_opens_again) {
  const Guest guest = Make(Rules({"203.0.113.10"}));
  Shell("nft flush ruleset");  // of the host: others may do that
  EXPECT_EQ(guest.Tcp(kHost, 8080), "refused");
  gateway_.reset();
  EXPECT_EQ(Gateway::Open(WithNft(GetParam().script)).error().code, errors::kEgressFilterFailed);
  EXPECT_EQ(guest.Tcp(kOtherPublic, 80), "refused");
  EXPECT_EQ(guest.Tcp("10.9.9.9", 80), "refused");
  EXPECT_EQ(guest.Tcp(kHost, 8080), "refused");
  Reopen(world_->Options());
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
}

TEST_P(FaultTest, a_gateway_that_lost_its_rules_is_closed_when_they_cannot_be_loaded) {
  const Guest guest = Make(Policy::PublicOnly());
  gateway_.reset();
  WithoutRules();
  EXPECT_EQ(guest.Tcp("10.9.9.9", 80), "open");
  EXPECT_EQ(Gateway::Open(WithNft(GetParam().script)).error().code, errors::kEgressFilterFailed);
  EXPECT_NE(guest.Tcp("10.9.9.9", 80), "open");
  EXPECT_NE(guest.Tcp(kPublic, 80), "open");
  Reopen(world_->Options());
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Policy::PublicOnly()));
  EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
  EXPECT_EQ(guest.Tcp("10.9.9.9", 80), "refused");
}

INSTANTIATE_TEST_SUITE_P(Nft, FaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& each) { return each.param.name; });

TEST_F(NetworkTest, without_nft_no_gateway_opens) {
  ASSERT_TRUE(gateway_->Dismantle());
  gateway_.reset();
  GatewayOptions options = world_->Options();
  options.nft = "/nonexistent/nft";
  EXPECT_EQ(Gateway::Open(options).error().code, errors::kEgressFilterFailed);
  EXPECT_EQ(ShellOutput("ip -o link | grep caisson"), "");
}

TEST_F(NetworkTest, a_network_whose_rules_the_kernel_refuses_is_not_made) {
  const Guest guest = Make(Policy::PublicOnly());
  const auto links = [&] {
    return InGateway([] { return ShellOutput("ip -o link | grep -c m"); });
  };
  const std::string before = links();
  InGateway([] {
    Shell("nft delete table inet caisson");
    return true;
  });
  EXPECT_EQ(gateway_->Apply(guest.index(), Policy::DenyAll()).error().code,
            errors::kEgressFilterFailed);
  EXPECT_EQ(gateway_->Make(Policy::PublicOnly()).error().code, errors::kEgressFilterFailed);
  EXPECT_EQ(links(), before);
  EXPECT_EQ(gateway_->List().value(), std::vector<std::uint32_t>{guest.index()});
}

TEST_F(NetworkTest, connections_of_a_machine_are_forgotten_and_of_no_other) {
  const Guest guest = Make(Policy::PublicOnly());
  const Guest other = Make(Policy::PublicOnly());
  const auto fd = os::OpenNetworkNamespace(world_->directory() + "/network/gateway").value();
  PacketFilter filter = PacketFilter::Open(fd.get(), kTable).value();
  const std::uint32_t address = ParseAddress(guest.address()).value();
  const auto connect = [&] {
    EXPECT_EQ(guest.Udp(kPublic, 9000), "open");
    EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
    EXPECT_EQ(filter.FlowsOf(address)->size(), 2u);
  };
  EXPECT_EQ(other.Udp(kPublic, 9000), "open");
  connect();
  ASSERT_TRUE(filter.ForgetFlows(address));
  EXPECT_TRUE(filter.FlowsOf(address)->empty());
  connect();
  ASSERT_TRUE(filter.ForgetFlowsOneByOne(address));
  EXPECT_TRUE(filter.FlowsOf(address)->empty());
  EXPECT_EQ(filter.FlowsOf(ParseAddress(other.address()).value())->size(), 1u);
}

TEST_F(NetworkTest, a_transaction_is_done_whole_or_not_at_all) {
  const auto fd = os::OpenNetworkNamespace(world_->directory() + "/network/gateway").value();
  PacketFilter filter = PacketFilter::Open(fd.get(), kTable).value();
  FilterBatch batch;
  batch.AddCounter("first");
  ASSERT_TRUE(filter.Commit(batch));
  FilterBatch broken;
  broken.AddCounter("second");
  broken.DeleteCounter("first");
  broken.DeleteSet("missing");
  const auto done = filter.Commit(broken);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errors::kEgressFilterFailed);
  EXPECT_NE(done.error().message.find("ENOENT"), std::string::npos) << done.error().message;
  EXPECT_TRUE(filter.ReadCounter("first")->has_value());
  EXPECT_FALSE(filter.ReadCounter("second")->has_value());
}

TEST(HostResolversTest, takes_what_is_not_on_the_loopback) {
  const std::string path = ::testing::TempDir() + "caisson-resolv.conf";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return HostResolvers({"/nonexistent", path});
  };
  using Found = std::vector<std::uint32_t>;
  EXPECT_EQ(read("# x\nnameserver 10.0.0.2\nnameserver\t8.8.8.8 # y\n"),
            (Found{0x0a000002, 0x08080808}));
  EXPECT_EQ(read("nameserver 127.0.0.53\nnameserver ::1\noptions edns0\n"), Found{});
  EXPECT_EQ(read("nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4"),
            (Found{0x01010101, 0x01010102, 0x01010103}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace caisson::egress
