// SPDX-License-Identifier: Apache-2.0
// Virtual machines as a Driver, with an emulated processor where there is no other.
#include "machine/test_conformance.h"

#include <gtest/gtest.h>

#include "machine/microvm/test_microvm.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Microvm, DriverConformance, testing::Values(microvm::MicrovmWith(false)),
                         [](const auto&) { return "without_network"; });
INSTANTIATE_TEST_SUITE_P(MicrovmNetwork, DriverConformance,
                         testing::Values(microvm::MicrovmWith(true)),
                         [](const auto&) { return "with_network"; });

}  // namespace
}  // namespace caisson::machine
