// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "block/libraries.h"
#include "cli/block.h"
#include "cli/commands.h"

namespace caisson::cli {
namespace {

using block::kRuntimeIds;
using block::Library;
using block::RuntimeId;

json::Value ToJson(const Library& library) {
  json::Object versions;
  for (const RuntimeId id : kRuntimeIds) {
    const std::string_view version = library.versions[static_cast<std::size_t>(id)];
    versions.Set(block::RuntimeName(id), library.IsIn(id) ? json::Value(version) : json::Value());
  }
  return json::Object{
      {"name", library.name}, {"module", library.module}, {"versions", std::move(versions)}};
}

json::Value AllAsJson() {
  json::Object pythons;
  for (const RuntimeId id : kRuntimeIds) {
    pythons.Set(block::RuntimeName(id), "3." + std::to_string(block::PythonMinor(id)));
  }
  json::Array libraries;
  for (const Library& library : block::Libraries()) libraries.push_back(ToJson(library));
  return json::Object{{"python", std::move(pythons)}, {"libraries", std::move(libraries)}};
}

std::string Row(std::string_view name, std::string_view module,
                const std::array<std::string, kRuntimeIds.size()>& cells) {
  std::string line = fmt::format("{:<16} {:<12}", name, module);
  for (const std::string& cell : cells) line += fmt::format(" {:<12}", cell);
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

std::string AllAsTable() {
  std::array<std::string, kRuntimeIds.size()> names;
  std::array<std::string, kRuntimeIds.size()> pythons;
  for (const RuntimeId id : kRuntimeIds) {
    names[static_cast<std::size_t>(id)] = block::RuntimeName(id);
    pythons[static_cast<std::size_t>(id)] = "3." + std::to_string(block::PythonMinor(id));
  }
  std::string text = Row("library", "import", names) + Row("Python", "", pythons);
  for (const Library& library : block::Libraries()) {
    std::array<std::string, kRuntimeIds.size()> cells;
    for (const RuntimeId id : kRuntimeIds) {
      const auto at = static_cast<std::size_t>(id);
      cells[at] = library.IsIn(id) ? library.versions[at] : "-";
    }
    text += Row(library.is_main ? library.name : "", library.module, cells);
  }
  return text;
}

}  // namespace

ExitCode BlockLibraries(const BlockLibrariesArguments& arguments, Console& console) {
  return arguments.json ? PrintJson(AllAsJson(), console) : PrintText(AllAsTable(), console);
}

}  // namespace caisson::cli
