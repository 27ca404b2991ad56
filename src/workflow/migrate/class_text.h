// SPDX-License-Identifier: Apache-2.0
// Writes CodeNode classes: of functions and lambdas that are nodes, and of routers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workflow/migrate/body.h"
#include "workflow/migrate/source.h"

namespace caisson::workflow::migrate {

// `places`: where the class is used.
Lines WriteClass(const Subject& subject, const python::FunctionDef& function, std::string_view name,
                 Role role, std::vector<Place> places);
Lines WriteClass(const Subject& subject, const python::Lambda& lambda, std::string_view name,
                 Role role, std::vector<Place> places);

// "collect_lines" -> "CollectLines".
std::string ClassName(std::string_view function);
// As a Python literal.
std::string Quoted(std::string_view text);

}  // namespace caisson::workflow::migrate
