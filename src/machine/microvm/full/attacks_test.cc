// SPDX-License-Identifier: Apache-2.0
// The corpus of attacks in virtual machines, and what is left of machines whose helper is killed.
#include "machine/test_attacks.h"

#include <gtest/gtest.h>

#include <memory>

#include "machine/microvm/test_microvm.h"
#include "machine/test_traces.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Microvm, MachineAttack, AttacksIn(microvm::MicrovmWith(false)),
                         NameOfAttack);

TEST(MicrovmTraces, LivesOfMachinesWhoseHelperIsKilledLeaveNothingAndNobodyIsToldAnUntruth) {
  if (const std::string why = microvm::WhyNoVirtualMachines(); !why.empty()) GTEST_SKIP() << why;
  HelperProcess helper(microvm::MicrovmHelper());
  const auto driver = helper.Open();
  ASSERT_TRUE(driver) << driver.error().message;
  const MachineSpec spec{.id = "life",
                         .image = ImageForTests(),
                         .memory_bytes = 128ull << 20,
                         .disk_bytes = 128ull << 20,
                         .pids = 32,
                         .network = egress::Policy::DenyAll()};
  LiveThroughCrashes(helper, **driver, spec, 30);
}

}  // namespace
}  // namespace caisson::machine
