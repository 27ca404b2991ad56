// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/places.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::egress::gate {
namespace {

TEST(Places, nobody_has_to_go_where_nobody_is) {
  const Places<int> places;
  EXPECT_FALSE(places.WhoGoes(1));
  EXPECT_EQ(places.size(), 0u);
  EXPECT_EQ(places.CountOf(1), 0u);
  EXPECT_TRUE(places.Of(1).empty());
}

TEST(Places, the_idlest_of_who_has_most_goes) {
  Places<std::string> places;
  places.Take(1, "a1");
  const auto b1 = places.Take(2, "b1");
  const auto b2 = places.Take(2, "b2");
  places.Take(2, "b3");
  EXPECT_EQ(places.WhoGoes(1), "b1");
  EXPECT_EQ(places.WhoGoes(3), "b1");
  places.Refresh(b1);
  EXPECT_EQ(places.WhoGoes(3), "b2");
  places.Leave(b2);
  EXPECT_EQ(places.WhoGoes(3), "b3");
  EXPECT_EQ(places.CountOf(2), 2u);
  EXPECT_EQ(places.size(), 3u);
}

TEST(Places, who_has_as_much_as_the_others_pays_for_more) {
  Places<std::string> places;
  places.Take(1, "a1");
  places.Take(1, "a2");
  places.Take(2, "b1");
  EXPECT_EQ(places.WhoGoes(1), "a1");
  EXPECT_EQ(places.WhoGoes(2), "b1") << "one more would only change sides";
  EXPECT_EQ(places.WhoGoes(3), "a1");
}

TEST(Places, one_that_comes_new_always_finds_one) {
  Places<std::string> places;
  for (std::uint32_t machine = 1; machine <= 4; ++machine) places.Take(machine, "x");
  EXPECT_EQ(places.WhoGoes(5), "x");
}

TEST(Places, however_they_fight_all_get_the_same) {
  Places<int> places;
  std::map<int, Places<int>::Place> taken;
  constexpr std::size_t kAll = 40;
  int next = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto machine = static_cast<std::uint32_t>(round < 200 ? round % 2 : round % 5);
    if (places.size() == kAll) {
      const int goes = places.WhoGoes(machine).value();
      places.Leave(taken.at(goes));
      taken.erase(goes);
    }
    taken[next] = places.Take(machine, next);
    ++next;
  }
  for (std::uint32_t machine = 0; machine < 5; ++machine) {
    EXPECT_GE(places.CountOf(machine), kAll / 5 - 1) << machine;
    EXPECT_LE(places.CountOf(machine), kAll / 5 + 1) << machine;
  }
  EXPECT_EQ(places.All().size(), kAll);
}

}  // namespace
}  // namespace caisson::egress::gate
