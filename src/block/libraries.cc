// SPDX-License-Identifier: Apache-2.0
#include "block/libraries.h"

#include <algorithm>

namespace caisson::block {
namespace {

struct StandardModule {
  std::string_view name;
  int first_minor;
  int last_minor;
};

#include "block/library_table.inc"

struct RefusedModule {
  std::string_view name;
  std::string_view reason;
};

constexpr std::string_view kHostBridge = "it reaches for the host of a browser's interpreter";
constexpr std::string_view kNativeCode = "it calls native code behind the interpreter's back";
constexpr std::string_view kNotListed = "it is not on the list of libraries";

constexpr std::array kRefused = {
    RefusedModule{"js", kHostBridge},
    RefusedModule{"pyodide", kHostBridge},
    RefusedModule{"pyodide_js", kHostBridge},
    RefusedModule{"cffi", kNativeCode},
    RefusedModule{"ctypes", kNativeCode},
    RefusedModule{"_posixsubprocess", "it starts processes"},
    RefusedModule{"altair", kNotListed},
    RefusedModule{"bokeh", kNotListed},
    RefusedModule{"cartopy", kNotListed},
    RefusedModule{"duckdb", kNotListed},
    RefusedModule{"seaborn", kNotListed},
    RefusedModule{"sqlalchemy", kNotListed},
    RefusedModule{"sqlite3", kNotListed},
};

}  // namespace

std::string_view RuntimeName(RuntimeId id) {
  switch (id) {
    case RuntimeId::kCpython:
      return "cpython";
    case RuntimeId::kNative:
      return "native";
    case RuntimeId::kOci:
      return "oci";
  }
  return "";
}

std::optional<RuntimeId> FindRuntimeId(std::string_view name) {
  for (const RuntimeId id : kRuntimeIds) {
    if (RuntimeName(id) == name) return id;
  }
  return std::nullopt;
}

int PythonMinor(RuntimeId id) { return id == RuntimeId::kCpython ? 15 : 11; }

std::span<const Library> Libraries() { return kLibraries; }

bool ModuleFacts::IsIn(RuntimeId id) const {
  switch (kind) {
    case ModuleKind::kLibrary:
      return library->IsIn(id);
    case ModuleKind::kStandard:
      return PythonMinor(id) >= first_minor && PythonMinor(id) <= last_minor;
    default:
      return false;
  }
}

ModuleFacts FindModule(std::string_view module) {
  const auto* refused = std::ranges::find(kRefused, module, &RefusedModule::name);
  if (refused != kRefused.end()) {
    return {.kind = ModuleKind::kRefused, .reason = refused->reason};
  }
  const auto* library = std::ranges::find(kLibraries, module, &Library::module);
  if (library != std::end(kLibraries)) {
    return {.kind = ModuleKind::kLibrary, .library = library};
  }
  const auto* standard = std::ranges::find(kStandardModules, module, &StandardModule::name);
  if (standard != std::end(kStandardModules)) {
    return {.kind = ModuleKind::kStandard,
            .first_minor = standard->first_minor,
            .last_minor = standard->last_minor};
  }
  // Modules of the implementation: they differ from build to build, and the guest knows.
  if (module.starts_with('_')) return {.kind = ModuleKind::kStandard};
  return {};
}

}  // namespace caisson::block
