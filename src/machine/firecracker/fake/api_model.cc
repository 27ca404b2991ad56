// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/fake/api_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>

#include "json/reader.h"
#include "json/writer.h"

namespace caisson::machine::firecracker::fake {
namespace {

enum class Kind : std::uint8_t { kText, kBool, kNumber, kObject, kList, kPath };

struct Field {
  std::string_view name;
  Kind kind;
  bool required = false;
  std::vector<std::string_view> values = {};  // of a text; empty: any
  std::int64_t least = 0;
  std::int64_t most = std::int64_t{1} << 40;
};
using Fields = std::vector<Field>;

enum class When : std::uint8_t { kBefore, kAfter, kAlways };  // the boot

struct Resource {
  std::string_view method;
  std::string_view path;  // with a slash at the end: and an id
  When when;
  Fields fields;
  std::string_view id = {};  // the field that has to be the id
};

const Fields& MemoryBackend() {
  static const Fields kFields = {{"backend_type", Kind::kText, true, {"File", "Uffd"}},
                                 {"backend_path", Kind::kPath, true}};
  return kFields;
}

// src/firecracker/swagger/firecracker.yaml, as of 1.17.0-dev; all structures deny unknown fields.
const std::vector<Resource>& Resources() {
  static const std::vector<Resource> kResources = {
      {"PUT",
       "/machine-config",
       When::kBefore,
       {{"vcpu_count", Kind::kNumber, true, {}, 1, 32},
        {"mem_size_mib", Kind::kNumber, true, {}, 1},
        {"smt", Kind::kBool},
        {"track_dirty_pages", Kind::kBool},
        {"cpu_template", Kind::kText, false, {"C3", "T2", "T2S", "T2CL", "T2A", "V1N1", "None"}},
        {"huge_pages", Kind::kText, false, {"None", "2M"}}}},
      {"PUT",
       "/boot-source",
       When::kBefore,
       {{"kernel_image_path", Kind::kPath, true},
        {"initrd_path", Kind::kPath},
        {"boot_args", Kind::kText}}},
      {"PUT",
       "/drives/",
       When::kBefore,
       {{"drive_id", Kind::kText, true},
        {"is_root_device", Kind::kBool, true},
        {"path_on_host", Kind::kPath, true},
        {"is_read_only", Kind::kBool, true},
        {"partuuid", Kind::kText},
        {"cache_type", Kind::kText, false, {"Unsafe", "Writeback"}},
        {"io_engine", Kind::kText, false, {"Sync", "Async"}},
        {"rate_limiter", Kind::kObject}},
       "drive_id"},
      {"PATCH",
       "/drives/",
       When::kAfter,
       {{"drive_id", Kind::kText, true},
        {"path_on_host", Kind::kPath},
        {"rate_limiter", Kind::kObject}},
       "drive_id"},
      {"PUT",
       "/network-interfaces/",
       When::kBefore,
       {{"iface_id", Kind::kText, true},
        {"host_dev_name", Kind::kText, true},
        {"guest_mac", Kind::kText},
        {"mtu", Kind::kNumber, false, {}, 68, 65'535},
        {"rx_rate_limiter", Kind::kObject},
        {"tx_rate_limiter", Kind::kObject}},
       "iface_id"},
      {"PUT",
       "/vsock",
       When::kBefore,
       {{"guest_cid", Kind::kNumber, true, {}, 3, 0xffffffff},
        {"uds_path", Kind::kText, true},
        {"vsock_id", Kind::kText}}},
      {"PUT", "/entropy", When::kBefore, {{"rate_limiter", Kind::kObject}}},
      {"PUT",
       "/actions",
       When::kAlways,
       {{"action_type", Kind::kText, true, {"FlushMetrics", "InstanceStart", "SendCtrlAltDel"}}}},
      {"PATCH", "/vm", When::kAfter, {{"state", Kind::kText, true, {"Paused", "Resumed"}}}},
      {"PUT",
       "/snapshot/create",
       When::kAfter,
       {{"mem_file_path", Kind::kText, true},
        {"snapshot_path", Kind::kText, true},
        {"snapshot_type", Kind::kText, false, {"Full", "Diff"}}}},
      {"PUT",
       "/snapshot/load",
       When::kBefore,
       {{"snapshot_path", Kind::kPath, true},
        {"mem_backend", Kind::kObject},
        {"mem_file_path", Kind::kPath},
        {"enable_diff_snapshots", Kind::kBool},
        {"track_dirty_pages", Kind::kBool},
        {"resume_vm", Kind::kBool},
        {"clock_realtime", Kind::kBool},
        {"network_overrides", Kind::kList},
        {"vsock_override", Kind::kObject}}}};
  return kResources;
}

Answer Fault(const std::string& why) {
  return {.status = 400,
          .body = json::Write(json::Object{{"fault_message", why}}).value_or("{}"),
          .ends = false};
}

Answer Done(const std::string& why) { return why.empty() ? Answer{} : Fault(why); }

bool IsOf(Kind kind, const json::Value& value) {
  switch (kind) {
    case Kind::kText:
    case Kind::kPath:
      return value.is_string();
    case Kind::kBool:
      return value.is_bool();
    case Kind::kNumber:
      return value.is_int();
    case Kind::kObject:
      return value.is_object();
    case Kind::kList:
      return value.is_array();
  }
  return false;
}

std::string WhatIsWrong(const Field& field, const json::Value& value) {
  const std::string name(field.name);
  if (!IsOf(field.kind, value)) return "invalid type: field `" + name + "`";
  if (field.kind == Kind::kNumber &&
      (value.as_int() < field.least || value.as_int() > field.most)) {
    return "invalid value: field `" + name + "`";
  }
  if (!field.values.empty() &&
      std::ranges::find(field.values, std::string_view(value.as_string())) == field.values.end()) {
    return "unknown variant `" + value.as_string() + "`";
  }
  if (field.kind == Kind::kPath && ::access(value.as_string().c_str(), R_OK) != 0) {
    return "No such file or directory: " + value.as_string();
  }
  return "";
}

std::string WhatIsWrong(const Fields& fields, const json::Value& body) {
  if (!body.is_object()) return "invalid type: the body is no object";
  for (const auto& [name, value] : body.as_object()) {
    const auto known = std::ranges::find(fields, std::string_view(name), &Field::name);
    if (known == fields.end()) return "unknown field `" + name + "`";
    if (std::string wrong = WhatIsWrong(*known, value); !wrong.empty()) return wrong;
  }
  for (const Field& field : fields) {
    if (field.required && body.Find(field.name) == nullptr) {
      return "missing field `" + std::string(field.name) + "`";
    }
  }
  return "";
}

bool IsId(std::string_view id) {
  return !id.empty() &&
         std::ranges::all_of(id, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// The id at the end of the path, where the resource has one.
std::optional<std::string> IdIn(const Resource& resource, std::string_view path) {
  if (resource.path.ends_with('/')) {
    if (!path.starts_with(resource.path)) return std::nullopt;
    return std::string(path.substr(resource.path.size()));
  }
  return path == resource.path ? std::optional<std::string>("") : std::nullopt;
}

}  // namespace

Answer ApiModel::Handle(std::string_view method, const std::string& path, std::string_view body) {
  for (const Resource& resource : Resources()) {
    const auto id = IdIn(resource, path);
    if (!id || resource.method != method) continue;
    if (resource.path.ends_with('/') && !IsId(*id)) {
      return Fault("API Resource IDs can only contain alphanumeric characters and underscores.");
    }
    const auto value = json::Read(body);
    if (!value) return Fault("An error occurred when deserializing the json body of a request.");
    if (std::string wrong = WhatIsWrong(resource.fields, *value); !wrong.empty()) {
      return Fault("An error occurred when deserializing the json body of a request: " + wrong);
    }
    if (!resource.id.empty() && value->Find(resource.id)->as_string() != *id) {
      return Fault("The id from the path does not match the id from the body!");
    }
    if (resource.when == When::kBefore && has_booted()) {
      return Fault("The requested operation is not supported after starting the microVM.");
    }
    if (resource.when == When::kAfter && !has_booted()) {
      return Fault("The requested operation is not supported before starting the microVM.");
    }
    if (path == "/actions") return Act(*value);
    if (path == "/vm") return SetState(*value);
    if (path == "/snapshot/create") return Create(*value);
    if (path == "/snapshot/load") return Load(*value);
    if (method == "PATCH" && !resources_.Contains(path)) return Fault("Invalid drive ID: " + *id);
    if (method == "PUT") {
      resources_.Set(path, *value);
      state_ = State::kConfigured;
    }
    return {};
  }
  return Fault(fmt::format("Invalid request method and/or path: {} {}.", method, path));
}

Answer ApiModel::Act(const json::Value& body) {
  if (body.Find("action_type")->as_string() != "InstanceStart") return {};
  if (has_booted()) {
    return Fault("The requested operation is not supported after starting the microVM.");
  }
  if (!resources_.Contains("/boot-source")) {
    return Fault("Cannot start microvm without kernel configuration.");
  }
  const std::string why = effects_.Boot(resources_);
  if (why.empty()) state_ = State::kRunning;
  return Done(why);
}

Answer ApiModel::SetState(const json::Value& body) {
  const bool pause = body.Find("state")->as_string() == "Paused";
  if (pause && state_ == State::kRunning) effects_.Pause();
  if (!pause && state_ == State::kPaused) effects_.Resume();
  state_ = pause ? State::kPaused : State::kRunning;
  return {};
}

Answer ApiModel::Create(const json::Value& body) {
  if (state_ != State::kPaused) {
    return Fault(
        "Create snapshot error: Cannot save the microVM state: Operation not allowed: "
        "the microVM is running.");
  }
  return Done(effects_.Save(body, resources_));
}

Answer ApiModel::Load(const json::Value& body) {
  if (state_ != State::kFresh) {
    return Fault(
        "Load snapshot error: Loading a microVM snapshot not allowed after configuring "
        "boot-specific resources.");
  }
  const json::Value* backend = body.Find("mem_backend");
  if ((backend == nullptr) == (body.Find("mem_file_path") == nullptr)) {
    return Fault("either `mem_backend` or `mem_file_path` exclusively is required");
  }
  if (backend != nullptr) {
    if (std::string wrong = WhatIsWrong(MemoryBackend(), *backend); !wrong.empty()) {
      return Fault(wrong);
    }
  }
  Answer answer = Done(effects_.Load(body, resources_));
  answer.ends = answer.status != 204;
  const json::Value* resume = body.Find("resume_vm");
  state_ = State::kPaused;
  if (answer.status == 204 && resume != nullptr && resume->as_bool()) {
    effects_.Resume();
    state_ = State::kRunning;
  }
  return answer;
}

}  // namespace caisson::machine::firecracker::fake
