// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Dockerfile: no crash, bounded results, and a mistake names a line that is there.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "images/dockerfile.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::images;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = ParseDockerfile(text, {.images = {{"devbox:1", "devbox:1"}}});
  if (!file) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
    Require(size > kMaxDockerfileBytes ||
            (file.error().span.line >= 1 && file.error().span.line <= lines));
    return 0;
  }
  Require(file->image == "devbox:1" && file->directory.starts_with('/'));
  Require(file->steps.size() <= kMaxTemplateSteps);
  for (const TemplateStep& step : file->steps) {
    Require(!step.arguments.empty() && !step.arguments[0].empty() &&
            step.directory.starts_with('/'));
    for (const std::string& argument : step.arguments)
      Require(argument.find('\0') == std::string::npos);
  }
  return 0;
}
