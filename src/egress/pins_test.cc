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

}  // namespace
}  // namespace caisson::egress
