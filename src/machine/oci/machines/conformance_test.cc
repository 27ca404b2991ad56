// SPDX-License-Identifier: Apache-2.0
// Containers as a Driver. What they leave on the host is looked at in traces_test.cc.
#include "machine/test_conformance.h"

#include <gtest/gtest.h>

#include "machine/oci/machines/test_oci.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Runc, DriverConformance, testing::Values(oci::OciWith("runc", true)),
                         [](const auto&) { return "with_network"; });
INSTANTIATE_TEST_SUITE_P(Runsc, DriverConformance, testing::Values(oci::OciWith("runsc", true)),
                         [](const auto&) { return "with_network"; });

}  // namespace
}  // namespace caisson::machine
