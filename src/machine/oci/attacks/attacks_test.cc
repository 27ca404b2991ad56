// SPDX-License-Identifier: Apache-2.0
// The corpus of attacks in containers of both runtimes. Long: the whole tier runs it.
#include "machine/test_attacks.h"

#include "machine/oci/machines/test_oci.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Runc, MachineAttack, AttacksIn(oci::OciWith("runc", false)), NameOfAttack);
INSTANTIATE_TEST_SUITE_P(Runsc, MachineAttack, AttacksIn(oci::OciWith("runsc", false)),
                         NameOfAttack);

}  // namespace
}  // namespace caisson::machine
