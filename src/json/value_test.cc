// SPDX-License-Identifier: Apache-2.0
#include "json/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace caisson::json {
namespace {

TEST(Value, IntegersKeepEveryDigit) {
  EXPECT_EQ(Value::Integer("9223372036854775807").as_int(), 9223372036854775807);
  EXPECT_EQ(Value::Integer("-9223372036854775808").as_int(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Value::Integer("9223372036854775808").as_bigint(), "9223372036854775808");
  EXPECT_EQ(Value::Integer("-0009223372036854775809").as_bigint(), "-9223372036854775809");
  EXPECT_EQ(Value(std::uint64_t{18446744073709551615u}).as_bigint(), "18446744073709551615");
  EXPECT_TRUE(Value(std::uint64_t{5}).is_int());
}

TEST(Value, IntegersThatFitAreNeverBig) {
  EXPECT_EQ(Value::Integer("-0").as_int(), 0);
  EXPECT_EQ(Value::Integer("0000000000000000000000000007").as_int(), 7);
}

TEST(Value, ToDoubleIsTheNearest) {
  EXPECT_EQ(Value::Integer("18446744073709551616").ToDouble(), 18446744073709551616.0);
  EXPECT_EQ(Value(3).ToDouble(), 3.0);
  EXPECT_TRUE(std::isinf(Value::Integer("-1" + std::string(400, '0')).ToDouble()));
  EXPECT_LT(Value::Integer("-1" + std::string(400, '0')).ToDouble(), 0);
}

TEST(Value, EqualityTellsIntFromFloatAndSignsOfZero) {
  EXPECT_FALSE(Value(1) == Value(1.0));
  EXPECT_FALSE(Value(0.0) == Value(-0.0));
  EXPECT_FALSE(Value(true) == Value(1));
  EXPECT_TRUE(Value("a") == Value(std::string("a")));
}

TEST(Value, EqualityIgnoresTheOrderOfKeys) {
  const Value one = Object{{"a", 1}, {"b", Array{2, nullptr}}};
  const Value two = Object{{"b", Array{2, nullptr}}, {"a", 1}};
  EXPECT_TRUE(one == two);
  EXPECT_FALSE(one == Value(Object{{"a", 1}, {"c", Array{2, nullptr}}}));
  EXPECT_FALSE(one == Value(Object{{"a", 1}}));
}

TEST(Value, CopiesAreIndependent) {
  Value original = Object{{"list", Array{1, 2}}};
  Value copy = original;
  copy.mutable_object()["list"].mutable_array().push_back(3);
  EXPECT_EQ(original.Find("list")->as_array().size(), 2u);
  EXPECT_EQ(copy.Find("list")->as_array().size(), 3u);
}

TEST(Value, CopiesMayBeChangedByDifferentThreads) {
  Object shared;
  for (int i = 0; i < 100; ++i) shared.Set("k" + std::to_string(i), i);
  const Value original = std::move(shared);
  auto work = [](Value mine, int id) {
    for (int i = 0; i < 100; ++i) mine.mutable_object()["k" + std::to_string(i)] = id;
    EXPECT_EQ(mine.Find("k99")->as_int(), id);
  };
  std::thread one(work, original, 1);
  std::thread two(work, original, 2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(original.Find("k" + std::to_string(i))->as_int(), i);
  }
  one.join();
  two.join();
}

TEST(Object, KeepsOrderReplacesInPlaceAndErases) {
  for (const int size : {3, 16, 17, 40, 3000}) {
    Object object;
    for (int i = 0; i < size; ++i) object.Set("key" + std::to_string(i), i);
    object.Set("key1", "new");
    EXPECT_EQ(object.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(std::next(object.begin())->second.as_string(), "new");
    EXPECT_TRUE(object.Erase("key0"));
    EXPECT_FALSE(object.Erase("key0"));
    EXPECT_FALSE(object.Contains("key0"));
    for (int i = 2; i < size; ++i) {
      ASSERT_NE(object.Find("key" + std::to_string(i)), nullptr) << size << " " << i;
      EXPECT_EQ(object.Find("key" + std::to_string(i))->as_int(), i);
    }
    EXPECT_EQ(object.Find("nope"), nullptr);
    object["nope"] = 1;
    EXPECT_EQ(object.Find("nope")->as_int(), 1);
  }
}

TEST(Object, OfManyKeysIsBuiltInLinearTime) {
  Object object;
  for (int i = 0; i < 300'000; ++i) object.Set("key" + std::to_string(i), i);
  EXPECT_EQ(object.size(), 300'000u);
}

}  // namespace
}  // namespace caisson::json
