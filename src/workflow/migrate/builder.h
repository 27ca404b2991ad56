// SPDX-License-Identifier: Apache-2.0
// Writes orcheo_workflow() and the classes of what it puts together.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/migrate/body.h"
#include "workflow/migrate/class_text.h"
#include "workflow/migrate/source.h"

namespace caisson::workflow::migrate {

struct Built {
  // In the place of each function that is a node or a router: its class.
  std::map<const python::FunctionDef*, Lines> classes;
  std::vector<Lines> lambdas;  // classes of lambdas, to stand before the builder
  Lines builder;               // def orcheo_workflow(): ...
};

Built Build(const Subject& subject);

}  // namespace caisson::workflow::migrate
