// SPDX-License-Identifier: Apache-2.0
// caisson-vmm: stands beside one virtual machine. Started by `caisson machined`, which gives it a
// plan and sockets (machine/microvm/plan.h); of no use to anybody else.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "json/reader.h"
#include "machine/microvm/keeper.h"
#include "machine/microvm/plan.h"
#include "machine/microvm/walls.h"

namespace microvm = caisson::machine::microvm;

int main() {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(microvm::kPlanFd, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  ::close(microvm::kPlanFd);
  const auto value = caisson::json::Read(text);
  const auto plan = value ? microvm::PlanFromJson(*value) : std::unexpected(value.error());
  if (!plan) {
    std::fprintf(stderr, "caisson-vmm: this is started by caisson machined: %s\n",
                 plan.error().message.c_str());
    return 2;
  }
  ::umask(022);
  microvm::EnterWalls(*plan);
  ::umask(077);
  microvm::Keep(*plan);
}
