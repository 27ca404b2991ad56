// SPDX-License-Identifier: Apache-2.0
#include "cli/prepared_vm.h"

#include <charconv>

#include "cli/quantity.h"
#include "machine/driver.h"

namespace caisson::cli {

std::expected<PreparedVm, std::string> ParsePreparedVm(std::string_view text) {
  const auto wrong = [&text] {
    return std::unexpected("'" + std::string(text.substr(0, 80)) +
                           "' is no IMAGE,CPUS,MEMORY as in devbox:1,2,1GiB");
  };
  const std::size_t second = text.rfind(',');
  const std::size_t first = second == std::string_view::npos || second == 0
                                ? std::string_view::npos
                                : text.rfind(',', second - 1);
  if (first == std::string_view::npos || first == 0) return wrong();
  PreparedVm vm{.image = std::string(text.substr(0, first))};
  const std::string_view cpus = text.substr(first + 1, second - first - 1);
  const auto [end, error] = std::from_chars(cpus.data(), cpus.data() + cpus.size(), vm.cpus);
  if (error != std::errc() || end != cpus.data() + cpus.size() || !(vm.cpus >= 0.01) ||
      vm.cpus > 1024) {
    return wrong();
  }
  const auto memory = ParseBytes(text.substr(second + 1));
  if (!memory) return std::unexpected(memory.error());
  if (*memory < machine::kMinMemoryBytes) return wrong();
  vm.memory_bytes = *memory;
  return vm;
}

}  // namespace caisson::cli
