// SPDX-License-Identifier: Apache-2.0
#include "graph/metrics.h"

namespace caisson::graph {
namespace {

constexpr std::array<std::string_view, kEndings> kEndingNames = {
    "success",    "error",       "syntax",    "fuel",        "memory",
    "wall_clock", "output",      "protocol",  "exited",      "artifact",
    "killed",     "marshalling", "cancelled", "interrupted", "internal"};

}  // namespace

std::string_view EndingName(Ending ending) {
  return kEndingNames[static_cast<std::size_t>(ending)];
}

Metrics::Counters& Metrics::At(std::string_view node_type, std::string_view runtime) {
  auto type = counters_.find(node_type);
  if (type == counters_.end()) type = counters_.try_emplace(std::string(node_type)).first;
  auto row = type->second.find(runtime);
  if (row == type->second.end()) row = type->second.try_emplace(std::string(runtime)).first;
  return row->second;
}

void Metrics::Invoked(std::string_view node_type, std::string_view runtime) {
  const std::lock_guard lock(mutex_);
  ++At(node_type, runtime).invocations;
}

void Metrics::Ended(std::string_view node_type, std::string_view runtime, Ending ending) {
  const std::lock_guard lock(mutex_);
  ++At(node_type, runtime).endings[static_cast<std::size_t>(ending)];
}

Metrics::Counters Metrics::Get(std::string_view node_type, std::string_view runtime) const {
  const std::lock_guard lock(mutex_);
  const auto type = counters_.find(node_type);
  if (type == counters_.end()) return {};
  const auto row = type->second.find(runtime);
  return row != type->second.end() ? row->second : Counters{};
}

json::Value Metrics::ToJson() const {
  const std::lock_guard lock(mutex_);
  json::Array rows;
  for (const auto& [node_type, by_runtime] : counters_) {
    for (const auto& [runtime, counters] : by_runtime) {
      json::Object row{
          {"node_type", node_type}, {"runtime", runtime}, {"invocations", counters.invocations}};
      for (std::size_t i = 0; i < kEndings; ++i) row.Set(kEndingNames[i], counters.endings[i]);
      rows.emplace_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace caisson::graph
