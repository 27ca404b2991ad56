// SPDX-License-Identifier: Apache-2.0
#include "machine/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "errors/machine.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/fields.h"
#include "machine/spec.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

constexpr const char* kFile = "/record.json";

constexpr std::array<std::pair<Phase, std::string_view>, 5> kPhases = {
    {{Phase::kMaking, "making"},
     {Phase::kRunning, "running"},
     {Phase::kPausedInMemory, "paused_in_memory"},
     {Phase::kPausedOnDisk, "paused_on_disk"},
     {Phase::kRemoving, "removing"}}};

// Digits and hyphens, so that it can be part of paths and names of cgroups.
bool IsSlot(std::string_view slot) {
  return !slot.empty() && slot.size() <= 64 && std::ranges::all_of(slot, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Result<void> Sync(const std::string& path, int flags) {
  CAISSON_ASSIGN(const os::UniqueFd fd, os::OpenFile(path, flags));
  if (::fsync(fd.get()) != 0) return os::SyscallError("fsync " + path);
  return {};
}

}  // namespace

std::string_view NameOf(Phase phase) {
  return std::ranges::find(kPhases, phase, &std::pair<Phase, std::string_view>::first)->second;
}

json::Value ToJson(const Record& record) {
  json::Object object{{"index", record.index},
                      {"slot", record.slot},
                      {"phase", NameOf(record.phase)},
                      {"owner", record.owner},
                      {"spec", ToJson(record.spec)},
                      {"groups", record.groups.ToJson()},
                      {"network", record.network},
                      {"ip", record.ip},
                      {"agent", record.agent},
                      {"agent_start", record.agent_start},
                      {"boot", record.boot}};
  if (!record.more.is_null()) object.Set("more", record.more);
  return json::Value(std::move(object));
}

Result<Record> RecordFromJson(const json::Value& value, const std::string& slot) {
  Fields fields(value);
  constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kMostPid = std::numeric_limits<std::int32_t>::max();
  Record record;
  record.index = static_cast<std::uint32_t>(fields.Number("index", kMost32));
  record.slot = fields.Text("slot");
  const std::string phase = fields.Text("phase");
  record.owner = static_cast<uid_t>(fields.Number("owner", kMost32));
  const json::Value& spec = fields.Any("spec");
  const json::Value& groups = fields.Any("groups");
  record.network = static_cast<std::uint32_t>(fields.Number("network", kMost32));
  record.ip = fields.Text("ip");
  record.agent = static_cast<pid_t>(fields.Number("agent", kMostPid));
  record.agent_start = fields.Number("agent_start");
  record.boot = fields.Text("boot");
  if (const json::Value* more = value.Find("more")) record.more = *more;
  if (!fields.missed().empty()) {
    return Fail(errors::kMachineState, "a record has no valid " + fields.missed());
  }
  const auto named = std::ranges::find(kPhases, phase, &std::pair<Phase, std::string_view>::second);
  if (named == kPhases.end() || record.slot != slot || !IsSlot(slot)) {
    return Fail(errors::kMachineState, "a record is of another machine, or of no known phase");
  }
  record.phase = named->first;
  CAISSON_ASSIGN(record.spec, SpecFromJson(spec));
  CAISSON_ASSIGN(record.groups, Groups::FromJson(groups, slot));
  return record;
}

Result<void> WriteRecord(const std::string& directory, const Record& record, bool durable) {
  CAISSON_ASSIGN(const std::string text, json::Write(ToJson(record)));
  const std::string path = directory + kFile;
  const std::string draft = path + ".new";
  {
    const os::UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return os::SyscallError("make " + draft);
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) {
      if (written >= 0 || errno == ENOSPC) {
        return Fail(errors::kMachineFull, "the host's disk is full; free some of it");
      }
      return os::SyscallError("write " + draft);
    }
    if (durable && ::fsync(file.get()) != 0) return os::SyscallError("fsync " + draft);
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return os::SyscallError("make " + path);
  if (durable) CAISSON_TRY(Sync(directory, O_RDONLY | O_DIRECTORY));
  return {};
}

Result<Record> ReadRecord(const std::string& directory, const std::string& slot) {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory + kFile));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  return RecordFromJson(value, slot);
}

}  // namespace caisson::machine
