// SPDX-License-Identifier: Apache-2.0
#include "egress/shared_networks.h"

#include <gtest/gtest.h>

#include <string>

#include "errors/egress.h"

namespace caisson::egress {
namespace {

using Pair = SharedNetworks::Pair;
using Pairs = std::vector<Pair>;

SharedNetworks::Change Set(SharedNetworks& networks, std::uint32_t address,
                           const std::set<std::string>& ids) {
  auto change = networks.Plan(address, ids).value();
  networks.Do(address, ids, change);
  return change;
}

TEST(SharedNetworks, machines_of_one_network_are_open_to_one_another) {
  SharedNetworks networks;
  EXPECT_TRUE(Set(networks, 1, {"a"}).empty());
  EXPECT_EQ(Set(networks, 2, {"a"}).opened, (Pairs{{2, 1}, {1, 2}}));
  EXPECT_TRUE(Set(networks, 3, {"b"}).empty());
  EXPECT_TRUE(Set(networks, 2, {"a"}).empty()) << "once more";
}

TEST(SharedNetworks, leaving_closes_what_no_other_network_opens) {
  SharedNetworks networks;
  Set(networks, 1, {"a", "b"});
  Set(networks, 2, {"a", "b"});
  Set(networks, 3, {"a"});
  EXPECT_EQ(Set(networks, 1, {"b"}).closed, (Pairs{{1, 3}, {3, 1}}));
  EXPECT_EQ(Set(networks, 1, {}).closed, (Pairs{{1, 2}, {2, 1}}));
  EXPECT_TRUE(Set(networks, 1, {}).empty());
}

TEST(SharedNetworks, what_the_filter_had_before_is_closed_with_its_machine) {
  SharedNetworks networks;
  networks.Know({{1, 2}, {2, 1}, {2, 3}, {3, 2}});
  EXPECT_EQ(Set(networks, 2, {}).closed.size(), 4u);
  networks.Know({{1, 2}, {2, 1}});
  EXPECT_EQ(Set(networks, 1, {"a"}).closed.size(), 2u) << "2 is in no network that is known";
  EXPECT_EQ(Set(networks, 2, {"a"}).opened.size(), 2u);
}

TEST(SharedNetworks, has_limits_and_refuses_ids_of_another_form) {
  SharedNetworks networks;
  for (const char* id : {"", "A", "a b", "a.b"})
    EXPECT_EQ(networks.Plan(1, {id}).error().code, errors::kEgressBadNetwork) << id;
  EXPECT_FALSE(networks.Plan(1, {std::string(65, 'a')}));
  EXPECT_TRUE(networks.Plan(1, {"1000/net-01abc_d"}));
  std::set<std::string> many;
  for (std::size_t i = 0; i <= kMaxSharedNetworks; ++i) many.insert(std::to_string(i));
  EXPECT_FALSE(networks.Plan(1, many));
  for (std::uint32_t i = 0; i < kMaxNetworkMembers; ++i) Set(networks, i, {"a"});
  EXPECT_FALSE(networks.Plan(1000, {"a"}));
  EXPECT_TRUE(networks.Plan(5, {"a"}));
}

}  // namespace
}  // namespace caisson::egress
