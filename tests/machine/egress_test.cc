// SPDX-License-Identifier: Apache-2.0
// Machines of every driver in networks: what holds at every moment of their lives, the egress
// matrix, and what fails beside them. The jail's shorter half is in machine_jail_test.
#include <gtest/gtest.h>

#include "machine/jail/test_jail.h"
#include "machine/microvm/test_microvm.h"
#include "machine/oci/engines/test_engines.h"
#include "machine/test_egress_matrix.h"
#include "machine/test_networks.h"

namespace caisson::machine {
namespace {

NetworkedDriver Oci(const std::string& runtime) {
  return {.name = "networks", .helper = oci::OciHelper(runtime), .why_not = [runtime] {
            return oci::WhyNoOci(runtime);
          }};
}
NetworkedDriver Engine(const std::string& name) {
  return {.name = "networks", .helper = oci::OciHelper(name), .why_not = [name] {
            return oci::WhyNoEngine(name);
          }};
}
const NetworkedDriver kJail = {
    .name = "networks", .helper = jail::JailHelper(), .why_not = WhyNoMachines};
const NetworkedDriver kMicrovm = {.name = "networks",
                                  .helper = microvm::MicrovmHelper(),
                                  .why_not = microvm::WhyNoVirtualMachines};

INSTANTIATE_TEST_SUITE_P(Jail, EgressFaults, testing::Values(kJail), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runc, MachineNetworks, testing::Values(Oci("runc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runc, EgressMatrix, testing::Values(Oci("runc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runc, EgressFaults, testing::Values(Oci("runc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runsc, MachineNetworks, testing::Values(Oci("runsc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runsc, EgressMatrix, testing::Values(Oci("runsc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Runsc, EgressFaults, testing::Values(Oci("runsc")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Podman, MachineNetworks, testing::Values(Engine("podman")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Podman, EgressMatrix, testing::Values(Engine("podman")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Podman, EgressFaults, testing::Values(Engine("podman")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Docker, MachineNetworks, testing::Values(Engine("docker")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Docker, EgressMatrix, testing::Values(Engine("docker")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Docker, EgressFaults, testing::Values(Engine("docker")), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Microvm, MachineNetworks, testing::Values(kMicrovm), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Microvm, EgressMatrix, testing::Values(kMicrovm), NameOfDriver);
INSTANTIATE_TEST_SUITE_P(Microvm, EgressFaults, testing::Values(kMicrovm), NameOfDriver);

}  // namespace
}  // namespace caisson::machine

int main(int argc, char** argv) { return caisson::machine::RunTestsOrGate(argc, argv); }
