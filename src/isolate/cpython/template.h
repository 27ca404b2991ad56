// SPDX-License-Identifier: Apache-2.0
// Makes snapshots: starts the interpreter, loads the harnesses, imports and uses a set's libraries,
// and keeps the memory as it is then. Runs trusted code alone.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "isolate/cpython/guest.h"
#include "isolate/cpython/layout.h"
#include "isolate/cpython/snapshot.h"
#include "wasm/memory_image.h"

namespace caisson::isolate::cpython {

struct TemplateInputs {
  const GuestModule& module;
  const GuestFiles& files;
  std::shared_ptr<const wasm::MemoryImage> first_memory;  // of wasm::Detach
  std::int32_t stack_pointer = 0;                         // likewise
};

// Seconds. Fails with isolate.self_test, with what the interpreter said, when a library of the set
// does not work or the interpreter is not at rest at the end; cancelled by `stop` likewise.
Result<Snapshot> MakeTemplate(const TemplateInputs& inputs, const std::string& set,
                              const std::stop_token& stop);

// Names everything that a snapshot depends on.
std::string SnapshotKey(const std::string& set, const std::string& tenant);
// The same for the compiled code; the engine's fingerprint comes on top.
std::string CodeIdentity();

}  // namespace caisson::isolate::cpython
