// SPDX-License-Identifier: Apache-2.0
#include "egress/pins.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "errors/egress.h"

namespace caisson::egress {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kOne = 0xcb00710a;    // 203.0.113.10
constexpr std::uint32_t kOther = 0xcb007114;  // 203.0.113.20
const Pins::Time kStart{1000h};

NameRules Compiled(const std::vector<std::string>& rules) {
  return NameRules(Policy::Parse(rules, HostNames::kEnforced)->names());
}
Result<Pins::Change> Add(Pins& pins, const std::string& name, std::uint32_t address,
                         std::chrono::seconds ttl = 60s, Pins::Time now = kStart) {
  return pins.Add(name, std::vector{address}, ttl, now);
}
// "203.0.113.10:80 checked 60s", …
std::vector<std::string> Texts(const std::vector<PinnedPort>& ports) {
  std::vector<std::string> texts;
  for (const PinnedPort& each : ports) {
    texts.push_back(FormatAddress(each.address) + ":" + std::to_string(each.port) +
                    (each.checked ? " checked " : " direct ") + std::to_string(each.open / 1s) +
                    "s");
  }
  return texts;
}
using Expected = std::vector<std::string>;

TEST(Pins, opens_the_ports_of_the_rules_for_as_long_as_the_answer_lives) {
  Pins pins(Compiled({"good.test", "good.test:22"}));
  EXPECT_EQ(Texts(Add(pins, "GOOD.test.", kOne)->pinned),
            (Expected{"203.0.113.10:22 direct 60s", "203.0.113.10:80 checked 60s",
                      "203.0.113.10:443 checked 60s"}));
  EXPECT_EQ(Texts(pins.Standing(kStart + 59s)).at(0), "203.0.113.10:22 direct 1s");
  EXPECT_EQ(Texts(pins.Standing(kStart + 61s)).at(0), "203.0.113.10:22 direct 0s");
  EXPECT_TRUE(pins.Standing(kStart + kHeld).empty());
}

TEST(Pins, brings_lifetimes_into_their_limits) {
  Pins pins(Compiled({"good.test:22"}));
  EXPECT_EQ(Add(pins, "good.test", kOne, 0s)->pinned[0].open, 5s);
  EXPECT_EQ(Add(pins, "good.test", kOther, std::chrono::hours(24 * 365))->pinned[0].open, 300s);
  EXPECT_EQ(Add(pins, "good.test", kOther, 5s)->pinned[0].open, 300s) << "never shorter";
}

TEST(Pins, refuses_names_of_no_rule) {
  Pins pins(Compiled({"*.good.test"}));
  for (const char* name : {"good.test", "evil.test", "", "a.good.test.evil.test"}) {
    const auto refused = Add(pins, name, kOne);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, errors::kEgressPinRefused);
  }
  EXPECT_TRUE(pins.Standing(kStart).empty());
}

TEST(Pins, refuses_the_whole_answer_when_an_address_is_closed) {
  Pins pins(Compiled({"good.test"}));
  for (const char* closed : {"10.9.9.9", "127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1",
                             "255.255.255.255", "168.63.129.16", "100.64.0.1"}) {
    const auto refused =
        pins.Add("good.test", std::vector{kOne, *ParseAddress(closed)}, 60s, kStart);
    ASSERT_FALSE(refused) << closed;
    EXPECT_NE(refused.error().message.find(closed), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(pins.Standing(kStart).empty());
}

TEST(Pins, new_rules_leave_what_they_still_open) {
  Pins pins(Compiled({"good.test", "also.test", "old.test"}));
  (void)Add(pins, "good.test", kOne);
  (void)Add(pins, "also.test", kOne, 30s);
  (void)Add(pins, "old.test", kOther);
  pins.Replace(Compiled({"*.test:443"}), kStart + 10s);
  EXPECT_EQ(Texts(pins.Standing(kStart + 10s)),
            (Expected{"203.0.113.10:443 checked 50s", "203.0.113.20:443 checked 50s"}));
  pins.Replace(Compiled({"also.test:443"}), kStart + 20s);
  EXPECT_EQ(Texts(pins.Standing(kStart + 20s)), (Expected{"203.0.113.10:443 checked 10s"}));
  pins.Replace(Compiled({"other.test"}), kStart + 20s);
  EXPECT_TRUE(pins.Standing(kStart + 20s).empty());
}

TEST(Pins, what_was_resolved_longest_ago_makes_room) {
  Pins pins(Compiled({"*.good.test"}));
  const std::size_t most = kMaxPinnedPorts / 2;  // two ports each
  for (std::size_t i = 0; i < most; ++i) {
    const auto added = Add(pins, "a.good.test", kOne + static_cast<std::uint32_t>(i), 60s,
                           kStart + std::chrono::milliseconds(i));
    ASSERT_TRUE(added && added->dropped.empty()) << i;
  }
  const auto change = Add(pins, "a.good.test", kOne + 70'000, 60s, kStart + 10s);
  ASSERT_TRUE(change);
  ASSERT_EQ(change->dropped.size(), 2u);
  EXPECT_EQ(change->dropped[0].address, kOne);
  EXPECT_EQ(pins.Standing(kStart + 10s).size(), kMaxPinnedPorts);
}

TEST(Pins, refuses_answers_without_end) {
  Pins pins(Compiled({"good.test"}));
  std::vector<std::uint32_t> many(kMaxPinnedAddresses + 1, kOne);
  EXPECT_EQ(pins.Add("good.test", many, 60s, kStart).error().code, errors::kEgressPinRefused);
}

TEST(Pins, names_made_up_without_end_make_room) {
  Pins pins(Compiled({"*.good.test", "*.good.test:22", "kept.good.test:23"}));
  ASSERT_TRUE(Add(pins, "kept.good.test", kOther, 300s));
  ASSERT_TRUE(Add(pins, "first.good.test", kOther + 1, 5s));
  for (std::size_t i = 2; i < kMaxPinnedNames; ++i) {
    const auto added = Add(pins, "a" + std::to_string(i) + ".good.test", kOne, 60s);
    ASSERT_TRUE(added && added->dropped.empty()) << i;
    ASSERT_EQ(added->pinned.size(), 3u);
  }
  const auto change = Add(pins, "one-more.good.test", kOne, 60s);
  ASSERT_TRUE(change);
  EXPECT_EQ(pins.names(), kMaxPinnedNames);
  EXPECT_EQ(Texts(change->dropped),
            (Expected{"203.0.113.21:22 direct 5s", "203.0.113.21:80 checked 5s",
                      "203.0.113.21:443 checked 5s"}))
      << "of the name that ends first";
  const auto next = Add(pins, "next.good.test", kOne, 60s);
  ASSERT_TRUE(next && next->dropped.empty()) << "others open the same ports";
  EXPECT_EQ(pins.names(), kMaxPinnedNames);
  EXPECT_EQ(pins.Standing(kStart).size(), 3u + 4u);
  pins.Replace(Compiled({"kept.good.test:22"}), kStart);
  EXPECT_EQ(Texts(pins.Standing(kStart)), (Expected{"203.0.113.20:22 direct 300s"}));
  EXPECT_EQ(pins.names(), 1u);
}

TEST(Pins, names_of_many_addresses_make_room) {
  Pins pins(Compiled({"*.good.test:22"}));
  std::vector<std::uint32_t> many(kMaxPinnedAddresses);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = kOne + static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < 300; ++i)
    ASSERT_TRUE(pins.Add("a" + std::to_string(i) + ".good.test", many, 60s, kStart));
  EXPECT_EQ(pins.names(), kMaxPinnedPairs / many.size());
  EXPECT_EQ(pins.Standing(kStart).size(), many.size());
}

std::vector<std::string> RulesOfPorts(const std::string& name, int first, int count) {
  std::vector<std::string> rules;
  for (int i = 0; i < count; ++i) rules.push_back(name + ":" + std::to_string(first + i));
  return rules;
}

TEST(Pins, refuses_what_has_no_room_and_changes_nothing) {
  Pins pins(Compiled(RulesOfPorts("good.test", 1000, 9)));
  std::vector<std::uint32_t> many(kMaxPinnedAddresses);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = kOne + static_cast<std::uint32_t>(i);
  EXPECT_EQ(pins.Add("good.test", many, 60s, kStart).error().code, errors::kEgressPinRefused)
      << "9 ports of 64 addresses";
  EXPECT_TRUE(pins.Standing(kStart).empty());
  EXPECT_EQ(pins.names(), 0u);

  std::vector<std::string> rules;  // 8 ports of each of 20 names
  for (int i = 0; i < 20; ++i) {
    const auto more = RulesOfPorts("n" + std::to_string(i) + ".test", 1000 + 8 * i, 8);
    rules.insert(rules.end(), more.begin(), more.end());
  }
  Pins shared(Compiled(rules));
  for (int i = 0; i < 16; ++i) {
    const auto added = shared.Add("n" + std::to_string(i) + ".test", many, 60s, kStart);
    ASSERT_TRUE(added) << i;
    EXPECT_EQ(added->pinned.size(), kMaxPortsOfAnswer);
  }
  EXPECT_FALSE(shared.Add("n16.test", many, 60s, kStart)) << "nothing else could go";
  EXPECT_EQ(shared.Standing(kStart).size(), kMaxPinnedPorts);
  EXPECT_EQ(shared.names(), 16u);
}

TEST(Pins, withdraws_what_was_not_enforced) {
  Pins pins(Compiled({"*.good.test:22", "a.good.test:23"}));
  ASSERT_TRUE(Add(pins, "a.good.test", kOne));
  ASSERT_TRUE(Add(pins, "b.good.test", kOne, 30s));
  pins.Withdraw("A.good.test.", kStart);
  EXPECT_EQ(pins.names(), 1u);
  ASSERT_EQ(pins.Standing(kStart).size(), 1u);
  EXPECT_EQ(pins.Standing(kStart)[0].port, 22);
  pins.Withdraw("b.good.test", kStart);
  pins.Withdraw("b.good.test", kStart);
  EXPECT_TRUE(pins.Standing(kStart).empty());
}

TEST(Pins, new_rules_that_open_more_leave_what_was_resolved_last) {
  Pins pins(Compiled({"good.test:22"}));
  for (std::uint32_t i = 0; i < 200; ++i)
    ASSERT_TRUE(Add(pins, "good.test", kOne + i, 60s, kStart + std::chrono::milliseconds(i)));
  pins.Replace(Compiled(RulesOfPorts("good.test", 1000, 100)), kStart + 1s);
  const auto standing = pins.Standing(kStart + 1s);
  EXPECT_EQ(standing.size(), kMaxPinnedPorts / 100 * 100);
  EXPECT_EQ(standing.back().address, kOne + 199);
}

}  // namespace
}  // namespace caisson::egress
