// SPDX-License-Identifier: Apache-2.0
// What the interpreter finds around it: its files, arguments and environment. The C library keeps
// some of that in memory, so that template and copies must have the very same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "wasm/artifact.h"
#include "wasm/wasi_system.h"

namespace caisson::isolate::cpython {

// Raise it when what stands in layout.cc changes.
inline constexpr int kLayoutVersion = 1;

// The engine's limit for one guest, and what a thread must have for it. CPython counts on 8 MiB of
// a C stack before it says RecursionError; compiled code takes more of it than native code.
inline constexpr std::size_t kGuestStackBytes = 16u << 20;
inline constexpr std::size_t kThreadStackBytes = kGuestStackBytes + (4u << 20);

// A file of runtimes/python, made part of the binary.
struct GuestSource {
  std::string_view name;  // "caisson_host.py", "sets/base.py"
  std::string_view text;
};
const std::vector<GuestSource>& GuestSources();
// Empty when there is none of that name.
std::string_view FindGuestSource(std::string_view name);

// The files that no guest can change, once for all of them. Immutable and thread-safe.
class GuestFiles {
 public:
  const wasm::NodePtr& tree() const { return tree_; }

 private:
  friend Result<GuestFiles> MapGuestFiles(const std::string& directory,
                                          wasm::CheckedFiles& checked);
  wasm::MappedFile stdlib_;
  wasm::MappedFile site_;
  wasm::NodePtr tree_;  // of /usr
};

// From the directory of the artifacts. Fails with wasm.artifact.
Result<GuestFiles> MapGuestFiles(const std::string& directory, wasm::CheckedFiles& checked);

wasm::WasiSystemOptions SystemOptions(std::uint64_t disk_bytes);
// `files` outlives the system.
void FillSystem(wasm::WasiSystem& system, const GuestFiles& files);

// Digest of everything here and in runtimes/python that goes into a template.
std::string LayoutDigest();

}  // namespace caisson::isolate::cpython
