// SPDX-License-Identifier: Apache-2.0
// The runtimes of blocks as this command puts them together. A runtime that cannot be had is in the
// set with the reason; asking for it is then an error and never another runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "block/runtimes.h"
#include "cli/block_arguments.h"
#include "cli/block_policy.h"
#include "cli/console.h"
#include "isolate/script.h"

namespace caisson::cli {

class BlockRuntimes {
 public:
  struct Need {
    RuntimeWish wish;
    std::size_t runs = 1;            // at a time
    std::uint64_t memory_bytes = 0;  // the most that a run may ask for
    // Of the only script that will run; interpreters then import nothing else.
    std::optional<std::vector<std::string>> imports;
    bool all = false;  // others than the wished one may be asked for, too
  };
  // Starts nothing yet. Fails with block.runtime_unavailable when the wish names a runtime that
  // cannot be had. `console` outlives it.
  static Result<std::unique_ptr<BlockRuntimes>> Open(const BlockRuntimeArguments& arguments,
                                                     const Need& need, Console& console);

  ~BlockRuntimes();
  BlockRuntimes(const BlockRuntimes&) = delete;
  BlockRuntimes& operator=(const BlockRuntimes&) = delete;

  const block::RuntimeSet& set() const { return set_; }
  void AllowAuto() { set_.allow_auto = true; }
  // Starts interpreters ahead of the first run; what fails is said.
  void Warm(const std::stop_token& stop);
  // Runs a script that imports nothing. Fails with block.runtime_unavailable, as runs do, or with
  // isolate.self_test.
  Result<void> Try(block::RuntimeId id);

 private:
  struct Parts;  // the concrete runtimes
  explicit BlockRuntimes(Console& console);
  Result<void> OpenCpython(const BlockRuntimeArguments& arguments, const Need& need);
  Result<void> OpenNative(const BlockRuntimeArguments& arguments, const Need& need);
  Result<void> OpenOci(const BlockRuntimeArguments& arguments, const Need& need);
  bool MayUse(block::RuntimeId id) const;

  Console& console_;
  std::unique_ptr<Parts> parts_;
  block::RuntimeSet set_;
};

}  // namespace caisson::cli
