// SPDX-License-Identifier: Apache-2.0
// The corpus of attacks in jails.
#include "machine/test_attacks.h"

#include "machine/jail/test_jail.h"

namespace caisson::machine {
namespace {

INSTANTIATE_TEST_SUITE_P(Jail, MachineAttack, AttacksIn(jail::JailWith(false)), NameOfAttack);

}  // namespace
}  // namespace caisson::machine
