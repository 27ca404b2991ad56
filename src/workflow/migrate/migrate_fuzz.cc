// SPDX-License-Identifier: Apache-2.0
// Any bytes: a migration that is done gives a file that compiles and that migrating again leaves as
// it is; one that is not says why.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "workflow/compiler.h"
#include "workflow/migrate/migrate.h"

namespace caisson::workflow::migrate {
namespace {

[[noreturn]] void Fail(const char* what, std::string_view text) {
  std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

void Check(std::string_view source) {
  const Migration migration = Migrate(source);
  const bool decisions = std::ranges::any_of(
      migration.findings, [](const Diagnostic& each) { return each.severity == Severity::kError; });
  if (migration.done == decisions) Fail("done and undecided, or neither", migration.text);
  for (const Diagnostic& each : migration.findings) {
    if (each.message.empty()) Fail("a finding without a message", each.code.name);
  }
  if (!migration.done) return;
  if (!Compile(migration.text).ok()) Fail("the result does not compile", migration.text);
  if (Migrate(migration.text).text != migration.text) Fail("is changed again", migration.text);
}

}  // namespace
}  // namespace caisson::workflow::migrate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  caisson::workflow::migrate::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
