// SPDX-License-Identifier: Apache-2.0
// The table generated from api/errors.yaml: what each code means to a shell and to an HTTP client.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"

namespace caisson {

struct ErrorEntry {
  std::string_view code;
  int exit_code;
  int http_status;
  std::string_view text;
};

// All entries in the order of the catalogue; static storage.
std::span<const ErrorEntry> ErrorCatalogue();

// The entry of `code`, or that of internal.failed when the catalogue has no such code.
const ErrorEntry& FindError(ErrorCode code);

}  // namespace caisson
