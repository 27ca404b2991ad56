// SPDX-License-Identifier: Apache-2.0
#include "egress/name_rules.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

NameRules Compiled(const std::vector<std::string>& rules) {
  return NameRules(Policy::Parse(rules, HostNames::kEnforced)->names());
}
std::string Found(const NameRules& rules, std::string_view name) {
  std::string text;
  const auto found = rules.FindAll(name);
  for (const NameRule* rule : found) text += (text.empty() ? "" : " ") + rule->text;
  EXPECT_EQ(rules.First(name), found.empty() ? nullptr : found.front()) << name;
  return text;
}
using Ports = NameRules::Ports;

TEST(NameRules, a_name_means_itself_in_any_case) {
  const NameRules rules = Compiled({"Example.com"});
  for (const char* name : {"example.com", "EXAMPLE.COM", "example.com."})
    EXPECT_EQ(Found(rules, name), "Example.com") << name;
  for (const char* name : {"a.example.com", "example.co", "xexample.com", "com", "", ".",
                           "example.com..", ".example.com", "example..com", "example.com:443"}) {
    EXPECT_EQ(Found(rules, name), "") << name;
  }
}

TEST(NameRules, a_wildcard_means_one_or_more_labels_below) {
  const NameRules rules = Compiled({"*.example.com"});
  EXPECT_EQ(Found(rules, "a.example.com"), "*.example.com");
  EXPECT_EQ(Found(rules, "b.A.example.com"), "*.example.com");
  for (const char* name :
       {"example.com", "aexample.com", ".example.com", "*.example.com", "a.example.com.evil.test"})
    EXPECT_EQ(Found(rules, name), "") << name;
}

TEST(NameRules, a_name_with_a_nul_or_other_bytes_falls_under_nothing) {
  const NameRules rules = Compiled({"*.example.com"});
  EXPECT_EQ(Found(rules, std::string_view("evil.test\0.example.com", 22)), "");
  EXPECT_EQ(Found(rules, "a b.example.com"), "");
  EXPECT_EQ(Found(rules, "b\xc3\xbc.example.com"), "");
  EXPECT_EQ(Found(rules, std::string(64, 'a') + ".example.com"), "");
  std::string longest = "example.com";
  while (longest.size() + 2 <= 253) longest = "a." + longest;
  EXPECT_EQ(Found(rules, longest), "*.example.com");
  EXPECT_EQ(Found(rules, "aaaa." + longest), "");
}

TEST(NameRules, rules_are_found_in_their_order) {
  const NameRules rules = Compiled({"*.test:80", "*.b.test:443", "a.b.test", "*.test:443"});
  EXPECT_EQ(Found(rules, "a.b.test"), "*.test:80 *.b.test:443 a.b.test *.test:443");
  EXPECT_EQ(Found(rules, "b.test"), "*.test:80 *.test:443");
  EXPECT_EQ(rules.Find("a.b.test", 443)->text, "*.b.test:443");
  EXPECT_EQ(rules.Find("A.B.test.", 80)->text, "*.test:80");
  EXPECT_EQ(rules.Find("b.test", 443)->text, "*.test:443");
}

TEST(NameRules, ports_are_those_of_all_rules_of_a_name) {
  const NameRules rules =
      Compiled({"a.test", "a.test:8443", "*.test:443", "*.a.test:22", "b.test:80"});
  EXPECT_EQ(rules.PortsOf("a.test"), (Ports{.checked = {80, 443}, .direct = {8443}}));
  EXPECT_EQ(rules.PortsOf("x.a.test"), (Ports{.checked = {443}, .direct = {22}}));
  EXPECT_EQ(rules.PortsOf("b.test"), (Ports{.checked = {80, 443}, .direct = {}}));
  EXPECT_EQ(rules.PortsOf("other"), Ports{});
  EXPECT_EQ(rules.Find("a.test", 443)->text, "a.test");
  EXPECT_EQ(rules.Find("x.a.test", 80), nullptr);
  EXPECT_EQ(rules.Find("x.a.test", 22)->text, "*.a.test:22");
}

}  // namespace
}  // namespace caisson::egress
