// SPDX-License-Identifier: Apache-2.0
// For tests of drivers: the driver, and the world that it is in.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "machine/driver.h"

namespace caisson::machine {

// A driver, and what the tests must know and do beside it.
class World {
 public:
  virtual ~World() = default;
  virtual std::string WhyNot() = 0;  // why it cannot be had here; empty when it can
  virtual Driver& driver() = 0;
  virtual std::string image() = 0;
  // Ends all that can end without the machines' ending, SIGKILL, and starts it again.
  virtual void Restart() = 0;
  // Ends the machine's agent from outside.
  virtual void KillAgent(const std::string& id) = 0;
};

class MakeWorld : public std::function<std::unique_ptr<World>()> {
 public:
  using function::function;
};
// The names of parametrised tests stay the same between runs.
inline void PrintTo(const MakeWorld&, std::ostream* out) { *out << "driver"; }

}  // namespace caisson::machine
