// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/record.h"

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
#include "machine/jail/fields.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::machine::jail {
namespace {

constexpr const char* kFile = "/record.json";

constexpr std::array<std::pair<Phase, std::string_view>, 5> kPhases = {
    {{Phase::kMaking, "making"},
     {Phase::kRunning, "running"},
     {Phase::kPausedInMemory, "paused_in_memory"},
     {Phase::kPausedOnDisk, "paused_on_disk"},
     {Phase::kRemoving, "removing"}}};

std::unexpected<Status> Invalid(std::string message) {
  return Fail(errors::kMachineInvalid, std::move(message));
}

bool IsName(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// Digits and hyphens, so that it can be part of paths and names of cgroups.
bool IsSlot(std::string_view slot) { return IsName(slot, 64); }

Result<void> Sync(const std::string& path, int flags) {
  CAISSON_ASSIGN(const os::UniqueFd fd, os::OpenFile(path, flags));
  if (::fsync(fd.get()) != 0) return os::SyscallError("fsync " + path);
  return {};
}

}  // namespace

std::string_view NameOf(Phase phase) {
  return std::ranges::find(kPhases, phase, &std::pair<Phase, std::string_view>::first)->second;
}

bool IsValidId(std::string_view id) { return IsName(id, kMaxIdLength); }

Result<void> CheckSpec(MachineSpec& spec) {
  if (!IsValidId(spec.id)) {
    return Invalid(fmt::format("id has 1 to {} characters of a-z, 0-9 and -", kMaxIdLength));
  }
  if (spec.host_name.empty()) spec.host_name = spec.id;
  if (!IsName(spec.host_name, kMaxHostNameLength) || spec.host_name.starts_with('-') ||
      spec.host_name.ends_with('-')) {
    return Invalid(
        fmt::format("host_name has 1 to {} characters of a-z, 0-9 and -, which may "
                    "not come first or last",
                    kMaxHostNameLength));
  }
  if (spec.image.size() != 64 || !std::ranges::all_of(spec.image, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      })) {
    return Invalid("image is the id of an image: 64 hexadecimal digits");
  }
  if (!(spec.cpus >= 0.01 && spec.cpus <= 1024)) return Invalid("cpus is 0.01 to 1024");
  if (spec.memory_bytes < kMinMemoryBytes || spec.memory_bytes > std::uint64_t{1} << 50) {
    return Invalid(fmt::format("memory_bytes is at least {}", kMinMemoryBytes));
  }
  if (spec.disk_bytes < kMinDiskBytes || spec.disk_bytes > kMaxDiskBytes) {
    return Invalid(fmt::format("disk_bytes is {} to {}", kMinDiskBytes, kMaxDiskBytes));
  }
  if (spec.pids < kMinPids || spec.pids > 4'000'000) {
    return Invalid(fmt::format("pids is {} to 4000000", kMinPids));
  }
  return {};
}

json::Value ToJson(const egress::Policy& policy) {
  json::Array rules;
  for (const std::string& rule : policy.rules()) rules.emplace_back(rule);
  return json::Value(std::move(rules));
}

Result<egress::Policy> PolicyFromJson(const json::Value& value) {
  if (!value.is_array()) return Invalid("network is a list of rules");
  std::vector<std::string> rules;
  for (const json::Value& rule : value.as_array()) {
    if (!rule.is_string()) return Invalid("network is a list of rules");
    rules.push_back(rule.as_string());
  }
  return egress::Policy::Parse(rules);
}

json::Value ToJson(const MachineSpec& spec) {
  return json::Object{
      {"id", spec.id},     {"host_name", spec.host_name},       {"image", spec.image},
      {"cpus", spec.cpus}, {"memory_bytes", spec.memory_bytes}, {"disk_bytes", spec.disk_bytes},
      {"pids", spec.pids}, {"network", ToJson(spec.network)}};
}

Result<MachineSpec> SpecFromJson(const json::Value& value) {
  Fields fields(value);
  MachineSpec spec{.id = fields.Text("id"),
                   .host_name = fields.Text("host_name"),
                   .image = fields.Text("image"),
                   .cpus = fields.Real("cpus"),
                   .memory_bytes = fields.Number("memory_bytes"),
                   .disk_bytes = fields.Number("disk_bytes"),
                   .pids = fields.Number("pids"),
                   .network = {}};
  const json::Value& rules = fields.Any("network");
  if (!fields.missed().empty()) return Invalid(fields.missed() + " is missing or no such value");
  CAISSON_ASSIGN(spec.network, PolicyFromJson(rules));
  return spec;
}

json::Value ToJson(const Record& record) {
  return json::Object{{"index", record.index},
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

}  // namespace caisson::machine::jail
