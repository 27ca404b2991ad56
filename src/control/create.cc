// SPDX-License-Identifier: Apache-2.0
// Making sandboxes: plan, row, machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <thread>

#include "control/names.h"
#include "control/plan.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "control/shapes.h"
#include "errors/control.h"
#include "errors/machine.h"
#include "errors/store.h"
#include "json/writer.h"

namespace caisson::control {
namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr int kNameAttempts = 8;
// For what is being destroyed, when there is no room beside it.
constexpr std::chrono::seconds kRoomPatience{10};
constexpr std::chrono::milliseconds kBetweenTries{10};

Result<egress::Policy> AtEgress(Result<egress::Policy> policy) {
  if (policy) return policy;
  return FailAt("egress", policy.error().code, policy.error().message);
}

// Which driver the machine has: the one that is asked for, which a template cannot change.
Result<void> ChooseDriver(const Drivers& drivers, const std::string& wanted, Sandbox& row) {
  if (!wanted.empty() && !drivers.Has(wanted)) {
    return FailAt("driver", errors::kControlUnknownDriver,
                  fmt::format("there is no driver '{}' here; this server has {}",
                              wanted.substr(0, 64), fmt::join(drivers.names(), ", ")));
  }
  if (row.driver.empty()) row.driver = wanted.empty() ? drivers.standard() : wanted;
  if (wanted.empty() || row.driver == wanted) return {};
  return FailAt("driver", errors::kControlOtherDriver,
                fmt::format("{} belongs to the driver {}, and its disk cannot be had by another",
                            row.rootfs, row.driver));
}

Result<void> CheckPlace(const SandboxesOptions& options, const CreateRequest& request) {
  if (!request.region.empty() && request.region != options.region) {
    return FailAt("region", errors::kControlBadRegion,
                  fmt::format("this server is region {}", options.region));
  }
  if (!request.host.empty() && request.host != options.host) {
    return FailAt("host_id", errors::kControlBadRegion,
                  fmt::format("this server is host {}", options.host));
  }
  return {};
}

Result<std::int64_t> DiskOf(std::int64_t wanted, std::int64_t standard, std::int64_t most) {
  if (wanted == 0) return standard;
  if (wanted >= 64 && wanted <= most) return wanted;
  return FailAt("disk_mib", errors::kControlBadDisk,
                fmt::format("{} is not between 64 and {} MiB", wanted, most));
}

// Fills what the row has of its root file system.
Result<void> FindRootfs(store::Rows& rows, const std::vector<RootImage>& catalogue, Sandbox& row) {
  const std::string& name = row.rootfs;
  for (const RootImage& image : catalogue) {
    if (image.name != name) continue;
    row.image = image.image;
    return {};
  }
  CAISSON_ASSIGN(const auto found, rows.FindTemplate(row.tenant, name));
  if (found && found->state == store::TemplateState::kReady) {
    row.image = found->image;
    row.driver = found->driver;
    row.environment = found->environment;
    row.directory = found->directory;
    if (row.disk_mib >= kTemplateDiskMib) return {};
    return FailAt("disk_mib", errors::kControlBadDisk,
                  fmt::format("a template needs {} MiB or more", kTemplateDiskMib));
  }
  return FailAt(
      "rootfs", errors::kControlUnknownRootfs,
      found ? fmt::format("the template {} is not ready: it is {}", name, ToText(found->state))
            : fmt::format("there is no root file system or template '{}' here; GET "
                          "/v1/rootfs lists them",
                          name.substr(0, 64)));
}

Result<std::vector<std::string>> FindNetworks(store::Rows& rows, const std::string& tenant,
                                              const std::vector<std::string>& wanted) {
  std::vector<std::string> ids;
  for (const std::string& name : wanted) {
    CAISSON_ASSIGN(const auto network, rows.FindNetwork(tenant, name));
    if (!network) {
      return Fail(errors::kControlNotFound, "there is no network " + name.substr(0, 64));
    }
    ids.push_back(network->id);
  }
  return ids;
}

Result<void> CheckRequestedName(const std::string& name) {
  if (name.empty() || IsName(name)) return {};
  return FailAt("name", errors::kControlBadName,
                "a name has at most 22 characters: a-z, 0-9 and '-', which may not come first or "
                "last");
}

// Whether something is being destroyed that takes the room which `refusal` says is lacking.
bool MakesRoom(store::Store& store, const Status& refusal, const std::string& tenant,
               const std::string& host) {
  store::SandboxFilter filter{
      .host = host, .states = {SandboxState::kDestroying}, .with_pooled = true};
  if (refusal.code == errors::kControlQuota) {
    filter.tenant = tenant;
  } else if (refusal.code != errors::kControlFull) {
    return false;
  }
  const auto going = store.Read([&](store::Rows& rows) { return rows.CountSandboxes(filter); });
  return going && *going > 0;
}

}  // namespace

machine::SentCap SentCapOf(const Sandbox& row) {
  if (row.bandwidth_quota == store::kUnlimited) return std::nullopt;
  const std::int64_t left = row.bandwidth_quota - row.bytes_out;
  return static_cast<std::uint64_t>(row.counter_out + (left > 0 ? left + kCapMargin : 0));
}

machine::MachineSpec SpecOf(const Sandbox& row, const egress::Policy& policy,
                            const std::vector<std::string>& networks, std::uint64_t pids) {
  machine::MachineSpec spec;
  spec.id = row.id;
  spec.host_name = row.name;
  spec.image = row.image;
  spec.cpus = row.cpus;
  spec.memory_bytes = static_cast<std::uint64_t>(row.memory_mib * kMib);
  spec.disk_bytes = static_cast<std::uint64_t>(row.disk_mib * kMib);
  spec.pids = pids;
  spec.network = policy;
  spec.shared_networks = {networks.begin(), networks.end()};
  spec.sent_cap = SentCapOf(row);
  return spec;
}

Status OfDriver(const Status& status, const std::string& what) {
  ErrorCode code = errors::kControlMachine;
  if (status.code == errors::kMachineFull) code = errors::kControlFull;
  if (status.code == errors::kMachinePreparing) code = errors::kControlPreparing;
  if (status.code == errors::kControlWarmFailed || status.code == errors::kControlDraining) {
    return status;
  }
  return {.code = code,
          .message = fmt::format("{}: {}", what, status.message),
          .span = {},
          .details = {}};
}

Result<Sandboxes::Plan> Sandboxes::PlanCreate(const Caller& caller, const CreateRequest& request) {
  const Shape* shape = FindShape(request.shape);
  if (shape == nullptr) {
    return FailAt("shape", errors::kControlUnknownShape,
                  fmt::format("there is no shape '{}'; GET /v1/shapes lists them",
                              request.shape.substr(0, 64)));
  }
  CAISSON_TRY(CheckRequestedName(request.name));
  CAISSON_TRY(CheckPlace(options_, request));
  CAISSON_TRY(CheckEnvs(request.envs, "envs"));
  CAISSON_TRY(CheckLabels(request.labels));
  CAISSON_TRY(CheckAutoPause(request.auto_pause_seconds));
  CAISSON_TRY(CheckDeleteAfter(request.delete_after_seconds));
  if (request.bandwidth_quota != 0) {
    return FailAt("bandwidth_quota_bytes", errors::kControlBadBandwidth,
                  "the quota of a new sandbox is the tenant's; recharge it, or set it on a fork");
  }
  Plan plan;
  Sandbox& row = plan.row;
  CAISSON_ASSIGN(row.disk_mib,
                 DiskOf(request.disk_mib, shape->default_disk_mib, options_.max_disk_mib));
  CAISSON_ASSIGN(const auto catalogue, options_.catalogue());
  row.tenant = caller.tenant;
  row.rootfs = request.rootfs.empty() ? options_.default_rootfs : request.rootfs;
  CAISSON_TRY(store_.Read([&](store::Rows& rows) -> Result<void> {
    CAISSON_TRY(FindRootfs(rows, catalogue, row));
    CAISSON_ASSIGN(plan.networks, FindNetworks(rows, caller.tenant, request.networks));
    return {};
  }));
  CAISSON_TRY(ChooseDriver(drivers_, request.driver, row));
  if (!plan.networks.empty() && !DriverOf(row).capabilities().shared_networks) {
    return FailAt("networks", errors::kMachineUnsupported,
                  fmt::format("the driver {} cannot join sandboxes in networks", row.driver));
  }
  row.egress = request.egress;
  CAISSON_ASSIGN(plan.policy, AtEgress(PolicyOf(row)));
  const Milliseconds now = Now();
  row.id = "sb-" + MakeUlid(now);
  row.name = request.name;
  row.state = SandboxState::kCreating;
  row.host = options_.host;
  row.created_by = caller.actor;
  row.shape = shape->id;
  row.vcpus = shape->vcpus;
  row.cpus = static_cast<double>(shape->vcpus);
  row.memory_mib = shape->memory_mib;
  // A machine whose memory goes to the disk has it there once, and once more while it is replaced.
  if (DriverOf(row).capabilities().disk_pause_keeps_processes) row.saved_mib = 2 * row.memory_mib;
  row.envs = request.envs;
  row.labels = request.labels;
  row.ingress_enabled = request.ingress_enabled;
  row.ingress_wakes = request.ingress_wakes;
  row.auto_pause_seconds = request.auto_pause_seconds;
  row.created_at = now;
  row.pool = request.pool;
  if (request.delete_after_seconds.value_or(0) > 0) {
    row.delete_at = now + *request.delete_after_seconds * 1000;
  }
  if (request.ingress_token) {
    plan.ingress_token = MakeSecret(kIngressPrefix);
    row.ingress_token_hash = HashOf(plan.ingress_token);
  }
  return plan;
}

Result<Sandboxes::Plan> Sandboxes::PlanFork(const Caller& caller, const Sandbox& parent,
                                            const ForkRequest& request) {
  CAISSON_TRY(CheckRequestedName(request.name));
  if (request.envs) CAISSON_TRY(CheckEnvs(*request.envs, "envs"));
  if (request.labels) CAISSON_TRY(CheckLabels(*request.labels));
  if (request.bandwidth_quota && *request.bandwidth_quota < 0) {
    return FailAt("bandwidth_quota_bytes", errors::kControlBadBandwidth,
                  "the quota is a number of bytes, 0 or more");
  }
  Plan plan;
  const Milliseconds now = Now();
  Sandbox& row = plan.row;
  row = parent;
  CAISSON_TRY(ChooseDriver(drivers_, request.driver, row));
  row.id = "sb-" + MakeUlid(now);
  row.name = request.name;
  row.state = SandboxState::kForking;
  row.created_by = caller.actor;
  row.ip.clear();
  row.failure.clear();
  row.forked_from = parent.id;
  row.created_at = now;
  row.running_at = row.paused_at = row.last_resumed_at = row.destroyed_at = std::nullopt;
  row.delete_at = std::nullopt;
  row.spawn_ms = std::nullopt;
  row.ingress_token_hash.clear();
  row.bytes_out = row.bytes_in = row.counter_out = row.counter_in = 0;
  row.pool.clear();
  row.pool_id.clear();
  row.place = store::PoolPlace::kNone;
  row.is_capped = false;
  row.revision = 0;
  if (request.egress) row.egress = *request.egress;
  if (request.envs) row.envs = *request.envs;
  if (request.labels) row.labels = *request.labels;
  if (request.ingress_enabled) row.ingress_enabled = *request.ingress_enabled;
  if (request.bandwidth_quota) row.bandwidth_quota = *request.bandwidth_quota;
  if (!parent.ingress_token_hash.empty()) {
    plan.ingress_token = MakeSecret(kIngressPrefix);
    row.ingress_token_hash = HashOf(plan.ingress_token);
  }
  plan.start_paused = request.start_paused;
  CAISSON_ASSIGN(plan.policy, AtEgress(PolicyOf(row)));
  CAISSON_TRY(store_.Read([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto networks, rows.NetworksOf(parent.id));
    for (const store::Network& network : networks) plan.networks.push_back(network.id);
    return {};
  }));
  return plan;
}

// What an earlier request with this key made; empty when it made nothing that stands.
Result<std::optional<Sandbox>> Sandboxes::FindRepeated(store::Rows& rows, const Caller& caller,
                                                       const Repeatable& repeatable) {
  if (repeatable.key.empty()) return std::nullopt;
  CAISSON_ASSIGN(const auto known, rows.FindIdempotency(caller.tenant, repeatable.key));
  if (!known) return std::nullopt;
  if (known->fingerprint != repeatable.fingerprint) {
    return Fail(errors::kControlIdempotency,
                "the Idempotency-Key was used for another request; make a new key for each");
  }
  CAISSON_ASSIGN(auto sandbox, rows.FindSandbox(known->sandbox));
  if (sandbox && sandbox->state == SandboxState::kFailed) sandbox.reset();
  return sandbox;
}

Result<void> Sandboxes::EnterRow(store::Rows& rows, Plan& plan, const HostNow& host) {
  CAISSON_ASSIGN(const auto tenant, rows.FindTenant(plan.row.tenant));
  if (!tenant) return Fail(errors::kControlNotFound, "the tenant does not exist any more");
  CAISSON_ASSIGN(const auto usage, rows.UsageByTenant(options_.host));
  CAISSON_ASSIGN(const auto tenants, rows.Tenants());
  CAISSON_TRY(Admit(plan.row.tenant,
                    {.sandboxes = 1,
                     .vcpus = plan.row.vcpus,
                     .memory_mib = plan.row.memory_mib,
                     .disk_mib = plan.row.disk_mib + plan.row.saved_mib},
                    tenant->quota, usage, tenants.size(), options_.capacity, host));
  if (plan.row.bandwidth_quota == store::kUnlimited && !plan.row.forked_from) {
    plan.row.bandwidth_quota = tenant->quota.bandwidth_bytes;
  }
  const bool is_made_up = plan.row.name.empty();
  for (int attempt = 0;; ++attempt) {
    if (is_made_up) plan.row.name = MakeName();
    auto inserted = rows.InsertSandbox(plan.row);
    if (inserted) break;
    if (inserted.error().code != errors::kStoreConflict) return inserted;
    if (!is_made_up || attempt == kNameAttempts) {
      return Fail(errors::kControlNameTaken,
                  fmt::format("the name {} belongs to another sandbox", plan.row.name));
    }
  }
  for (const std::string& network : plan.networks) {
    CAISSON_TRY(rows.AddMember(network, plan.row.id));
  }
  return {};
}

Result<std::optional<Sandbox>> Sandboxes::Enter(const Caller& caller, Plan& plan,
                                                const Repeatable& repeatable) {
  const auto enter = [&](const HostNow& host) {
    return store_.Write([&](store::Rows& rows) -> Result<std::optional<Sandbox>> {
      CAISSON_ASSIGN(auto known, FindRepeated(rows, caller, repeatable));
      if (known) return known;
      CAISSON_TRY(EnterRow(rows, plan, host));
      if (repeatable.key.empty()) return std::nullopt;
      CAISSON_TRY(rows.PutIdempotency({.tenant = caller.tenant,
                                       .key = repeatable.key,
                                       .fingerprint = repeatable.fingerprint,
                                       .sandbox = plan.row.id,
                                       .created_at = Now()}));
      return std::nullopt;
    });
  };
  // Whoever deletes one and makes another shall not be told that there is no room, because the
  // first is still on its way. What went between two looks is seen by one more try.
  const auto deadline = std::chrono::steady_clock::now() + kRoomPatience;
  for (bool may_fit = true;;) {
    auto entered = enter(options_.host_now());
    if (entered || !may_fit || std::chrono::steady_clock::now() > deadline) return entered;
    const ErrorCode& code = entered.error().code;
    if (code != errors::kControlQuota && code != errors::kControlFull) return entered;
    may_fit = MakesRoom(store_, entered.error(), caller.tenant, options_.host);
    if (may_fit) std::this_thread::sleep_for(kBetweenTries);
  }
}

// The request that came first may still be making it.
Result<Sandbox> Sandboxes::AwaitRepeated(const Caller& caller, const std::string& id) {
  const KeyedLocks::Held held(locks_, id);
  return Get(caller, id);
}

// Makes the machine of a row that is in the store, and says how it went there.
Result<Sandbox> Sandboxes::Boot(Plan& plan, const std::function<Result<machine::Machine>()>& make) {
  const auto start = std::chrono::steady_clock::now();
  machine::Driver& driver = DriverOf(plan.row);
  auto made = make();
  if (made && plan.start_paused) {
    if (auto paused = driver.Pause(plan.row.id, machine::Level::kMemory); !paused) {
      made = Fail(paused.error());
    }
  }
  if (!made) {
    // Nothing is left after a failed Create, but there may be after a failed Pause.
    const bool is_gone = driver.Destroy(plan.row.id).has_value();
    const Status failure = OfDriver(made.error(), "the machine could not be made");
    // What the caller shall ask for again was never there.
    const bool comes_again = failure.code == errors::kControlPreparing ||
                             failure.code == errors::kControlFull ||
                             failure.code == errors::kControlDraining;
    if (comes_again && is_gone &&
        store_.Write([&](store::Rows& rows) { return rows.RemoveSandbox(plan.row.id); })) {
      return Fail(failure);
    }
    static_cast<void>(Move(plan.row.id, SandboxEvent::kBootFailed, [&](Sandbox& row) {
      row.failure = made.error().message;
      row.destroyed_at = Now();
    }));
    return Fail(failure);
  }
  const double spent =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  auto moved =
      Move(plan.row.id, plan.start_paused ? SandboxEvent::kBootedPaused : SandboxEvent::kBooted,
           [&](Sandbox& row) {
             row.ip = made->ip;
             row.warm_process = plan.row.warm_process;
             row.spawn_ms = spent;
             row.running_at = Now();
             if (plan.start_paused) row.paused_at = Now();
           });
  // Nobody would own the machine.
  if (!moved) static_cast<void>(driver.Destroy(plan.row.id));
  if (moved && !plan.networks.empty()) neighbours_.TellTenant(*moved);
  return moved;
}

Result<machine::Machine> Sandboxes::MakeMachine(const Plan& plan) {
  const auto spec = SpecOf(plan.row, plan.policy, plan.networks, options_.pids);
  machine::Driver& driver = DriverOf(plan.row);
  if (!plan.row.image.starts_with(kSnapshotPrefix)) return driver.Create(spec);
  const std::string_view snapshot(plan.row.image);
  return driver.Restore(std::string(snapshot.substr(std::string_view(kSnapshotPrefix).size())),
                        spec);
}

Result<Made> Sandboxes::Create(const Caller& caller, const CreateRequest& request,
                               const Repeatable& repeatable) {
  if (draining_) return Fail(errors::kControlDraining, "the service is shutting down");
  if (!request.pool.empty()) return CreateFromPool(caller, request, repeatable);
  CAISSON_ASSIGN(Plan plan, PlanCreate(caller, request));
  return Make(caller, plan, repeatable, [&] { return MakeMachine(plan); });
}

Result<Made> Sandboxes::Make(const Caller& caller, Plan& plan, const Repeatable& repeatable,
                             const std::function<Result<machine::Machine>()>& make) {
  const KeyedLocks::Held held(locks_, plan.row.id);
  CAISSON_ASSIGN(const auto repeated, Enter(caller, plan, repeatable));
  if (repeated) {
    CAISSON_ASSIGN(Sandbox sandbox, AwaitRepeated(caller, repeated->id));
    return Made{.sandbox = std::move(sandbox), .ingress_token = {}};
  }
  CAISSON_ASSIGN(Sandbox sandbox, Boot(plan, make));
  activity_.Touch(sandbox.id);
  return Made{.sandbox = std::move(sandbox), .ingress_token = plan.ingress_token};
}

Result<Made> Sandboxes::Fork(const Caller& caller, const std::string& parent,
                             const ForkRequest& request, const Repeatable& repeatable) {
  if (draining_) return Fail(errors::kControlDraining, "the service is shutting down");
  // A parent that is on its way into a pause is waited for.
  const KeyedLocks::Held held(locks_, parent);
  CAISSON_ASSIGN(const Sandbox from, Get(caller, parent));
  CAISSON_ASSIGN(Plan plan, PlanFork(caller, from, request));
  if (from.state != SandboxState::kPaused) {
    return Fail(errors::kControlState,
                fmt::format("only a paused sandbox can be forked; this one is {}; pause it first",
                            ToText(from.state)));
  }
  const KeyedLocks::Held held_child(locks_, plan.row.id);
  CAISSON_ASSIGN(const auto repeated, Enter(caller, plan, repeatable));
  if (repeated) {
    CAISSON_ASSIGN(Sandbox sandbox, AwaitRepeated(caller, repeated->id));
    return Made{.sandbox = std::move(sandbox), .ingress_token = {}};
  }
  CAISSON_ASSIGN(Sandbox sandbox, Boot(plan, [&] {
                   return DriverOf(plan.row).Fork(
                       parent, SpecOf(plan.row, plan.policy, plan.networks, options_.pids),
                       request.most);
                 }));
  activity_.Touch(sandbox.id);
  return Made{.sandbox = std::move(sandbox), .ingress_token = plan.ingress_token};
}

}  // namespace caisson::control
