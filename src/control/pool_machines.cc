// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are made before somebody asks for them, and handed out when somebody does.
#include <fmt/format.h>

#include "control/plan.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "errors/control.h"
#include "errors/store.h"

namespace caisson::control {
namespace {

using store::PoolPlace;

// Others may take what one looks at.
constexpr int kTakes = 16;

// What a waiting machine has of the request: all that belongs to whoever takes it comes then.
CreateRequest WithoutTaker(CreateRequest request) {
  request.name.clear();
  request.networks.clear();
  request.labels.clear();
  request.ingress_enabled = request.ingress_token = request.ingress_wakes = false;
  request.auto_pause_seconds.reset();
  request.delete_after_seconds.reset();
  return request;
}

// The one that the machines of the pool are copied from with their memory, warm and paused, when
// there is one of this image. Empty where the driver copies no memory.
Result<std::optional<Sandbox>> FindParent(Sandboxes& sandboxes, const Sandbox& wanted) {
  if (sandboxes.DriverOf(wanted).capabilities().fork != machine::Extent::kFull) return std::nullopt;
  CAISSON_ASSIGN(auto rows, sandboxes.store().Read([&](store::Rows& all) {
    return all.Sandboxes({.host = wanted.host,
                          .states = {SandboxState::kPaused},
                          .with_pooled = true,
                          .pool_id = wanted.pool_id});
  }));
  for (Sandbox& row : rows) {
    const bool fits =
        row.place == PoolPlace::kParent && row.image == wanted.image && row.driver == wanted.driver;
    if (fits) return std::move(row);
  }
  return std::nullopt;
}

// Of what is handed out, all that belongs to whoever takes it.
void GiveTo(const Sandbox& wanted, Sandbox& row) {
  row.place = PoolPlace::kNone;
  if (!wanted.name.empty()) row.name = wanted.name;
  row.created_by = wanted.created_by;
  row.created_at = wanted.created_at;
  row.labels = wanted.labels;
  row.ingress_enabled = wanted.ingress_enabled;
  row.ingress_token_hash = wanted.ingress_token_hash;
  row.ingress_wakes = wanted.ingress_wakes;
  row.auto_pause_seconds = wanted.auto_pause_seconds;
  row.delete_at = wanted.delete_at;
}

}  // namespace

Result<Sandbox> Sandboxes::TryOut(const Caller& caller, const CreateRequest& request) {
  CAISSON_ASSIGN(Plan plan, PlanCreate(caller, request));
  return std::move(plan.row);
}

Result<machine::Machine> Sandboxes::MakeWarm(Plan& plan, const std::optional<Warm>& warm,
                                             const std::stop_token& stop) {
  if (plan.row.place != PoolPlace::kParent) {
    CAISSON_ASSIGN(const auto parent, FindParent(*this, plan.row));
    if (parent) {
      plan.row.warm_process = parent->warm_process;
      const auto spec = SpecOf(plan.row, plan.policy, plan.networks, options_.pids);
      CAISSON_ASSIGN(machine::Machine copy, DriverOf(plan.row).Fork(parent->id, spec));
      CAISSON_TRY(CheckWaiting(plan.row));
      return copy;
    }
  }
  CAISSON_ASSIGN(machine::Machine made, MakeMachine(plan));
  if (!warm) return made;
  CAISSON_ASSIGN(plan.row.warm_process,
                 options_.warm_up(DriverOf(plan.row), plan.row, *warm, stop));
  return made;
}

Result<Sandbox> Sandboxes::MakeForPool(const store::Pool& pool, PoolPlace place,
                                       const std::stop_token& stop) {
  if (draining_) return Fail(errors::kControlDraining, "the service is shutting down");
  CAISSON_ASSIGN(const PoolDefinition definition, ReadPoolDefinition(pool.definition));
  const Caller owner{.tenant = pool.tenant, .actor = pool.created_by};
  CAISSON_ASSIGN(Plan plan, PlanCreate(owner, WithoutTaker(definition.sandbox)));
  plan.row.pool = pool.name;
  plan.row.pool_id = pool.id;
  plan.row.place = place;
  plan.start_paused = place == PoolPlace::kParent;
  const KeyedLocks::Held held(locks_, plan.row.id);
  CAISSON_TRY(Enter(owner, plan, {}));
  return Boot(plan, [&] { return MakeWarm(plan, definition.warm, stop); });
}

Result<void> Sandboxes::CheckWaiting(const Sandbox& sandbox) {
  if (!sandbox.warm_process.empty()) return options_.warm_check(DriverOf(sandbox), sandbox);
  if (options_.answers(DriverOf(sandbox), sandbox.id)) return {};
  return Fail(errors::kControlLost, "a waiting machine does not answer");
}

void Sandboxes::Retire(const std::string& id) {
  const KeyedLocks::Held held(locks_, id);
  const auto row = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); });
  if (!row || !*row || (*row)->place == PoolPlace::kNone) return;
  static_cast<void>(DeleteHeld(**row));
}

// Empty when it is not there to be handed out any more.
Result<std::optional<Sandbox>> Sandboxes::HandOver(const Caller& caller, const store::Pool& pool,
                                                   const Plan& plan, const Repeatable& repeatable,
                                                   const Sandbox& waiting, bool& is_repeated) {
  return store_.Write([&](store::Rows& rows) -> Result<std::optional<Sandbox>> {
    CAISSON_ASSIGN(auto known, FindRepeated(rows, caller, repeatable));
    is_repeated = known.has_value();
    if (known) return known;
    CAISSON_ASSIGN(auto row, rows.FindSandbox(waiting.id));
    const bool is_there = row && row->place == PoolPlace::kWaiting && row->pool_id == pool.id &&
                          row->state == SandboxState::kRunning;
    // Nothing of a definition that has been replaced meanwhile.
    if (!is_there) return std::nullopt;
    CAISSON_ASSIGN(const bool stands, rows.CountPoolUse(pool.id, true, Now()));
    if (!stands) return std::nullopt;
    GiveTo(plan.row, *row);
    auto handed = rows.HandOver(*row);
    if (!handed && handed.error().code == errors::kStoreConflict) {
      return Fail(errors::kControlNameTaken,
                  fmt::format("the name {} belongs to another sandbox", row->name));
    }
    if (!handed) return Fail(handed.error());
    for (const std::string& network : plan.networks) {
      CAISSON_TRY(rows.AddMember(network, row->id));
    }
    if (!repeatable.key.empty()) {
      CAISSON_TRY(rows.PutIdempotency({.tenant = caller.tenant,
                                       .key = repeatable.key,
                                       .fingerprint = repeatable.fingerprint,
                                       .sandbox = row->id,
                                       .created_at = Now()}));
    }
    return row;
  });
}

// Empty when none is ready.
Result<std::optional<Made>> Sandboxes::TakeReady(const Caller& caller, const store::Pool& pool,
                                                 const Plan& plan, const Repeatable& repeatable) {
  CAISSON_ASSIGN(const auto all, store_.Read([&](store::Rows& rows) {
    return rows.Sandboxes({.tenant = pool.tenant,
                           .host = options_.host,
                           .states = {SandboxState::kRunning},
                           .with_pooled = true,
                           .pool_id = pool.id});
  }));
  int takes = 0;
  for (const Sandbox& waiting : all) {
    if (waiting.place != PoolPlace::kWaiting) continue;
    // Its name means another image now, or its template was built anew.
    if (waiting.image != plan.row.image || waiting.driver != plan.row.driver) continue;
    if (++takes > kTakes) break;
    const KeyedLocks::Held held(locks_, waiting.id, std::try_to_lock);
    if (!held || !CheckWaiting(waiting)) continue;  // Pools finds out and mends it
    bool is_repeated = false;
    CAISSON_ASSIGN(auto taken, HandOver(caller, pool, plan, repeatable, waiting, is_repeated));
    if (!taken) continue;
    activity_.Touch(taken->id);
    if (is_repeated) return Made{.sandbox = *std::move(taken), .ingress_token = {}};
    if (!plan.networks.empty()) {
      if (auto joined = ApplyNetworks(*taken); !joined) {
        static_cast<void>(DeleteHeld(*taken));
        return Fail(OfDriver(joined.error(), "the sandbox could not be joined in its networks"));
      }
      neighbours_.TellTenant(*taken);
    }
    PublishState(*taken);
    return Made{
        .sandbox = *std::move(taken), .ingress_token = plan.ingress_token, .was_ready = true};
  }
  return std::nullopt;
}

Result<store::Pool> Sandboxes::PoolOf(const Caller& caller, const std::string& name) {
  CAISSON_ASSIGN(auto pool, store_.Read([&](store::Rows& rows) {
    return rows.FindPool(caller.tenant, name);
  }));
  if (pool) return *std::move(pool);
  return FailAt(
      "pool", errors::kControlNotFound,
      fmt::format("there is no pool '{}'; PUT /v1/pools/{{name}} defines one", name.substr(0, 64)));
}

Result<PoolDefinition> Sandboxes::DefinitionOf(const Caller& caller, const std::string& pool) {
  CAISSON_ASSIGN(const store::Pool row, PoolOf(caller, pool));
  return ReadPoolDefinition(row.definition);
}

Result<Made> Sandboxes::CreateFromPool(const Caller& caller, const CreateRequest& request,
                                       const Repeatable& repeatable) {
  CAISSON_ASSIGN(const store::Pool pool, PoolOf(caller, request.pool));
  CAISSON_ASSIGN(const PoolDefinition definition, ReadPoolDefinition(pool.definition));
  CAISSON_ASSIGN(Plan plan, PlanCreate(caller, Merge(definition, request)));
  CAISSON_ASSIGN(auto ready, TakeReady(caller, pool, plan, repeatable));
  if (ready) {
    if (pool_used_) pool_used_(pool.id);
    return *std::move(ready);
  }
  static_cast<void>(
      store_.Write([&](store::Rows& rows) { return rows.CountPoolUse(pool.id, false, Now()); }));
  if (pool_used_) pool_used_(pool.id);
  plan.row.pool_id = pool.id;
  CAISSON_ASSIGN(Made made, Make(caller, plan, repeatable,
                                 [&] { return MakeWarm(plan, definition.warm, {}); }));
  made.was_ready = false;
  return made;
}

}  // namespace caisson::control
