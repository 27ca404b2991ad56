// SPDX-License-Identifier: Apache-2.0
#include "egress/explain.h"

#include <gtest/gtest.h>

#include "errors/egress.h"
#include "json/writer.h"

namespace caisson::egress {
namespace {

// "open name 1": whether, how, and by which rules.
std::string Explained(const std::vector<std::string>& rules, const std::string& destination) {
  const auto policy = Policy::Parse(rules, HostNames::kEnforced);
  EXPECT_TRUE(policy) << policy.error().message;
  const auto parsed = ParseDestination(destination);
  EXPECT_TRUE(parsed) << parsed.error().message;
  const json::Value value = Explain(*policy, *parsed);
  std::string text = value.Find("open")->as_bool() ? "open " : "closed ";
  text += value.Find("enforced")->as_string();
  for (const json::Value& rule : value.Find("rules")->as_array()) {
    text += " " + json::Write(*rule.Find("index")).value();
  }
  EXPECT_FALSE(value.Find("because")->as_string().empty());
  EXPECT_FALSE(value.Find("guest_sees")->as_string().empty());
  return text;
}

TEST(Explain, says_how_a_name_is_enforced) {
  const std::vector<std::string> rules = {"203.0.113.0/24", "example.com", "*.example.com:443",
                                          "example.com:8443"};
  EXPECT_EQ(Explained(rules, "example.com:443"), "open name 1");
  EXPECT_EQ(Explained(rules, "Example.COM:80"), "open name 1");
  EXPECT_EQ(Explained(rules, "example.com:8443"), "open address 3");
  EXPECT_EQ(Explained(rules, "example.com:22"), "closed nothing");
  EXPECT_EQ(Explained(rules, "a.b.example.com:443"), "open name 2");
  EXPECT_EQ(Explained(rules, "a.example.com:80"), "closed nothing");
  EXPECT_EQ(Explained(rules, "example.com"), "open name 1 3");
  EXPECT_EQ(Explained(rules, "example.org"), "closed nothing");
}

TEST(Explain, says_what_opens_an_address) {
  const std::vector<std::string> rules = {"203.0.113.0/24:443", "203.0.113.7", "example.com"};
  EXPECT_EQ(Explained(rules, "203.0.113.7"), "open address 0 1");
  EXPECT_EQ(Explained(rules, "203.0.113.7:22"), "open address 1");
  EXPECT_EQ(Explained(rules, "203.0.113.8:443"), "open address 0");
  EXPECT_EQ(Explained(rules, "203.0.113.8:80"), "closed nothing");
  EXPECT_EQ(Explained(rules, "198.51.100.1:443"), "closed nothing");
  EXPECT_EQ(Explained({"*"}, "198.51.100.1"), "open public");
  EXPECT_EQ(Explained({"*"}, "169.254.169.254"), "closed nothing");
  EXPECT_EQ(Explained({"10.0.0.0/8"}, "10.1.2.3"), "closed nothing");
}

TEST(Explain, says_that_no_name_is_resolved) {
  EXPECT_EQ(Explained({"203.0.113.7"}, "example.com"), "closed nothing");
  EXPECT_EQ(Explained({"240.0.0.0/4"}, "example.com:443"), "closed nothing");
  EXPECT_EQ(Explained({}, "example.com"), "open public");
  EXPECT_EQ(Explained({"*", "example.com"}, "example.org"), "open public");
}

TEST(Explain, takes_one_destination) {
  for (const char* text : {"", "*", "*.example.com", "203.0.113.0/24", "203.0.113.7/32", "a b",
                           "example.com:0", "https://example.com", "example.com."}) {
    const auto parsed = ParseDestination(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, errors::kEgressBadRule) << text;
  }
  EXPECT_EQ(ParseDestination("[::1]:443").error().code, errors::kEgressIpv6Unsupported);
}

}  // namespace
}  // namespace caisson::egress
