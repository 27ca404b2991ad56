// SPDX-License-Identifier: Apache-2.0
// What rules by name let through, end to end: guests, the gateway's packet filter, and a gate that
// is a jailed process of its own (this program, see gate_process_test.cc), in a world of namespaces
// with names, HTTP and TLS. Each denial has a control: the same request under "*", or by an allowed
// name.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "base/sanitizer.h"
#include "egress/network.h"
#include "egress/test_matrix.h"
#include "egress/test_names.h"

namespace caisson::egress {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGood = "203.0.113.10";
constexpr const char* kResolver = "198.51.100.53";

Policy Rules(const std::vector<std::string>& rules) {
  return Policy::Parse(rules, HostNames::kEnforced).value();
}

std::string RunHere(const std::string& program) {
  const auto end = os::RunProgram({.arguments = {"python3", "-ISc", program}});
  return end ? end->output + end->messages : end.error().message;
}

class MatrixTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanMakeNetworks()) GTEST_SKIP() << "needs root, nft and ip";
    if (!HasNameTools()) GTEST_SKIP() << "needs curl, openssl and python3";
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer needs calls that a sealed gate has not";
    world_.emplace(World::Servers::kNames);
    names_.emplace(*world_);
    Reopen();
  }
  void TearDown() override {
    if (gateway_) {
      EXPECT_TRUE(gateway_->Dismantle());
    }
    gateway_.reset();
    names_.reset();
    world_.reset();
  }
  void Reopen() {
    gateway_.reset();
    GatewayOptions options = world_->Options();
    options.start_gate = [this](const GateOptions& gate, GateEvents& events) {
      auto started = GateProcess::Start(gate, events);
      if (started) gate_ = started->get();
      return started;
    };
    auto opened = Gateway::Open(options);
    ASSERT_TRUE(opened) << opened.error().message << opened.error().details;
    gateway_ = *std::move(opened);
    ASSERT_TRUE(gateway_->enforces_names()) << gateway_->gate_failure()->message;
  }
  Guest Make(const std::vector<std::string>& rules) {
    auto made = gateway_->Make(Rules(rules));
    EXPECT_TRUE(made) << made.error().message << made.error().details;
    return Guest(made.value());
  }
  static std::string Get(const Guest& guest, const std::string& arguments) {
    return guest.Do([&] { return Curl(arguments); });
  }
  // What a resolver says: addresses, "none", "NXDOMAIN", "SERVFAIL", "nothing".
  static std::string Ask(const Guest& guest, const std::string& name,
                         const std::string& server = "10.231.0.1", std::uint16_t type = 1,
                         int patience = 6000) {
    return guest.Do([&] {
      std::string how;
      const os::UniqueFd fd = Connected(SOCK_DGRAM, server, 53, how);
      std::string query("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
      for (std::size_t at = 0; at <= name.size();) {
        const std::size_t dot = std::min(name.find('.', at), name.size());
        query += static_cast<char>(dot - at);
        query.append(name, at, dot - at);
        at = dot + 1;
      }
      query += std::string("\0\0", 2) + static_cast<char>(type) + std::string("\0\1", 2);
      ::send(fd.get(), query.data(), query.size(), MSG_NOSIGNAL);
      pollfd event{fd.get(), POLLIN, 0};
      std::array<char, 2048> buffer;
      if (::poll(&event, 1, patience) <= 0) return std::string("nothing");
      const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (got < 12) return std::string("refused");
      const int code = buffer[3] & 15;
      if (code == 3) return std::string("NXDOMAIN");
      if (code == 2) return std::string("SERVFAIL");
      const int count = buffer[7];
      std::string addresses;
      const std::string_view answer(buffer.data(), static_cast<std::size_t>(got));
      for (std::size_t at = query.size(); at + 4 <= answer.size(); ++at) {
        if (answer.substr(at, 2) != std::string_view("\0\4", 2) || at + 6 > answer.size()) continue;
        in_addr number{};
        std::memcpy(&number, answer.data() + at + 2, 4);
        std::array<char, INET_ADDRSTRLEN> text;
        ::inet_ntop(AF_INET, &number, text.data(), text.size());
        addresses += (addresses.empty() ? "" : " ") + std::string(text.data());
        at += 5;
      }
      return count == 0 ? std::string("none") : addresses;
    });
  }
  // Whether such a denial is told, soon.
  bool Denied(const Guest& guest, const MatrixDenial& wanted) {
    for (int i = 0; i < 100; ++i) {
      const NetworkLog log = gateway_->ReadLog(guest.index(), 0).value();
      for (const Denial& denial : log.denials) {
        if (Is(denial, wanted)) return true;
      }
      std::this_thread::sleep_for(30ms);
    }
    return false;
  }

  std::optional<World> world_;
  std::optional<NamedServers> names_;
  GateProcess* gate_ = nullptr;
  std::unique_ptr<Gateway> gateway_;
};

const std::string kHttps = "https://good.test/";

TEST_F(MatrixTest, without_a_gateway_every_request_succeeds) {
  names_.reset();
  names_.emplace(*world_, kResolver);
  ExpectMatrix(RunHere, Under::kNothing);
}

TEST_F(MatrixTest, under_a_star_all_that_is_public_is_open) {
  const Guest guest = Make({"*"});
  ExpectMatrix(
      [&](const std::string& program) { return guest.Do([&] { return RunHere(program); }); },
      Under::kStar);
}

TEST_F(MatrixTest, rules_by_name_open_what_they_say_and_nothing_else) {
  const Guest guest = Make(kMatrixRules);
  ExpectMatrix(
      [&](const std::string& program) { return guest.Do([&] { return RunHere(program); }); },
      Under::kRules);
  for (const MatrixDenial& denial : kMatrixDenials) {
    EXPECT_TRUE(Denied(guest, denial)) << denial.kind << " " << denial.about;
  }
  const std::vector<std::string> all_asked = names_->resolver().Asked();
  for (const std::string& asked : all_asked)
    EXPECT_EQ(asked.find("evil"), std::string::npos) << asked;
}

TEST_F(MatrixTest, a_name_ends_with_the_life_of_its_answer) {
  const Guest guest = Make({"*.good.test"});
  const std::string fixed = "--resolve short.good.test:443:203.0.113.77 https://short.good.test/";
  EXPECT_EQ(Get(guest, fixed), "refused");
  EXPECT_EQ(Get(guest, "https://short.good.test/"), "200");
  EXPECT_EQ(Get(guest, fixed), "200") << "two seconds, which are made five";
  std::this_thread::sleep_for(6s);
  EXPECT_EQ(Get(guest, fixed), "refused");
  EXPECT_EQ(Get(guest, "https://short.good.test/"), "200") << "asked for again";
}

TEST_F(MatrixTest, an_alias_is_followed_for_the_name_that_is_allowed) {
  const Guest guest = Make({"alias.good.test"});
  EXPECT_EQ(Get(guest, "https://alias.good.test/"), "200");
  EXPECT_EQ(Get(guest, "https://evil.test/"), "dns");
  EXPECT_EQ(Get(guest, "--connect-to evil.test:443:203.0.113.20:443 https://evil.test/"), "closed");
}

TEST_F(MatrixTest, a_rule_with_another_port_is_open_by_address) {
  const Guest guest = Make({"good.test:8080"});
  EXPECT_EQ(Get(guest, "http://good.test:8080/"), "200");
  EXPECT_EQ(Get(guest, "-H 'Host: evil.test' http://203.0.113.10:8080/"), "200") << "as it says";
  EXPECT_EQ(Get(guest, "http://good.test/"), "refused");
  EXPECT_EQ(Get(guest, kHttps), "refused");
}

TEST_F(MatrixTest, address_lists_resolve_nothing_and_say_so) {
  const Guest guest = Make({"203.0.113.10"});
  EXPECT_EQ(Get(guest, "https://203.0.113.10/"), "200");
  EXPECT_EQ(Get(guest, kHttps), "dns");
  bool said = false;
  for (int i = 0; i < 100 && !said; ++i) {
    const NetworkLog log = gateway_->ReadLog(guest.index(), 0).value();
    for (const Denial& denial : log.denials)
      said = said || denial.why.find("no names are resolved") != std::string::npos;
    std::this_thread::sleep_for(30ms);
  }
  EXPECT_TRUE(said);
}

TEST_F(MatrixTest, use_is_counted_by_rule) {
  const Guest guest = Make({"good.test", "evil.test"});
  EXPECT_EQ(Get(guest, kHttps), "200");
  EXPECT_EQ(Get(guest, kHttps), "200");
  NetworkLog log;
  for (int i = 0; i < 200; ++i) {
    log = gateway_->ReadLog(guest.index(), 0).value();
    if (log.rules.at(0).connections >= 2) break;
    std::this_thread::sleep_for(30ms);
  }
  EXPECT_EQ(log.rules[0].rule, "good.test");
  EXPECT_EQ(log.rules[0].connections, 2u);
  EXPECT_GE(log.rules[0].answers, 1u);
  EXPECT_EQ(log.rules[1].connections, 0u);
}

TEST_F(MatrixTest, new_rules_end_open_connections_of_names_that_they_do_not_allow) {
  const Guest guest = Make({"good.test", "shared.test"});
  // Two names of one address, so that the packet filter cannot tell them apart.
  const auto open = [&](const std::string& name) {
    EXPECT_EQ(Ask(guest, name), kGood);
    const std::string mark = world_->directory() + "/ended-" + name;
    auto client = guest.Do([&] {
      return std::make_unique<ServerProgram>(
          "sleep 60 | (openssl s_client -connect 203.0.113.10:443 -servername " + name + " > " +
          world_->directory() + "/client-" + name + " 2>&1; touch " + mark + ")");
    });
    for (int i = 0; i < 200; ++i) {
      const std::string said = ShellOutput("cat " + world_->directory() + "/client-" + name);
      if (said.find("BEGIN CERT") != std::string::npos) break;
      std::this_thread::sleep_for(30ms);
    }
    return client;
  };
  const auto good = open("good.test");
  const auto shared = open("shared.test");
  const auto ended = [&](const std::string& name) {
    return std::filesystem::exists(world_->directory() + "/ended-" + name);
  };
  EXPECT_FALSE(ended("good.test") || ended("shared.test"));
  ASSERT_TRUE(gateway_->Apply(guest.index(), Rules({"good.test"})));
  for (int i = 0; i < 100 && !ended("shared.test"); ++i) std::this_thread::sleep_for(30ms);
  EXPECT_TRUE(ended("shared.test"));
  EXPECT_FALSE(ended("good.test"));
  EXPECT_TRUE(Denied(guest, {"policy_changed", "shared.test"}));
  EXPECT_EQ(Get(guest, kHttps), "200");
}

TEST_F(MatrixTest, an_upstream_that_is_silent_or_lies_opens_nothing) {
  const Guest guest = Make({"good.test"});
  using Mood = TableResolver::Mood;
  for (const Mood mood : {Mood::kSilent, Mood::kBroken, Mood::kOtherQuestion}) {
    names_->resolver().Be(mood);
    EXPECT_EQ(Ask(guest, "good.test", "10.231.0.1", 1, 15'000), "SERVFAIL")
        << static_cast<int>(mood);
    EXPECT_EQ(Get(guest, "--resolve good.test:443:203.0.113.10 https://good.test/"), "refused");
  }
  names_->resolver().Be(Mood::kHonest);
  EXPECT_EQ(Get(guest, kHttps), "200");
}

TEST_F(MatrixTest, a_gate_that_is_killed_opens_nothing_and_comes_back) {
  const Guest guest = Make({"good.test", "203.0.113.64/26:8080"});
  EXPECT_EQ(Get(guest, kHttps), "200");
  for (int i = 0; i < 3; ++i) {
    ASSERT_GT(gate_->pid(), 0);
    ASSERT_EQ(::kill(gate_->pid(), SIGKILL), 0);
    EXPECT_EQ(Get(guest, "http://203.0.113.77:8080/"), "200") << "needs no gate";
    std::string got;
    for (int tries = 0; tries < 20 && got != "200"; ++tries) {
      got = Get(guest, kHttps);
      EXPECT_NE(got, "hangs");
    }
    EXPECT_EQ(got, "200");
    EXPECT_EQ(Get(guest, "https://evil.test/"), "dns");
  }
}

TEST_F(MatrixTest, a_gate_that_is_silent_is_replaced) {
  const Guest guest = Make({"good.test"});
  EXPECT_EQ(Get(guest, kHttps), "200");
  const int before = gate_->pid();
  ASSERT_EQ(::kill(before, SIGSTOP), 0);
  std::string got;
  for (int tries = 0; tries < 10 && got != "200"; ++tries) got = Get(guest, kHttps);
  EXPECT_EQ(got, "200");
  EXPECT_NE(gate_->pid(), before);
}

TEST_F(MatrixTest, a_policy_outlives_the_helper_and_open_requests_work_again) {
  const std::vector<std::string> rules = {"good.test", "good.test:8080"};
  const Guest guest = Make(rules);
  EXPECT_EQ(Get(guest, kHttps), "200");
  gateway_.reset();
  EXPECT_NE(Get(guest, kHttps), "200") << "no gate";
  EXPECT_EQ(Get(guest, "http://203.0.113.10:8080/"), "200") << "needs no gate";
  Reopen();
  EXPECT_NE(Get(guest, "https://evil.test/"), "200");
  ASSERT_TRUE(gateway_->Adopt(guest.index(), Rules(rules)));
  EXPECT_EQ(Get(guest, kHttps), "200");
  EXPECT_EQ(Get(guest, "https://evil.test/"), "dns");
}

TEST_F(MatrixTest, a_thousand_rules_are_taken) {
  std::vector<std::string> rules;
  for (int i = 0; i < 999; ++i) rules.push_back("*.n" + std::to_string(i) + ".test:443");
  rules.emplace_back("good.test");
  const Guest guest = Make(rules);
  EXPECT_EQ(Get(guest, kHttps), "200");
  EXPECT_EQ(Get(guest, "https://evil.test/"), "dns");
}

}  // namespace
}  // namespace caisson::egress
