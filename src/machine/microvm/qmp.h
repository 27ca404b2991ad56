// SPDX-License-Identifier: Apache-2.0
// QEMU's monitor: commands and answers as JSON lines. Blocking, with a bound on each answer; a QEMU
// that a guest has taken over may say anything, so all that is read is bounded and checked. Not
// synchronised.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

class Qmp {
 public:
  explicit Qmp(os::UniqueFd socket) : socket_(std::move(socket)) {}

  // Reads the greeting and begins. Fails with machine.vm_failed.
  Result<void> Begin(std::chrono::milliseconds patience);
  // What it returns. Fails with machine.vm_failed, whose message has QEMU's own words. A descriptor
  // goes along; it stays the caller's.
  Result<json::Value> Do(std::string_view command, json::Object arguments = {},
                         std::chrono::milliseconds patience = std::chrono::seconds(10),
                         std::optional<int> fd = {});
  // What `migrate` and `migrate-incoming` call the file at this path, which is the same here and
  // for QEMU: "file:" since QEMU 8.2 (qapi/migration.json), before that a descriptor that it is
  // given.
  Result<std::string> MigrationUri(const std::string& path, int open_flags);
  // Asks every few milliseconds until the migration that was begun is completed.
  Result<void> AwaitMigration(std::chrono::milliseconds patience);
  // Throws away what it has said unasked meanwhile, so that it need not keep that. Never waits.
  void Forget();
  // Until QEMU has loaded what it was told to.
  Result<void> AwaitLoaded(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  Result<std::string> ReadLine(Clock::time_point deadline);

  os::UniqueFd socket_;
  std::string buffer_;
  bool takes_files_ = false;  // "file:" as a migration's end
};

}  // namespace caisson::machine::microvm
