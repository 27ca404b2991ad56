// SPDX-License-Identifier: Apache-2.0
// Puts the migrated file together: each statement of the module kept, left out, or replaced by what
// became of it, with the comments and empty lines between them.
#pragma once

#include "workflow/migrate/body.h"
#include "workflow/migrate/builder.h"
#include "workflow/migrate/source.h"

namespace caisson::workflow::migrate {

Lines Assemble(const python::Module& module, const Subject& subject, const Built& built);

}  // namespace caisson::workflow::migrate
