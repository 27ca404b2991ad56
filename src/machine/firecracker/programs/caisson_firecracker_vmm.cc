// SPDX-License-Identifier: Apache-2.0
// caisson-firecracker-vmm: stands beside one virtual machine of Firecracker. Started by
// `caisson machined`, which gives it a plan and sockets (machine/microvm/plan.h); of no use to
// anybody else.
#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "machine/firecracker/monitor.h"
#include "machine/firecracker/walls.h"
#include "machine/microvm/keeper.h"
#include "machine/microvm/plan.h"

namespace firecracker = caisson::machine::firecracker;
namespace microvm = caisson::machine::microvm;

int main() {
  const auto plan = microvm::ReadPlan();
  if (!plan) {
    std::fprintf(stderr, "caisson-firecracker-vmm: this is started by caisson machined: %s\n",
                 plan.error().message.c_str());
    return 2;
  }
  ::umask(022);
  firecracker::Jailer jailer = firecracker::EnterWalls(*plan);
  ::umask(077);
  microvm::Keep(*plan, *firecracker::MakeMonitor(*plan, std::move(jailer)));
}
