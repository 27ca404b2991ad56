// SPDX-License-Identifier: Apache-2.0
#include "block/runtimes.h"

#include "block/check.h"
#include "errors/block.h"

namespace caisson::block {
namespace {

Result<ChosenRuntime> Take(const RuntimeSet& set, RuntimeId id) {
  const RuntimeEntry& entry = set[id];
  if (entry.runtime != nullptr) return ChosenRuntime{id, entry.runtime};
  return Fail(errors::kBlockRuntimeUnavailable,
              "the runtime " + std::string(RuntimeName(id)) + " is not available: " + entry.reason);
}

std::unexpected<Status> Lacks(const Finding& finding) {
  std::string message = finding.message;
  if (!finding.hint.empty()) message += "; " + finding.hint;
  return Fail(finding.code, std::move(message), finding.span);
}

// The first available runtime that fits; else the first available one answers for what it lacks.
Result<ChosenRuntime> ChooseAuto(const RuntimeSet& set, const ScriptFacts& facts) {
  std::optional<RuntimeId> first;
  for (const RuntimeId id : kRuntimeIds) {
    if (set[id].runtime == nullptr) continue;
    if (Fits(facts, id)) return ChosenRuntime{id, set[id].runtime};
    if (!first) first = id;
  }
  if (!first) return Fail(errors::kBlockRuntimeUnavailable, "no runtime is available here");
  if (auto missing = FindMissingImport(facts, *first)) return Lacks(*missing);
  return ChosenRuntime{*first, set[*first].runtime};
}

}  // namespace

Result<ChosenRuntime> ChooseRuntime(const RuntimeSet& set, std::string_view wish,
                                    const ScriptFacts& facts) {
  if (wish == "auto" && !set.allow_auto) {
    return Fail(errors::kBlockRuntimeUnavailable,
                "the operator does not let imports choose the runtime; name one");
  }
  if (wish == "auto" || (wish.empty() && set.auto_by_default)) return ChooseAuto(set, facts);
  const auto id = wish.empty() ? set.default_runtime : FindRuntimeId(wish);
  if (!id) {
    return Fail(errors::kBlockRequest,
                "there is no runtime of that name; it is cpython, native, "
                "oci or auto");
  }
  CAISSON_ASSIGN(ChosenRuntime chosen, Take(set, *id));
  if (auto missing = FindMissingImport(facts, *id)) return Lacks(*missing);
  return chosen;
}

json::Value DescribeRuntimes(const RuntimeSet& set) {
  json::Array all;
  for (const RuntimeId id : kRuntimeIds) {
    json::Object one{{"name", RuntimeName(id)}, {"available", set[id].runtime != nullptr}};
    if (set[id].runtime == nullptr) one.Set("reason", set[id].reason);
    all.emplace_back(std::move(one));
  }
  return all;
}

}  // namespace caisson::block
