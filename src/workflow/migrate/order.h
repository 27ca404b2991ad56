// SPDX-License-Identifier: Apache-2.0
// Where the order of a dict shows. The guest's dicts are not in the order of insertion.
#pragma once

#include <cstdint>

#include "workflow/migrate/facts.h"

namespace caisson::workflow::migrate {

enum class Order : std::uint8_t {
  kHidden,  // whatever the order, the result is the same
  kTies,    // only among equal elements, or in the last digit of a sum
  kShows,
};

// `items`: an expression that gives the keys or items of a dict one by one.
Order OrderOf(const python::Expr* items, const Facts& facts);

// Whether `value` is a dict for sure: a display, a comprehension, dict(...). May be null.
bool GivesDict(const python::Expr* value);

}  // namespace caisson::workflow::migrate
