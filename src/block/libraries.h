// SPDX-License-Identifier: Apache-2.0
// The libraries that scripts may import, which runtime has which of them, and what every script is
// refused. One list decides: runtimes/python-packages.toml.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace caisson::block {

// In the order in which `auto` tries them.
enum class RuntimeId : std::uint8_t { kCpython, kNative, kOci };
inline constexpr std::array kRuntimeIds = {RuntimeId::kCpython, RuntimeId::kNative,
                                           RuntimeId::kOci};

std::string_view RuntimeName(RuntimeId id);
std::optional<RuntimeId> FindRuntimeId(std::string_view name);
// Its Python is 3.<minor>.
int PythonMinor(RuntimeId id);

struct Library {
  std::string_view name;    // "scikit-learn"
  std::string_view module;  // "sklearn"
  // By RuntimeId; empty: the runtime does not have it, and `missing` says why.
  std::array<std::string_view, kRuntimeIds.size()> versions;
  std::array<std::string_view, kRuntimeIds.size()> missing;
  bool is_main;  // the first module of the library

  bool IsIn(RuntimeId id) const { return !versions[static_cast<std::size_t>(id)].empty(); }
};

// By name; one entry per module.
std::span<const Library> Libraries();

enum class ModuleKind : std::uint8_t {
  kStandard,  // of the standard library
  kLibrary,
  kRefused,  // scripts may not have it
  kUnknown,
};

struct ModuleFacts {
  ModuleKind kind = ModuleKind::kUnknown;
  const Library* library = nullptr;  // kLibrary
  std::string_view reason;           // kRefused
  // kStandard: the first and the last minor version that have it.
  int first_minor = 0;
  int last_minor = 99;

  bool IsIn(RuntimeId id) const;
};

// `module` is a name of the top level.
ModuleFacts FindModule(std::string_view module);

}  // namespace caisson::block
