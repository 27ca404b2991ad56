// SPDX-License-Identifier: Apache-2.0
// The drivers that a service makes machines with, by name. Which one a sandbox has is in its row
// and never changes. A row may name one that the service does not have (any more): everything
// about that machine fails then, and nothing is concluded from it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine/driver.h"

namespace caisson::control {

class Drivers {
 public:
  // One driver or several, each under the name that its capabilities say. They must outlive this.
  // The first is what is taken when nobody asks for another one.
  Drivers(machine::Driver& only);  // NOLINT: a driver is a list of one
  explicit Drivers(const std::vector<machine::Driver*>& all);
  Drivers(Drivers&&) noexcept;
  ~Drivers();

  const std::string& standard() const { return names_.front(); }
  const std::vector<std::string>& names() const { return names_; }  // the first is standard()
  bool Has(const std::string& name) const { return drivers_.contains(name); }
  // For a name that is not there: a driver whose calls fail with machine.unavailable.
  machine::Driver& Of(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, machine::Driver*> drivers_;
  std::unique_ptr<machine::Driver> missing_;
};

}  // namespace caisson::control
