// SPDX-License-Identifier: Apache-2.0
#include "egress/policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "errors/egress.h"
#include "json/writer.h"

namespace caisson::egress {
namespace {

std::string Written(const json::Value& value) { return json::Write(value, {}).value(); }

std::string CodeOf(const std::vector<std::string>& rules) {
  const auto policy = Policy::Parse(rules);
  return policy ? "" : std::string(policy.error().code.name);
}
std::string MessageOf(const std::string& rule) {
  const auto parsed = ParseRule(rule, 3);
  return parsed ? "" : parsed.error().message;
}

std::string Open(const std::vector<std::string>& rules) {
  const Policy policy = Policy::Parse(rules).value();
  std::string text = policy.opens_public() ? "public" : "";
  for (const Range& range : policy.OpenOnAllPorts()) text += " " + FormatRange(range);
  for (const auto& port : policy.OpenOnPorts()) {
    for (const Range& range : port.ranges) {
      text += " " + FormatRange(range) + ":" + std::to_string(port.port);
    }
  }
  return text;
}

TEST(Address, takes_four_decimal_numbers_only) {
  EXPECT_EQ(ParseAddress("203.0.113.7"), 0xcb007107);
  EXPECT_EQ(ParseAddress("0.0.0.0"), 0u);
  EXPECT_EQ(ParseAddress("255.255.255.255"), 0xffffffff);
  for (const char* text : {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1..2.3",
                           "1.2.3.4 ", "1.2.3.+4", "0x7f.0.0.1", "1.2.3.1234", "1.2.3."}) {
    EXPECT_FALSE(ParseAddress(text)) << text;
  }
}

TEST(Address, writes_networks_and_other_ranges) {
  EXPECT_EQ(FormatRange({0, 0xffffffff}), "0.0.0.0/0");
  EXPECT_EQ(FormatRange({0x0a000000, 0x0affffff}), "10.0.0.0/8");
  EXPECT_EQ(FormatRange({0x0a000000, 0x0a000002}), "10.0.0.0-10.0.0.2");
  EXPECT_EQ(FormatRange({7, 7}), "0.0.0.7");
}

TEST(Address, closed_ranges_are_in_order_and_apart) {
  const auto closed = ClosedRanges();
  for (std::size_t i = 1; i < closed.size(); ++i) {
    EXPECT_LT(closed[i - 1].range.last, closed[i].range.first);
  }
  EXPECT_EQ(closed.back().range.last, 0xffffffff);
}

TEST(Policy, no_rules_and_a_star_open_public_addresses) {
  EXPECT_EQ(Open({}), "public");
  EXPECT_EQ(Open({"*"}), "public");
  EXPECT_EQ(Policy::Parse({}).value(), Policy::PublicOnly());
  EXPECT_EQ(Policy::Parse({"*"})->rules(), std::vector<std::string>{"*"});
  EXPECT_TRUE(Policy::Parse({})->rules().empty());
}

TEST(Policy, any_other_rule_closes_everything_else) {
  EXPECT_EQ(Open({"203.0.113.7"}), " 203.0.113.7");
  EXPECT_EQ(Open({"203.0.113.7:443", "203.0.113.0/30:443", "8.8.8.8:53"}),
            " 8.8.8.8:53 203.0.113.0/30:443 203.0.113.7:443");
  EXPECT_EQ(Open({"203.0.113.0/25", "203.0.113.128/25"}), " 203.0.113.0/24");
}

TEST(Policy, a_star_among_others_opens_public_addresses) {
  EXPECT_TRUE(Policy::Parse({"203.0.113.7", "*"})->opens_public());
}

TEST(Policy, what_lies_in_closed_ranges_is_echoed_and_opens_nothing) {
  for (const char* rule : {"240.0.0.0/4", "10.0.0.0/8", "169.254.169.254:80", "127.0.0.1",
                           "192.168.1.7:5432", "100.64.0.1", "168.63.129.16", "255.255.255.255"}) {
    EXPECT_EQ(Open({rule}), "") << rule;
    EXPECT_EQ(Policy::Parse({rule})->rules(), std::vector<std::string>{rule});
  }
  EXPECT_EQ(Policy::Parse({"240.0.0.0/4"}).value(), Policy::DenyAll());
}

TEST(Policy, a_wide_network_opens_only_what_is_public_in_it) {
  const auto open = Policy::Parse({"0.0.0.0/0"})->OpenOnAllPorts();
  ASSERT_EQ(open.size(), ClosedRanges().size() - 2);
  EXPECT_EQ(FormatRange(open.front()), "1.0.0.0-9.255.255.255");
  EXPECT_EQ(FormatRange(open.back()), "198.20.0.0-223.255.255.255");
  EXPECT_EQ(Open({"9.0.0.0/8", "10.0.0.0/8", "11.0.0.0/8"}), " 9.0.0.0/8 11.0.0.0/8");
}

TEST(Policy, refuses_host_names_until_they_are_enforced) {
  for (const char* rule : {"example.com", "example.com:443", "*.example.com", "localhost",
                           "xn--bcher-kva.example", "_dmarc.example.com", "EXAMPLE.com"}) {
    EXPECT_EQ(CodeOf({"203.0.113.7", rule}), errors::kEgressHostNamesUnsupported.name) << rule;
  }
  EXPECT_EQ(CodeOf({"*", "example.com"}), errors::kEgressHostNamesUnsupported.name);
  EXPECT_TRUE(Policy::Parse({"8.8.8.8", "example.com"})
                  .error()
                  .message.starts_with("egress[1] \"example.com\""));
}

TEST(Policy, reads_the_parts_of_host_rules) {
  EXPECT_EQ(ParseRule("*.Example.COM:8443", 7)->name, (NameRule{.name = "example.com",
                                                                .wildcard = true,
                                                                .port = 8443,
                                                                .text = "*.Example.COM:8443",
                                                                .index = 7}));
  EXPECT_EQ(ParseRule("a.b", 0)->name,
            (NameRule{.name = "a.b", .wildcard = false, .port = {}, .text = "a.b", .index = 0}));
}

TEST(Policy, takes_host_names_where_they_are_enforced) {
  const std::vector<std::string> rules = {"203.0.113.7", "example.com", "*.example.com:8443"};
  const Policy policy = Policy::Parse(rules, HostNames::kEnforced).value();
  EXPECT_EQ(policy.rules(), rules);
  EXPECT_FALSE(policy.opens_public());
  EXPECT_TRUE(policy.opens_names());
  ASSERT_EQ(policy.names().size(), 2u);
  EXPECT_TRUE(policy.names()[0].is_checked());
  EXPECT_FALSE(policy.names()[1].is_checked());
  EXPECT_EQ(policy.names()[1].index, 2u);
  ASSERT_EQ(policy.addresses().size(), 1u);
  EXPECT_FALSE(Policy::Parse({"*", "example.com"}, HostNames::kEnforced)->opens_names());
  EXPECT_EQ(Policy::Parse({"example..com"}, HostNames::kEnforced).error().code,
            errors::kEgressBadRule);
}

TEST(Policy, refuses_ipv6_with_a_word_of_its_own) {
  for (const char* rule : {"::1", "2001:db8::/32", "[2001:db8::1]:443", "::ffff:203.0.113.7"}) {
    EXPECT_EQ(CodeOf({rule}), errors::kEgressIpv6Unsupported.name) << rule;
  }
}

TEST(Policy, refuses_what_is_no_rule_and_says_what_to_write) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {" ", "without spaces"},
      {"203.0.113.7 ", "without spaces"},
      {"203.0.113.7,203.0.113.8", "is none of"},
      {std::string("a\0b", 3), "control character"},
      {"bücher.example", "ASCII form"},
      {"https://example.com/", "host alone"},
      {"203.0.113.7:0", "1 to 65535"},
      {"203.0.113.7:65536", "1 to 65535"},
      {"203.0.113.7:080", "1 to 65535"},
      {"203.0.113.7:", "1 to 65535"},
      {"203.0.113.7:80-90", "1 to 65535"},
      {"203.0.113.7/33", "0 to 32"},
      {"203.0.113.7/", "0 to 32"},
      {"203.0.113.0/024", "0 to 32"},
      {"203.0.113.0/+2", "0 to 32"},
      {"203.0.113.7/24", "write \"203.0.113.0/24\""},
      {"example.com/24", "no IPv4 address before it"},
      {"example.com/path", "no IPv4 address before it"},
      {"*:443", "0.0.0.0/0:443"},
      {"*.*", "not the first label"},
      {"a.*.example.com", "not the first label"},
      {"*example.com", "not the first label"},
      {"*.", "names no host"},
      {"example.com.", "leave the dot out"},
      {".example.com", "empty label"},
      {"a..b", "empty label"},
      {"-a.example.com", "no - at an end"},
      {"user@example.com", "is none of"},
      {"!203.0.113.7", "is none of"},
      {"127.1", "ends in a number"},
      {"1.2.3.256", "ends in a number"},
      {"010.0.0.1", "ends in a number"},
      {"0x7f.0x1", "ends in a number"},
      {"3405803783", "ends in a number"},
      {std::string(64, 'a') + ".example.com", "63 characters"},
      {std::string(240, 'a') + ".example.com:65535", "63 characters"},
      {std::string(300, 'a'), "262 at most"},
  };
  for (const auto& [rule, says] : cases) {
    const std::string message = MessageOf(rule);
    EXPECT_TRUE(message.starts_with("egress[3] \"")) << rule << ": " << message;
    EXPECT_NE(message.find(says), std::string::npos) << rule << ": " << message;
    EXPECT_EQ(CodeOf({rule}), errors::kEgressBadRule.name) << rule;
  }
}

TEST(Policy, one_bad_rule_refuses_all) {
  EXPECT_EQ(CodeOf({"*", "203.0.113.7", "nonsense!"}), errors::kEgressBadRule.name);
}

TEST(Policy, limits_the_number_of_rules) {
  std::vector<std::string> rules(kMaxRules, "203.0.113.7");
  EXPECT_EQ(CodeOf(rules), "");
  rules.emplace_back("203.0.113.7");
  EXPECT_EQ(CodeOf(rules), errors::kEgressTooManyRules.name);
}

// By parts, since each has its own meaning for a reader.
TEST(Policy, says_what_each_rule_does) {
  const Policy policy = Policy::Parse({"203.0.113.0/24:443", "240.0.0.0/4", "8.0.0.0/6"}).value();
  const json::Value effective = policy.Effective();
  EXPECT_EQ(Written(*effective.Find("default")), R"("drop")");
  EXPECT_EQ(Written(*effective.Find("names")), R"("none")");
  EXPECT_EQ(Written(*effective.Find("ipv6")), R"("dropped")");
  const auto& rules = effective.Find("rules")->as_array();
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(Written(rules[0]),
            R"({"rule":"203.0.113.0/24:443","enforced":"address","opens":["203.0.113.0/24"],)"
            R"("port":443})");
  EXPECT_EQ(Written(rules[1]),
            R"x({"rule":"240.0.0.0/4","enforced":"nothing","opens":[],)x"
            R"x("closed":["240.0.0.0/4: reserved addresses (RFC 1112), broadcast"]})x");
  EXPECT_EQ(Written(rules[2]),
            R"x({"rule":"8.0.0.0/6","enforced":"address","opens":["8.0.0.0/7","11.0.0.0/8"],)x"
            R"x("closed":["10.0.0.0/8: private addresses (RFC 1918)"]})x");
}

TEST(Policy, says_which_rules_by_name_are_checked_by_name) {
  const json::Value effective =
      Policy::Parse({"Example.com", "*.a.test:443", "b.test:22", "203.0.113.7"},
                    HostNames::kEnforced)
          ->Effective();
  EXPECT_EQ(Written(*effective.Find("default")), R"("drop")");
  EXPECT_EQ(Written(*effective.Find("names")), R"("allowed")");
  const auto& rules = effective.Find("rules")->as_array();
  ASSERT_EQ(rules.size(), 4u);
  EXPECT_EQ(Written(rules[0]),
            R"({"rule":"Example.com","enforced":"name","opens":["example.com"],"ports":[80,443]})");
  EXPECT_EQ(Written(rules[1]),
            R"({"rule":"*.a.test:443","enforced":"name","opens":["*.a.test"],"port":443})");
  EXPECT_EQ(Written(rules[2]),
            R"({"rule":"b.test:22","enforced":"address","opens":["b.test"],"port":22})");
  EXPECT_EQ(Written(rules[3]),
            R"({"rule":"203.0.113.7","enforced":"address","opens":["203.0.113.7"]})");
}

TEST(Policy, says_that_public_addresses_are_open) {
  const json::Value effective = Policy::Parse({"*"})->Effective();
  EXPECT_EQ(Written(*effective.Find("default")), R"("public")");
  EXPECT_EQ(Written(*effective.Find("names")), R"("resolved")");
  EXPECT_EQ(Written(effective.Find("rules")->as_array()[0]),
            R"({"rule":"*","enforced":"address","opens":["every public address"]})");
}

}  // namespace
}  // namespace caisson::egress
