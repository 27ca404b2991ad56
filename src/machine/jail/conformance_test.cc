// SPDX-License-Identifier: Apache-2.0
// The jail as a Driver. What it leaves on the host is looked at in jail/traces_test.cc.
#include "machine/test_conformance.h"

#include <gtest/gtest.h>

#include "machine/jail/test_jail.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Jail, DriverConformance, testing::Values(jail::JailWith(false)),
                         [](const auto&) { return "without_network"; });
INSTANTIATE_TEST_SUITE_P(Network, DriverConformance, testing::Values(jail::JailWith(true)),
                         [](const auto&) { return "with_network"; });

}  // namespace
}  // namespace caisson::machine
