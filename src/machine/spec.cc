// SPDX-License-Identifier: Apache-2.0
#include "machine/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "egress/shared_networks.h"
#include "errors/machine.h"
#include "machine/fields.h"

namespace caisson::machine {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Fail(errors::kMachineInvalid, std::move(message));
}

bool IsName(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

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
  return egress::Policy::Parse(rules, egress::HostNames::kEnforced);
}

json::Value ToJson(const std::set<std::string>& networks) {
  json::Array ids;
  for (const std::string& id : networks) ids.emplace_back(id);
  return json::Value(std::move(ids));
}

json::Value ToJson(const SentCap& cap) { return cap ? json::Value(*cap) : json::Value(); }

Result<SentCap> SentCapFromJson(const json::Value& value) {
  if (value.is_null()) return SentCap();
  if (value.is_int() && value.as_int() >= 0) return static_cast<std::uint64_t>(value.as_int());
  return Invalid("sent_cap is a number of bytes, or null");
}

Result<std::set<std::string>> SharedNetworksFromJson(const json::Value& value) {
  if (!value.is_array()) return Invalid("shared_networks is a list of ids");
  std::set<std::string> networks;
  for (const json::Value& id : value.as_array()) {
    if (!id.is_string()) return Invalid("shared_networks is a list of ids");
    networks.insert(id.as_string());
  }
  CAISSON_TRY(CheckSharedNetworks(networks));
  return networks;
}

Result<void> CheckSharedNetworks(const std::set<std::string>& networks) {
  if (networks.size() > egress::kMaxSharedNetworks) {
    return Invalid(fmt::format("a machine is in {} networks at most", egress::kMaxSharedNetworks));
  }
  if (std::ranges::all_of(networks, IsValidId)) return {};
  return Invalid(
      fmt::format("the id of a network has 1 to {} characters of a-z, 0-9 and -", kMaxIdLength));
}

json::Value ToJson(const MachineSpec& spec) {
  return json::Object{{"id", spec.id},
                      {"host_name", spec.host_name},
                      {"image", spec.image},
                      {"cpus", spec.cpus},
                      {"memory_bytes", spec.memory_bytes},
                      {"disk_bytes", spec.disk_bytes},
                      {"pids", spec.pids},
                      {"network", ToJson(spec.network)},
                      {"shared_networks", ToJson(spec.shared_networks)},
                      {"sent_cap", ToJson(spec.sent_cap)}};
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
                   .network = {},
                   .shared_networks = {},
                   .sent_cap = {}};
  const json::Value& rules = fields.Any("network");
  if (!fields.missed().empty()) return Invalid(fields.missed() + " is missing or no such value");
  CAISSON_ASSIGN(spec.network, PolicyFromJson(rules));
  if (const json::Value* networks = value.Find("shared_networks")) {  // not in older records
    CAISSON_ASSIGN(spec.shared_networks, SharedNetworksFromJson(*networks));
  }
  if (const json::Value* cap = value.Find("sent_cap")) {  // likewise
    CAISSON_ASSIGN(spec.sent_cap, SentCapFromJson(*cap));
  }
  return spec;
}

}  // namespace caisson::machine
