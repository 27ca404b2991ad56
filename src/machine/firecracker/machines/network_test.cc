// SPDX-License-Identifier: Apache-2.0
// That a machine's monitor is put into its machine's own network and opens its tap there, with no
// rights but its id. That what then passes is under the machine's rules is shown in
// egress/named_tap_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "egress/test_world.h"
#include "machine/firecracker/machines/test_firecracker.h"

namespace caisson::machine::firecracker {
namespace {

TEST_F(FirecrackerMachines, HaveATapEachInANetworkOfTheirOwn) {
  if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
  const egress::World world;
  Start(true);
  ASSERT_TRUE(driver_->capabilities().network);
  const auto one = driver_->Create(Spec("one"));
  ASSERT_TRUE(one) << one.error().message << doubles().Requests();
  const auto two = driver_->Create(Spec("two"));
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_NE(one->ip, "");
  EXPECT_NE(one->ip, two->ip);
  EXPECT_EQ(doubles().Count("--netns "), 2U) << "a template has none of the host's";
  EXPECT_EQ(doubles().Count(" -> "), 0U) << doubles().Requests();
  EXPECT_EQ(CodeOf(driver_->SetNetwork("one", egress::Policy::PublicOnly())), "fine");
  ASSERT_TRUE(driver_->Pause("one", Level::kDisk));
  ASSERT_TRUE(driver_->Resume("one"));
  EXPECT_EQ(Say("one", {"identity"}), "one");
}

}  // namespace
}  // namespace caisson::machine::firecracker
