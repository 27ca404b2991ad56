// SPDX-License-Identifier: Apache-2.0
// caisson-vmm: stands beside one virtual machine. Started by `caisson machined`, which gives it a
// plan and sockets (machine/microvm/plan.h); of no use to anybody else.
#include <sys/stat.h>

#include <cstdio>

#include "machine/microvm/keeper.h"
#include "machine/microvm/plan.h"
#include "machine/microvm/qemu.h"
#include "machine/microvm/walls.h"

namespace microvm = caisson::machine::microvm;

int main() {
  const auto plan = microvm::ReadPlan();
  if (!plan) {
    std::fprintf(stderr, "caisson-vmm: this is started by caisson machined: %s\n",
                 plan.error().message.c_str());
    return 2;
  }
  ::umask(022);
  microvm::EnterWalls(*plan);
  ::umask(077);
  microvm::Keep(*plan, *microvm::MakeQemu(*plan));
}
