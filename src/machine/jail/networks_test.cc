// SPDX-License-Identifier: Apache-2.0
// Jails in networks: what machines of every driver must do there, and what a helper without a gate
// refuses. What fails beside them is tried in the full tier (tests/machine).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "errors/egress.h"
#include "machine/jail/test_jail.h"
#include "machine/test_egress_matrix.h"
#include "machine/test_networks.h"
#include "machine/test_traces.h"

namespace caisson::machine {
namespace {

const NetworkedDriver kJail = {
    .name = "jail", .helper = jail::JailHelper(), .why_not = WhyNoMachines};

INSTANTIATE_TEST_SUITE_P(Jail, MachineNetworks, testing::Values(kJail), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Jail, EgressMatrix, testing::Values(kJail), NameOfDriver);

class EarlierJails : public Networked {
 protected:
  // As a helper wrote them that knew no rules by host name and no networks that machines share.
  void MakeRecordsOld() const {
    for (const auto& slot : std::filesystem::directory_iterator(helper_->state() + "/machines")) {
      const std::string path = slot.path().string() + "/record.json";
      std::string text = ContentOf(path);
      const std::string since = ",\"shared_networks\":[]";
      const std::size_t at = text.find(since);
      ASSERT_NE(at, std::string::npos) << text;
      std::ofstream(path) << text.erase(at, since.size());
    }
  }
};

TEST_P(EarlierJails, KeepTheirPoliciesAndNothingOpensByTheUpgrade) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> rules = {
      {"some", {"203.0.113.10:80"}}, {"all", {}}, {"none", {"240.0.0.0/4"}}};
  for (const auto& [id, of_machine] : rules) Make(id, Rules(of_machine));
  ASSERT_TRUE(driver_->Pause("none", Level::kMemory));
  Watch("some", {"203.0.113.10:80", "203.0.113.20:80", "203.0.113.10:8080", "10.9.9.9:80"});
  helper_->Kill();
  MakeRecordsOld();
  helper_->Start();
  ASSERT_TRUE(driver_->Resume("none"));
  Expect("none", {{"fetch('x', 80, '203.0.113.10')", "refused"},
                  {"fetch('good.test', 80)", "no name"},
                  {"fetch('x', 80, '10.9.9.9')", "refused"}});
  Expect("some", {{"fetch('x', 80, '203.0.113.10')", "200"},
                  {"fetch('x', 80, '203.0.113.20')", "refused"},
                  {"fetch('good.test', 80)", "no name"}});
  Expect("all", {{"fetch('good.test', 80)", "200"},
                 {"fetch('x', 80, '203.0.113.20')", "200"},
                 {"fetch('x', 80, '10.9.9.9')", "refused"}});
  EXPECT_EQ(Reached("some"), (std::set<std::string>{"some 203.0.113.10:80"}));
}

INSTANTIATE_TEST_SUITE_P(Jail, EarlierJails, testing::Values(kJail), NameOfDriver);

TEST(WithoutGate, RulesByNameAreRefused) {
  if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
  if (!egress::CanMakeNetworks()) GTEST_SKIP() << "needs nft and ip (nftables, iproute2)";
  const egress::World world;
  const HelperProcess helper(jail::JailHelper(true));
  const auto driver = helper.Open();
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_FALSE((*driver)->capabilities().host_name_rules);
  const auto spec = [](const egress::Policy& policy) {
    return MachineSpec{.id = "one", .image = ImageForTests(), .network = policy};
  };
  EXPECT_EQ((*driver)->Create(spec(Rules({"203.0.113.10", "good.test"}))).error().code,
            errors::kEgressHostNamesUnsupported);
  ASSERT_TRUE((*driver)->Create(spec(egress::Policy::DenyAll())));
  EXPECT_EQ((*driver)->SetNetwork("one", Rules({"good.test"})).error().code,
            errors::kEgressHostNamesUnsupported);
}

}  // namespace
}  // namespace caisson::machine

int main(int argc, char** argv) { return caisson::machine::RunTestsOrGate(argc, argv); }
