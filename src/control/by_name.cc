// SPDX-License-Identifier: Apache-2.0
// Finding a sandbox by its name, or making it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "control/plan.h"
#include "control/request_check.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

// Others may make and delete what has the name, between two looks at it.
constexpr int kAttempts = 8;
constexpr std::size_t kMostShown = 200;

// Without a rule all is open.
std::set<std::string> RulesOf(const std::vector<std::string>& egress) {
  if (egress.empty()) return {"*"};
  return {egress.begin(), egress.end()};
}

std::string Shown(const std::set<std::string>& texts) {
  return fmt::format("[{}]", fmt::join(texts, ", ")).substr(0, kMostShown);
}

class Differences {
 public:
  template <typename T>
  void Compare(const char* field, const T& is, const T& wanted) {
    if (is != wanted) Add(field, fmt::format("{} is {}, not {}", field, is, wanted));
  }
  // Of what is not to be shown, or is too much.
  void CompareSilently(const char* field, bool agrees) {
    if (!agrees) Add(field, fmt::format("{} is not the same", field));
  }
  void CompareSets(const char* field, const std::set<std::string>& is,
                   const std::set<std::string>& wanted) {
    if (is != wanted) Add(field, fmt::format("{} is {}, not {}", field, Shown(is), Shown(wanted)));
  }
  Result<void> Outcome(const std::string& name) const {
    if (texts_.empty()) return {};
    return FailAt(field_, errors::kControlDiffers,
                  fmt::format("the sandbox {} differs from what is asked for: {}; ask for what it "
                              "is, delete it, or take another name",
                              name, fmt::join(texts_, "; ")));
  }

 private:
  void Add(const char* field, std::string text) {
    if (texts_.empty()) field_ = field;
    texts_.push_back(std::move(text));
  }
  std::string field_;  // the first
  std::vector<std::string> texts_;
};

}  // namespace

// Empty: it came to its end while it was waited for.
Result<std::optional<Sandbox>> Sandboxes::TakeUp(const Caller& caller, const CreateRequest& request,
                                                 const std::string& id) {
  CAISSON_ASSIGN(const Plan plan, PlanCreate(caller, request));
  // One that is being made is waited for.
  const KeyedLocks::Held held(locks_, id);
  auto found = Get(caller, id);
  if (!found && found.error().code == errors::kControlNotFound) return std::nullopt;
  if (!found) return Fail(found.error());
  if (IsTerminal(found->state)) return std::nullopt;
  if (found->state == SandboxState::kDestroying) {
    return Fail(
        errors::kControlState,
        fmt::format("the sandbox {} is being deleted; try again when it is gone", request.name));
  }
  CAISSON_ASSIGN(const std::set<std::string> joined, JoinedBy(id));

  const Sandbox& wanted = plan.row;
  Differences differences;
  differences.Compare("shape", found->shape, wanted.shape);
  differences.Compare("rootfs", found->rootfs, wanted.rootfs);
  if (!request.driver.empty()) differences.Compare("driver", found->driver, wanted.driver);
  if (request.disk_mib != 0) differences.Compare("disk_mib", found->disk_mib, wanted.disk_mib);
  if (!request.pool.empty()) differences.Compare("pool", found->pool, wanted.pool);
  differences.CompareSets("egress", RulesOf(found->egress), RulesOf(wanted.egress));
  differences.CompareSilently("envs", found->envs == wanted.envs);
  differences.CompareSets("networks", joined, {plan.networks.begin(), plan.networks.end()});
  differences.Compare("ingress_enabled", found->ingress_enabled, wanted.ingress_enabled);
  differences.Compare("ingress_wake", found->ingress_wakes, wanted.ingress_wakes);
  differences.Compare("ingress_token", !found->ingress_token_hash.empty(), request.ingress_token);
  CAISSON_TRY(differences.Outcome(request.name));

  if (draining_ && found->state != SandboxState::kRunning) {
    return Fail(errors::kControlDraining, "the service is shutting down");
  }
  CAISSON_TRY(ResumeHeld(*found));
  PatchRequest life{.auto_pause_seconds = request.auto_pause_seconds,
                    .delete_after_seconds = request.delete_after_seconds};
  if (!request.labels.empty()) life.labels = request.labels;
  CAISSON_ASSIGN(Made patched, Patch(caller, id, life));
  return std::move(patched.sandbox);
}

Result<FoundOrMade> Sandboxes::FindOrCreate(const Caller& caller, const CreateRequest& asked) {
  CreateRequest request = asked;
  if (!asked.pool.empty()) {
    CAISSON_ASSIGN(const PoolDefinition definition, DefinitionOf(caller, asked.pool));
    request = Merge(definition, asked);
  }
  if (request.name.empty()) {
    return FailAt("name", errors::kControlBadName, "a name is needed to find a sandbox by");
  }
  const KeyedLocks::Held held(names_, caller.tenant + "\n" + request.name);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    CAISSON_ASSIGN(const auto known, store_.Read([&](store::Rows& rows) {
      return rows.FindSandboxByName(caller.tenant, request.name);
    }));
    if (known) {
      CAISSON_ASSIGN(auto taken, TakeUp(caller, request, known->id));
      if (!taken) continue;
      return FoundOrMade{.made = {.sandbox = *std::move(taken), .ingress_token = {}},
                         .is_new = false};
    }
    auto made = Create(caller, request);
    if (made) return FoundOrMade{.made = *std::move(made), .is_new = true};
    // Somebody has made it by POST, or over another service with the same store.
    if (made.error().code != errors::kControlNameTaken) return Fail(made.error());
  }
  return Fail(errors::kControlState,
              fmt::format("what has the name {} is made and deleted again and again; try later",
                          request.name));
}

}  // namespace caisson::control
