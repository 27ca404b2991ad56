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

struct RefusedModule {
  std::string_view name;
  std::string_view reason;
};

#include "block/library_table.inc"

constexpr std::string_view kHostDoor = "it leads to the host's JavaScript";
constexpr std::string_view kNativeCalls = "it calls native code past Python";

// What the guard in every runtime refuses, whatever the list says.
constexpr RefusedModule kRefused[] = {
    {"js", kHostDoor},
    {"pyodide", kHostDoor},
    {"pyodide_js", kHostDoor},
    {"cffi", kNativeCalls},
    {"_cffi_backend", kNativeCalls},
    {"ctypes", kNativeCalls},
    {"_ctypes", kNativeCalls},
    {"_posixsubprocess", "it starts processes"},
};

const RefusedModule* FindRefused(std::span<const RefusedModule> refused, std::string_view module) {
  const auto found = std::ranges::find(refused, module, &RefusedModule::name);
  return found == refused.end() ? nullptr : &*found;
}

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

int PythonMinor(RuntimeId id) { return kPythonMinors[static_cast<std::size_t>(id)]; }

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
  const RefusedModule* refused = FindRefused(kRefused, module);
  if (refused == nullptr) refused = FindRefused(kListedRefusals, module);
  if (refused != nullptr) return {.kind = ModuleKind::kRefused, .reason = refused->reason};
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
