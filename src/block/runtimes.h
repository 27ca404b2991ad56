// SPDX-License-Identifier: Apache-2.0
// The runtimes that a service or a command has, and the choice among them for a script. Knows no
// concrete runtime: whoever puts the program together fills it in.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"
#include "block/libraries.h"
#include "block/script_facts.h"
#include "isolate/script.h"
#include "json/value.h"

namespace caisson::block {

struct RuntimeEntry {
  isolate::ScriptRuntime* runtime = nullptr;  // null: unavailable; outlives the set
  std::string reason;                         // why it is unavailable
};

struct RuntimeSet {
  std::array<RuntimeEntry, kRuntimeIds.size()> entries;
  RuntimeId default_runtime = RuntimeId::kCpython;
  bool auto_by_default = false;  // the default is `auto`; then allow_auto is set too
  bool allow_auto = false;       // the operator lets imports choose

  RuntimeEntry& operator[](RuntimeId id) { return entries[static_cast<std::size_t>(id)]; }
  const RuntimeEntry& operator[](RuntimeId id) const {
    return entries[static_cast<std::size_t>(id)];
  }
};

struct ChosenRuntime {
  RuntimeId id;
  isolate::ScriptRuntime* runtime;
};

// `wish`: a name, "auto" or "" for the default. Fails with block.request (no such name),
// block.runtime_unavailable or block.library_unavailable / block.import_refused (a certain import
// that the runtime lacks).
Result<ChosenRuntime> ChooseRuntime(const RuntimeSet& set, std::string_view wish,
                                    const ScriptFacts& facts);

// [{"name","available","reason"?}]
json::Value DescribeRuntimes(const RuntimeSet& set);

}  // namespace caisson::block
