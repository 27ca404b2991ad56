// SPDX-License-Identifier: Apache-2.0
#include "control/sandboxes.h"

#include <fmt/format.h>

#include "control/plan.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "errors/control.h"
#include "errors/machine.h"
#include "errors/store.h"
#include "json/writer.h"

namespace caisson::control {
namespace {

std::unexpected<Status> NotFound(const std::string& id) {
  return Fail(errors::kControlNotFound, "there is no sandbox " + id.substr(0, 64));
}

// So many guests that are stuck keep those waiting that have to be paused or deleted, too.
constexpr std::size_t kTenders = 8;

bool MayUse(const Caller& caller, const Sandbox& sandbox) {
  return sandbox.tenant == caller.tenant && sandbox.place == store::PoolPlace::kNone &&
         (!caller.sandbox || *caller.sandbox == sandbox.id);
}

std::unexpected<Status> WrongState(const Sandbox& sandbox, const std::string& what) {
  return Fail(errors::kControlState, fmt::format("the sandbox is {}, which does not allow {}",
                                                 ToText(sandbox.state), what));
}

Result<std::int64_t> AppendChange(store::Rows& rows, const Sandbox& row, SandboxState before,
                                  Milliseconds now) {
  json::Object data{
      {"id", row.id}, {"name", row.name}, {"from", ToText(before)}, {"status", ToText(row.state)}};
  if (!row.failure.empty()) data.Set("reason", row.failure);
  CAISSON_ASSIGN(std::string text, json::Write(json::Value(std::move(data))));
  return rows.AppendEvent({.at = now,
                           .tenant = row.tenant,
                           .sandbox = row.id,
                           .type = "sandbox." + std::string(ToText(row.state)),
                           .data = std::move(text)});
}

}  // namespace

Sandboxes::Sandboxes(SandboxesOptions options, store::Store& store, Drivers drivers)
    : options_(std::move(options)),
      store_(store),
      drivers_(std::move(drivers)),
      activity_(options_.steady),
      tended_at_(options_.steady()),
      neighbours_(store_, drivers_, options_.host, options_.hosts_file),
      chores_(kTenders) {}

Milliseconds ReadSteadyClock() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- rows

Result<Sandbox> Sandboxes::ChangeRow(const std::string& id,
                                     const std::function<Result<void>(Sandbox&)>& change) {
  return store_.Write([&](store::Rows& rows) -> Result<Sandbox> {
    CAISSON_ASSIGN(auto row, rows.FindSandbox(id));
    if (!row) return NotFound(id);
    CAISSON_TRY(change(*row));
    CAISSON_TRY(rows.UpdateSandbox(*row));
    return *std::move(row);
  });
}

void Sandboxes::PublishState(const Sandbox& sandbox) {
  const auto seq = store_.Write([&](store::Rows& rows) {
    return AppendChange(rows, sandbox, SandboxState::kCreating, Now());
  });
  if (!seq) return;
  neighbours_.Changed();
  const std::lock_guard lock(events_mutex_);
  newest_event_ = std::max(newest_event_, *seq);
  events_came_.notify_all();
}

Result<Sandbox> Sandboxes::Move(const std::string& id, SandboxEvent event, const Change& change) {
  std::int64_t seq = 0;
  auto moved = store_.Write([&](store::Rows& rows) -> Result<Sandbox> {
    CAISSON_ASSIGN(auto row, rows.FindSandbox(id));
    if (!row) return NotFound(id);
    const auto next = Next(row->state, event);
    if (!next) return WrongState(*row, fmt::format("\"{}\"", ToText(event)));
    const SandboxState before = row->state;
    row->state = *next;
    if (change) change(*row);
    CAISSON_TRY(rows.UpdateSandbox(*row));
    // Of what waits in a pool nobody is told.
    if (before == *next || row->place != store::PoolPlace::kNone) return *std::move(row);
    CAISSON_ASSIGN(seq, AppendChange(rows, *row, before, Now()));
    return *std::move(row);
  });
  if (seq != 0) {
    neighbours_.Changed();
    const std::lock_guard lock(events_mutex_);
    newest_event_ = std::max(newest_event_, seq);
    events_came_.notify_all();
  }
  return moved;
}

// ---- events

void Sandboxes::Publish(const std::string& tenant, const std::string& sandbox,
                        const std::string& type, const std::string& data) {
  auto seq = store_.Write([&](store::Rows& rows) {
    return rows.AppendEvent(
        {.at = Now(), .tenant = tenant, .sandbox = sandbox, .type = type, .data = data});
  });
  if (!seq) return;
  const std::lock_guard lock(events_mutex_);
  newest_event_ = std::max(newest_event_, *seq);
  events_came_.notify_all();
}

void Sandboxes::AwaitEvents(std::int64_t seq, std::chrono::milliseconds wait) {
  std::unique_lock lock(events_mutex_);
  events_came_.wait_for(lock, wait, [&] { return newest_event_ > seq; });
}

// ---- reading

Result<Sandbox> Sandboxes::Get(const Caller& caller, const std::string& id) {
  CAISSON_ASSIGN(auto row, store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); }));
  if (!row || !MayUse(caller, *row)) return NotFound(id);
  return *std::move(row);
}

Result<Sandbox> Sandboxes::GetByIp(const Caller& caller, const std::string& ip) {
  CAISSON_ASSIGN(auto row, store_.Read([&](store::Rows& rows) {
    return rows.FindSandboxByIp(caller.tenant, ip);
  }));
  if (!row || !MayUse(caller, *row)) {
    return Fail(errors::kControlNotFound,
                "there is no sandbox with the address " + ip.substr(0, 64));
  }
  return *std::move(row);
}

Result<std::vector<Sandbox>> Sandboxes::List(const Caller& caller, store::SandboxFilter filter,
                                             std::int64_t& total) {
  filter.tenant = caller.tenant;
  return store_.Read([&](store::Rows& rows) -> Result<std::vector<Sandbox>> {
    CAISSON_ASSIGN(total, rows.CountSandboxes(filter));
    return rows.Sandboxes(filter);
  });
}

// ---- pause and resume

Result<Sandbox> Sandboxes::PauseHeld(Sandbox sandbox, bool only_when_idle) {
  if (sandbox.state == SandboxState::kPaused) return sandbox;
  if (sandbox.state != SandboxState::kPausing) {  // else one that a crash has left half-way
    CAISSON_ASSIGN(sandbox, Move(sandbox.id, SandboxEvent::kPause));
  }
  const std::string id = sandbox.id;
  // Whoever began to use it before the row said "pausing" has it; whoever comes later waits.
  if (only_when_idle && activity_.InUse(id)) return Move(id, SandboxEvent::kPauseUndone);
  if (auto paused = DriverOf(sandbox).Pause(id, machine::Level::kMemory); !paused) {
    CAISSON_TRY(Move(id, SandboxEvent::kPauseUndone));
    return Fail(OfDriver(paused.error(), "the sandbox could not be paused and runs on"));
  }
  CountTraffic(sandbox);  // what it sent last
  return Move(id, SandboxEvent::kPauseDone, [&](Sandbox& row) { row.paused_at = Now(); });
}

// A guest can hold up what it runs, its agent and the host's wish to freeze it: what cannot be
// frozen is stopped, where its driver can keep what it has on disk.
bool Sandboxes::HoldStill(const Sandbox& sandbox) {
  machine::Driver& driver = DriverOf(sandbox);
  const auto frozen = driver.Pause(sandbox.id, machine::Level::kMemory);
  if (frozen) return true;
  const bool runs_not = frozen.error().code == errors::kMachineWrongState ||
                        frozen.error().code == errors::kMachineUnknown;
  return runs_not || driver.Pause(sandbox.id, machine::Level::kDisk).has_value();
}

Result<Sandbox> Sandboxes::Pause(const Caller& caller, const std::string& id) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  return PauseHeld(std::move(sandbox), false);
}

Result<Sandbox> Sandboxes::ResumeHeld(const Sandbox& sandbox) {
  const std::string& id = sandbox.id;
  if (sandbox.state == SandboxState::kRunning) return sandbox;
  if (sandbox.state != SandboxState::kResuming) {
    CAISSON_TRY(Move(id, SandboxEvent::kResume));
  }
  // What is counted as used begins with the resume, so that it is not paused again at once.
  activity_.Touch(id);
  const auto resume = [&]() -> Result<void> {
    CAISSON_TRY(ApplyNetworks(sandbox));
    return DriverOf(sandbox).Resume(id);
  };
  if (auto resumed = resume(); !resumed) {
    // It may run all the same, where nobody can use it. Tend tries again.
    static_cast<void>(HoldStill(sandbox));
    CountTraffic(sandbox);
    CAISSON_TRY(Move(id, SandboxEvent::kResumeFailed,
                     [&](Sandbox& row) { row.failure = resumed.error().message; }));
    return Fail(OfDriver(resumed.error(), "the sandbox could not be resumed; try again"));
  }
  return Move(id, SandboxEvent::kResumed, [&](Sandbox& row) {
    row.last_resumed_at = Now();
    row.failure.clear();
  });
}

Result<Sandbox> Sandboxes::Resume(const Caller& caller, const std::string& id) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(const Sandbox sandbox, Get(caller, id));
  if (draining_ && sandbox.state != SandboxState::kRunning) {
    return Fail(errors::kControlDraining, "the service is shutting down");
  }
  return ResumeHeld(sandbox);
}

// ---- the end

Result<Sandbox> Sandboxes::DeleteHeld(const Sandbox& sandbox) {
  if (sandbox.state == SandboxState::kDestroyed) return sandbox;
  if (sandbox.state == SandboxState::kFailed) return Move(sandbox.id, SandboxEvent::kDelete);
  Sandbox destroying = sandbox;
  if (sandbox.state != SandboxState::kDestroying) {
    CAISSON_ASSIGN(destroying, Move(sandbox.id, SandboxEvent::kDelete));
  }
  CountTraffic(destroying);
  // Tried again by Tend until it works.
  if (!DriverOf(sandbox).Destroy(sandbox.id)) return destroying;
  return Move(sandbox.id, SandboxEvent::kDeleted, [&](Sandbox& row) { row.destroyed_at = Now(); });
}

Result<Sandbox> Sandboxes::Delete(const Caller& caller, const std::string& id) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(const Sandbox sandbox, Get(caller, id));
  if (IsTerminal(sandbox.state)) return DeleteHeld(sandbox);
  CAISSON_ASSIGN(Sandbox destroying, Move(id, SandboxEvent::kDelete));
  // Nobody can use it any more, and its name is free; its machine goes without the caller. Where
  // this is left out, or is not done before the end of the service, Tend or Adopt does it.
  chores_.Start(id, [this, id] {
    const KeyedLocks::Held again(locks_, id);
    const auto row = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); });
    if (row && *row && (*row)->state == SandboxState::kDestroying) {
      static_cast<void>(DeleteHeld(**row));
    }
  });
  return destroying;
}

// ---- changes

Result<Made> Sandboxes::Patch(const Caller& caller, const std::string& id,
                              const PatchRequest& request) {
  CAISSON_TRY(CheckAutoPause(request.auto_pause_seconds));
  CAISSON_TRY(CheckDeleteAfter(request.delete_after_seconds));
  if (request.labels) CAISSON_TRY(CheckLabels(*request.labels));
  CAISSON_TRY(Get(caller, id));
  Made made;
  if (request.ingress_token.value_or(false)) made.ingress_token = MakeSecret(kIngressPrefix);
  CAISSON_ASSIGN(made.sandbox, ChangeRow(id, [&](Sandbox& row) -> Result<void> {
                   if (IsTerminal(row.state)) return WrongState(row, "changes");
                   if (request.ingress_enabled) row.ingress_enabled = *request.ingress_enabled;
                   if (request.ingress_wakes) row.ingress_wakes = *request.ingress_wakes;
                   if (request.ingress_token) {
                     row.ingress_token_hash =
                         *request.ingress_token ? HashOf(made.ingress_token) : "";
                   }
                   if (request.auto_pause_seconds)
                     row.auto_pause_seconds = request.auto_pause_seconds;
                   if (request.disable_auto_pause) row.auto_pause_seconds.reset();
                   if (request.labels) row.labels = *request.labels;
                   if (request.delete_after_seconds) {
                     row.delete_at.reset();
                     if (*request.delete_after_seconds > 0) {
                       row.delete_at = Now() + *request.delete_after_seconds * 1000;
                     }
                   }
                   return {};
                 }));
  activity_.Touch(id);
  return made;
}

Result<Sandbox> Sandboxes::Resize(const Caller& caller, const std::string& id,
                                  std::int64_t disk_mib) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  if (sandbox.state != SandboxState::kRunning && sandbox.state != SandboxState::kPaused) {
    return WrongState(sandbox, "a change of its disk");
  }
  if (disk_mib < sandbox.disk_mib || disk_mib > options_.max_disk_mib) {
    return FailAt("disk_mib", errors::kControlBadDisk,
                  fmt::format("the disk has {} MiB and can only grow, to {} MiB at most",
                              sandbox.disk_mib, options_.max_disk_mib));
  }
  if (disk_mib == sandbox.disk_mib) return sandbox;
  const HostNow host = options_.host_now();
  // The row says the larger size first: a disk that is smaller than its row harms nobody.
  CAISSON_ASSIGN(Sandbox grown, store_.Write([&](store::Rows& rows) -> Result<Sandbox> {
    CAISSON_ASSIGN(auto row, rows.FindSandbox(id));
    CAISSON_ASSIGN(const auto tenant, rows.FindTenant(sandbox.tenant));
    if (!row || !tenant) return NotFound(id);
    CAISSON_ASSIGN(const auto usage, rows.UsageByTenant(options_.host));
    CAISSON_ASSIGN(const auto tenants, rows.Tenants());
    CAISSON_TRY(Admit(sandbox.tenant, {.disk_mib = disk_mib - row->disk_mib}, tenant->quota, usage,
                      tenants.size(), options_.capacity, host));
    row->disk_mib = disk_mib;
    CAISSON_TRY(rows.UpdateSandbox(*row));
    return *std::move(row);
  }));
  const auto bytes = static_cast<std::uint64_t>(disk_mib) << 20;
  if (auto done = DriverOf(sandbox).Resize(id, bytes); !done) {
    CAISSON_TRY(ChangeRow(id, [&](Sandbox& row) -> Result<void> {
      row.disk_mib = sandbox.disk_mib;
      return {};
    }));
    return Fail(OfDriver(done.error(), "the disk could not be grown"));
  }
  return grown;
}

Result<void> Sandboxes::ApplyNetwork(const Sandbox& sandbox) {
  CAISSON_ASSIGN(const auto policy, sandbox.is_capped
                                        ? Result<egress::Policy>(egress::Policy::DenyAll())
                                        : PolicyOf(sandbox));
  return DriverOf(sandbox).SetNetwork(sandbox.id, policy, SentCapOf(sandbox));
}

Result<void> Sandboxes::ApplyNetworks(const Sandbox& sandbox) {
  const machine::Capabilities capabilities = DriverOf(sandbox).capabilities();
  // Without it nothing is open, whatever the rules say.
  if (capabilities.network) CAISSON_TRY(ApplyNetwork(sandbox));
  if (!capabilities.shared_networks) return {};
  CAISSON_ASSIGN(const std::set<std::string> networks, JoinedBy(sandbox.id));
  return DriverOf(sandbox).SetSharedNetworks(sandbox.id, networks);
}

Result<std::set<std::string>> Sandboxes::JoinedBy(const std::string& id) {
  CAISSON_ASSIGN(const auto networks,
                 store_.Read([&](store::Rows& rows) { return rows.NetworksOf(id); }));
  std::set<std::string> ids;
  for (const store::Network& network : networks) ids.insert(network.id);
  return ids;
}

Result<egress::Policy> Sandboxes::PolicyOf(const Sandbox& sandbox) const {
  const bool takes_names = DriverOf(sandbox).capabilities().host_name_rules;
  return egress::Policy::Parse(
      sandbox.egress, takes_names ? egress::HostNames::kEnforced : egress::HostNames::kRefused);
}

Result<Sandbox> Sandboxes::SetEgress(const Caller& caller, const std::string& id,
                                     const std::vector<std::string>& rules) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  Sandbox wanted = sandbox;
  wanted.egress = rules;
  if (auto policy = PolicyOf(wanted); !policy) {
    return FailAt("egress", policy.error().code, policy.error().message);
  }
  if (sandbox.state != SandboxState::kRunning && sandbox.state != SandboxState::kPaused) {
    return WrongState(sandbox, "a change of its network");
  }
  const std::vector<std::string> before = sandbox.egress;
  auto write = [&](const std::vector<std::string>& egress) {
    return ChangeRow(id, [&](Sandbox& row) -> Result<void> {
      row.egress = egress;
      return {};
    });
  };
  CAISSON_ASSIGN(sandbox, write(rules));
  if (auto applied = ApplyNetwork(sandbox); !applied) {
    CAISSON_TRY(write(before));
    return Fail(OfDriver(applied.error(), "the rules could not be applied and the old ones stand"));
  }
  return sandbox;
}

Result<egress::NetworkLog> Sandboxes::ReadNetworkLog(const Sandbox& sandbox, std::uint64_t after) {
  auto log = DriverOf(sandbox).ReadNetworkLog(sandbox.id, after);
  if (log || log.error().code == errors::kMachineUnsupported) return log;
  return Fail(OfDriver(log.error(), "what was denied cannot be read"));
}

// ---- use

Result<InUse> Sandboxes::Hold(const Caller& caller, const std::string& id) {
  Use use(activity_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  if (sandbox.state == SandboxState::kPausing || sandbox.state == SandboxState::kResuming) {
    // An automatic pause gives way to a use; a resume is nearly done.
    const KeyedLocks::Held held(locks_, id);
    CAISSON_ASSIGN(sandbox, Get(caller, id));
  }
  if (sandbox.state == SandboxState::kPaused || sandbox.state == SandboxState::kPausing) {
    return Fail(errors::kControlPaused, "sandbox is paused; resume it before accessing files");
  }
  if (sandbox.state == SandboxState::kDestroyed) return NotFound(id);
  if (!IsUsable(sandbox.state)) {
    return Fail(errors::kControlState,
                fmt::format("the sandbox is {}, not running", ToText(sandbox.state)));
  }
  return InUse{.sandbox = std::move(sandbox), .use = std::move(use)};
}

Result<InUse> Sandboxes::HoldForIngress(const std::string& id, std::string_view token) {
  CAISSON_ASSIGN(auto row, store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); }));
  const bool is_open =
      row && row->ingress_enabled && !IsTerminal(row->state) &&
      row->place == store::PoolPlace::kNone &&
      (row->ingress_token_hash.empty() || row->ingress_token_hash == HashOf(token));
  if (!is_open) return Fail(errors::kControlNotFound, "there is nothing at this address");
  const Caller visitor{.tenant = row->tenant, .actor = "ingress"};
  if (row->ingress_wakes) {
    // Held in use before it runs, so that it is not paused again before the visit.
    Use use(activity_, id);
    const KeyedLocks::Held held(locks_, id);
    CAISSON_ASSIGN(const Sandbox sandbox, Get(visitor, id));
    if (sandbox.state == SandboxState::kPaused && !draining_) CAISSON_TRY(ResumeHeld(sandbox));
  }
  return Hold(visitor, id);
}

Result<os::UniqueFd> Sandboxes::Connect(const Sandbox& sandbox) {
  auto connected = DriverOf(sandbox).Connect(sandbox.id);
  if (connected) return connected;
  return Fail(errors::kControlLost, fmt::format("the machine of the sandbox does not answer: {}",
                                                connected.error().message));
}

Result<machine::Stats> Sandboxes::ReadStats(const Sandbox& sandbox) {
  auto stats = DriverOf(sandbox).ReadStats(sandbox.id);
  if (stats) return stats;
  return Fail(OfDriver(stats.error(), "the machine cannot be measured"));
}

// ---- traffic

void Sandboxes::CountTraffic(const Sandbox& of) {
  const std::string& id = of.id;
  const auto stats = DriverOf(of).ReadStats(id);
  if (!stats) return;
  const auto out = static_cast<std::int64_t>(stats->network_sent_bytes);
  const auto in = static_cast<std::int64_t>(stats->network_received_bytes);
  auto count = [](std::int64_t now, std::int64_t& before, std::int64_t& sum) {
    sum += now >= before ? now - before : now;
    before = now;
  };
  bool caps = false;
  auto row = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); });
  if (!row || !*row) return;
  const Sandbox& known = **row;
  const bool is_over = known.bandwidth_quota != store::kUnlimited &&
                       known.bytes_out + out - known.counter_out >= known.bandwidth_quota;
  // Most sandboxes send nothing most of the time: no write for them.
  if (out == known.counter_out && in == known.counter_in && is_over == known.is_capped) return;
  auto changed = ChangeRow(id, [&](Sandbox& sandbox) -> Result<void> {
    count(out, sandbox.counter_out, sandbox.bytes_out);
    count(in, sandbox.counter_in, sandbox.bytes_in);
    const bool capped = sandbox.bandwidth_quota != store::kUnlimited &&
                        sandbox.bytes_out >= sandbox.bandwidth_quota;
    caps = capped != sandbox.is_capped;
    sandbox.is_capped = capped;
    return {};
  });
  // A counter that begins anew takes the cap with it.
  const bool anew = out < known.counter_out && known.bandwidth_quota != store::kUnlimited;
  if (!changed || !(caps || anew) || IsTerminal(changed->state)) return;
  if (ApplyNetwork(*changed) || !caps) return;
  // Told again at the next round, since the row does not say what is so.
  static_cast<void>(ChangeRow(id, [](Sandbox& sandbox) -> Result<void> {
    sandbox.is_capped = !sandbox.is_capped;
    return {};
  }));
}

Result<Sandbox> Sandboxes::ReadBandwidth(const Caller& caller, const std::string& id) {
  CAISSON_ASSIGN(const Sandbox sandbox, Get(caller, id));
  if (sandbox.state == SandboxState::kRunning || sandbox.state == SandboxState::kPaused ||
      sandbox.state == SandboxState::kError) {
    const KeyedLocks::Held held(locks_, id);
    CountTraffic(sandbox);
  }
  return Get(caller, id);
}

Result<Sandbox> Sandboxes::Recharge(const Caller& caller, const std::string& id,
                                    std::int64_t add_bytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;  // what a JSON number holds everywhere
  if (add_bytes <= 0 || add_bytes > kMost) {
    return FailAt("add_bytes", errors::kControlBadBandwidth,
                  fmt::format("{} is not between 1 and {}", add_bytes, kMost));
  }
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  if (IsTerminal(sandbox.state)) return WrongState(sandbox, "a recharge");
  if (sandbox.bandwidth_quota == store::kUnlimited) return sandbox;
  sandbox.bandwidth_quota = std::min(kMost, sandbox.bandwidth_quota + add_bytes);
  // The machine first: what is not in the row is not paid for, and is closed by its count.
  if (DriverOf(sandbox).capabilities().network) {
    if (auto applied = ApplyNetwork(sandbox); !applied) {
      return Fail(OfDriver(applied.error(), "the sandbox could not be recharged; try again"));
    }
  }
  CAISSON_TRY(ChangeRow(id, [&](Sandbox& row) -> Result<void> {
    row.bandwidth_quota = sandbox.bandwidth_quota;
    return {};
  }));
  CountTraffic(sandbox);
  return Get(caller, id);
}

}  // namespace caisson::control
