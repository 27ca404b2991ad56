// SPDX-License-Identifier: Apache-2.0
// Machines in containers of Docker and Podman, as a Driver and under attack, and what they leave.
#include "machine/test_conformance.h"

#include <gtest/gtest.h>

#include "machine/oci/engines/test_engines.h"
#include "machine/oci/machines/test_oci_traces.h"
#include "machine/test_attacks.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Podman, DriverConformance,
                         testing::Values(oci::EngineWith("podman", true)),
                         [](const auto&) { return "with_network"; });
INSTANTIATE_TEST_SUITE_P(Docker, DriverConformance,
                         testing::Values(oci::EngineWith("docker", true)),
                         [](const auto&) { return "with_network"; });
INSTANTIATE_TEST_SUITE_P(Podman, MachineAttack, AttacksIn(oci::EngineWith("podman", false)),
                         NameOfAttack);
INSTANTIATE_TEST_SUITE_P(Docker, MachineAttack, AttacksIn(oci::EngineWith("docker", false)),
                         NameOfAttack);

}  // namespace

namespace oci {
namespace {

INSTANTIATE_TEST_SUITE_P(Podman, OciTraces, testing::Values(OciKind{"podman", WhyNoEngine}),
                         NameOfKind);
INSTANTIATE_TEST_SUITE_P(Docker, OciTraces, testing::Values(OciKind{"docker", WhyNoEngine}),
                         NameOfKind);

}  // namespace
}  // namespace oci
}  // namespace caisson::machine
