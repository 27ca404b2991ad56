// SPDX-License-Identifier: Apache-2.0
// The store in one SQLite file. Writers share one connection, each reader takes one of a pool.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace caisson::store::sqlite {

// Makes the file when it is missing and brings its tables up to date. Fails with store.failed and
// store.version.
Result<std::unique_ptr<Store>> Open(const std::string& path);

}  // namespace caisson::store::sqlite
