// SPDX-License-Identifier: Apache-2.0
#include "base/error_catalogue.h"

#include <algorithm>
#include <iterator>

namespace caisson {
namespace {

constexpr ErrorEntry kEntries[] = {
#define CAISSON_ERROR(code, exit_code, http_status, text) {code, exit_code, http_status, text},
#include "errors/catalogue.inc"
#undef CAISSON_ERROR
};

}  // namespace

std::span<const ErrorEntry> ErrorCatalogue() { return kEntries; }

const ErrorEntry& FindError(ErrorCode code) {
  auto named = [](std::string_view name) {
    return std::ranges::find(kEntries, name, &ErrorEntry::code);
  };
  const auto* entry = named(code.name);
  return entry != std::end(kEntries) ? *entry : *named("internal.failed");
}

}  // namespace caisson
