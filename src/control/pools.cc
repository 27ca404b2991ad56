// SPDX-License-Identifier: Apache-2.0
#include "control/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "control/names.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

using store::PoolPlace;

// A warm process may keep its maker waiting for minutes.
constexpr std::size_t kMakers = 16;
constexpr std::int64_t kMakersOfTenant = 4;
constexpr std::size_t kOthers = 4;
constexpr Milliseconds kFirstWait = 1000;  // after a failure; doubled with each that follows
constexpr Milliseconds kLongestWait = 300'000;
constexpr Milliseconds kBetweenChecks = 5000;

// What counts against a quota.
constexpr SandboxState kCounted[] = {SandboxState::kCreating, SandboxState::kRunning,
                                     SandboxState::kPausing,  SandboxState::kPaused,
                                     SandboxState::kResuming, SandboxState::kForking,
                                     SandboxState::kError,    SandboxState::kDestroying};

std::unexpected<Status> In(const char* field, Status status) {
  if (!status.details.empty()) status.details = fmt::format("{}.{}", field, status.details);
  return Fail(std::move(status));
}

bool CopiesMemory(const Sandboxes& sandboxes, const Sandbox& one) {
  return sandboxes.DriverOf(one).capabilities().fork == machine::Extent::kFull;
}

// What one that is made now is made from.
Result<Sandbox> Current(Sandboxes& sandboxes, const store::Pool& pool) {
  CAISSON_ASSIGN(const auto definition, ReadPoolDefinition(pool.definition));
  return sandboxes.TryOut({.tenant = pool.tenant, .actor = pool.created_by}, definition.sandbox);
}

// What the parent of the pool's machines has to be; empty where they have none.
std::optional<Sandbox> WantedParent(Sandboxes& sandboxes, const store::Pool& pool) {
  const auto definition = ReadPoolDefinition(pool.definition);
  if (!definition) return std::nullopt;
  // Cheap where no machine of that driver has a parent: no image is looked for.
  const std::string& driver = definition->sandbox.driver;
  const Sandbox of_driver{.driver = driver};
  if (!driver.empty() && !CopiesMemory(sandboxes, of_driver)) return std::nullopt;
  auto one = Current(sandboxes, pool);
  if (!one || !CopiesMemory(sandboxes, *one)) return std::nullopt;
  return *std::move(one);
}

const Sandbox* FindParent(const std::vector<Sandbox>& waiting, const store::Pool& pool,
                          const Sandbox& wanted) {
  for (const Sandbox& row : waiting) {
    const bool fits = row.pool_id == pool.id && row.place == PoolPlace::kParent &&
                      row.state == SandboxState::kPaused && row.image == wanted.image;
    if (fits) return &row;
  }
  return nullptr;
}

Result<void> CheckRequest(const std::string& name, const PoolRequest& request) {
  if (!IsName(name)) {
    return FailAt("name", errors::kControlBadName,
                  "a pool's name has at most 22 characters: a-z, 0-9 and '-', which may not come "
                  "first or last");
  }
  if (request.size < 1 || request.size > kMostPoolSize) {
    return FailAt("size", errors::kControlBadPool,
                  fmt::format("$.size is from 1 to {}", kMostPoolSize));
  }
  if (request.idle_seconds < 1 || request.idle_seconds > kMostIdleSeconds) {
    return FailAt("idle_seconds", errors::kControlBadPool,
                  fmt::format("$.idle_seconds is from 1 to {}", kMostIdleSeconds));
  }
  if (request.definition.warm) CAISSON_TRY(CheckWarm(*request.definition.warm));
  return {};
}

}  // namespace

Pools::Pools(Sandboxes& sandboxes, std::chrono::milliseconds round)
    : sandboxes_(sandboxes), store_(sandboxes.store()), makers_(kMakers), others_(kOthers) {
  sandboxes_.OnPoolUse([this](const std::string&) { Wake(); });
  if (round.count() == 0) return;
  thread_ = std::jthread([this, round](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      woken_.wait_for(lock, stop, round, [this] { return is_woken_; });
      if (stop.stop_requested()) return;
      is_woken_ = false;
      lock.unlock();
      Tend();
      lock.lock();
    }
  });
}

Pools::~Pools() {
  stop_.request_stop();
  sandboxes_.OnPoolUse({});
}

void Pools::Wake() {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  woken_.notify_all();
}

void Pools::Await(std::chrono::milliseconds patience) {
  makers_.Await(patience);
  others_.Await(patience);
}

// ---- definitions

// The whole pool must have room in the quota, beside all that is not its own.
Result<void> Pools::CheckRoom(store::Rows& rows, const store::Pool& pool, const Sandbox& one,
                              const HostNow& host) {
  CAISSON_ASSIGN(const auto tenant, rows.FindTenant(pool.tenant));
  if (!tenant) return Fail(errors::kControlNotFound, "the tenant does not exist any more");
  CAISSON_ASSIGN(auto usage, rows.UsageByTenant(sandboxes_.options().host));
  CAISSON_ASSIGN(const auto tenants, rows.Tenants());
  CAISSON_ASSIGN(const auto own,
                 rows.Sandboxes({.tenant = pool.tenant,
                                 .host = sandboxes_.options().host,
                                 .states = {std::begin(kCounted), std::end(kCounted)},
                                 .only_pooled = true}));
  store::Usage& used = usage[pool.tenant];
  for (const Sandbox& row : own) {
    if (row.pool != pool.name || store::IsTerminal(row.state)) continue;
    used.sandboxes -= 1;
    used.vcpus -= row.vcpus;
    used.memory_mib -= row.memory_mib;
    used.disk_mib -= row.disk_mib + row.saved_mib;
  }
  // And the one that they are copied from.
  const std::int64_t count = pool.size + (CopiesMemory(sandboxes_, one) ? 1 : 0);
  return Admit(pool.tenant,
               {.sandboxes = count,
                .vcpus = count * one.vcpus,
                .memory_mib = count * one.memory_mib,
                .disk_mib = count * (one.disk_mib + one.saved_mib)},
               tenant->quota, usage, tenants.size(), sandboxes_.options().capacity, host);
}

Result<Pools::Defined> Pools::Put(const Caller& caller, const std::string& name,
                                  const PoolRequest& request) {
  if (sandboxes_.draining()) return Fail(errors::kControlDraining, "the service is shutting down");
  CAISSON_TRY(CheckRequest(name, request));
  auto one = sandboxes_.TryOut(caller, request.definition.sandbox);
  if (!one) return In("sandbox", one.error());
  const Milliseconds now = sandboxes_.options().now();
  const HostNow host = sandboxes_.options().host_now();
  store::Pool row{.id = "pool-" + MakeUlid(now),
                  .tenant = caller.tenant,
                  .name = name,
                  .host = sandboxes_.options().host,
                  .created_by = caller.actor,
                  .definition = Write(request.definition),
                  .size = request.size,
                  .idle_seconds = request.idle_seconds,
                  .created_at = now,
                  .used_at = now};
  bool is_new = false;
  CAISSON_TRY(store_.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto known, rows.FindPool(caller.tenant, name));
    is_new = !known;
    const bool is_same = known && known->definition == row.definition && known->host == row.host;
    if (is_same) {
      row = *known;
      row.size = request.size;
      row.idle_seconds = request.idle_seconds;
    }
    if (is_new) {
      CAISSON_ASSIGN(const auto all, rows.Pools(caller.tenant));
      if (all.size() >= kMostPools) {
        return Fail(errors::kControlQuota,
                    fmt::format("a tenant has at most {} pools; delete one", kMostPools));
      }
    }
    if (!is_same || row.size != known->size) CAISSON_TRY(CheckRoom(rows, row, *one, host));
    return rows.PutPool(row);
  }));
  Wake();
  CAISSON_ASSIGN(const auto waiting, Waiting(caller.tenant));
  return Defined{.view = ViewOf(std::move(row), waiting), .is_new = is_new};
}

Result<std::vector<Sandbox>> Pools::Waiting(const std::optional<std::string>& tenant) {
  CAISSON_ASSIGN(auto rows, store_.Read([&](store::Rows& all) {
    return all.Sandboxes(
        {.tenant = tenant, .host = sandboxes_.options().host, .only_pooled = true});
  }));
  std::erase_if(rows, [](const Sandbox& row) { return store::IsTerminal(row.state); });
  return rows;
}

PoolView Pools::ViewOf(store::Pool row, const std::vector<Sandbox>& waiting) {
  PoolView view;
  for (const Sandbox& sandbox : waiting) {
    if (sandbox.pool_id != row.id || sandbox.place != PoolPlace::kWaiting) continue;
    ++(sandbox.state == SandboxState::kRunning ? view.ready : view.making);
  }
  {
    const std::lock_guard lock(mutex_);
    const auto live = live_.find(row.id);
    if (live != live_.end()) view.error = live->second.error;
  }
  if (auto definition = ReadPoolDefinition(row.definition)) {
    view.definition = *std::move(definition);
  } else {
    view.error = definition.error().message;
  }
  view.row = std::move(row);
  return view;
}

Result<PoolView> Pools::Get(const Caller& caller, const std::string& name) {
  CAISSON_ASSIGN(
      auto row, store_.Read([&](store::Rows& rows) { return rows.FindPool(caller.tenant, name); }));
  if (!row) return Fail(errors::kControlNotFound, "there is no pool " + name.substr(0, 64));
  CAISSON_ASSIGN(const auto waiting, Waiting(caller.tenant));
  return ViewOf(*std::move(row), waiting);
}

Result<std::vector<PoolView>> Pools::List(const Caller& caller) {
  CAISSON_ASSIGN(auto rows,
                 store_.Read([&](store::Rows& all) { return all.Pools(caller.tenant); }));
  CAISSON_ASSIGN(const auto waiting, Waiting(caller.tenant));
  std::vector<PoolView> views;
  for (store::Pool& row : rows) views.push_back(ViewOf(std::move(row), waiting));
  return views;
}

Result<void> Pools::Delete(const Caller& caller, const std::string& name) {
  CAISSON_ASSIGN(const bool was_there, store_.Write([&](store::Rows& rows) {
    return rows.DeletePool(caller.tenant, name);
  }));
  if (!was_there) return Fail(errors::kControlNotFound, "there is no pool " + name.substr(0, 64));
  Wake();
  return {};
}

// ---- what waits

void Pools::StartRetiring(const Sandbox& waiting) {
  others_.Start("retire " + waiting.id, [this, id = waiting.id] {
    sandboxes_.Retire(id);
    Wake();
  });
}

void Pools::Failed(const std::string& id, const std::string& why) {
  const std::lock_guard lock(mutex_);
  Live& live = live_[id];
  live.error = why;
  const Milliseconds wait = std::min(kLongestWait, kFirstWait << std::min(live.failures, 12));
  ++live.failures;
  live.not_before = sandboxes_.options().steady() + wait;
}

void Pools::MakeOne(const store::Pool& pool) {
  const auto waiting = Waiting(pool.tenant);
  const auto wanted = WantedParent(sandboxes_, pool);
  const bool lacks_parent = waiting && wanted && FindParent(*waiting, pool, *wanted) == nullptr;
  const PoolPlace place = lacks_parent ? PoolPlace::kParent : PoolPlace::kWaiting;
  const auto made = stop_.stop_requested()
                        ? Fail(errors::kControlDraining, "the service is shutting down")
                        : sandboxes_.MakeForPool(pool, place, stop_.get_token());
  if (!made) Failed(pool.id, made.error().message);
  {
    const std::lock_guard lock(mutex_);
    Live& live = live_[pool.id];
    --live.making;
    if (made) {
      live.failures = 0;
      live.error.clear();
    }
  }
  if (made) Wake();
}

void Pools::CheckOne(const store::Pool& pool, const Sandbox& waiting) {
  const auto now = Current(sandboxes_, pool);
  if (now && now->image != waiting.image) {  // its image was built anew
    sandboxes_.Retire(waiting.id);
    return Wake();
  }
  const auto fit = sandboxes_.CheckWaiting(waiting);
  if (fit) return;
  // Handed out a moment ago, it is somebody's who may end what he likes.
  const auto row = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(waiting.id); });
  if (!row || !*row || (*row)->place == PoolPlace::kNone) return;
  sandboxes_.Retire(waiting.id);
  Failed(pool.id, fit.error().message);
}

// Used long ago, by a clock that does not jump: the wall clock says it once, for what was before
// this program.
bool Pools::IsIdle(const store::Pool& pool, Live& live) {
  const Milliseconds steady = sandboxes_.options().steady();
  if (live.used_at != pool.used_at) {
    const Milliseconds ago = std::max<Milliseconds>(0, sandboxes_.options().now() - pool.used_at);
    live.used_at = pool.used_at;
    live.used = steady - ago;
  }
  return steady - live.used >= pool.idle_seconds * 1000;
}

void Pools::TendOne(const store::Pool& pool, const std::vector<Sandbox>& waiting) {
  std::vector<const Sandbox*> ready;
  const std::optional<Sandbox> wanted = WantedParent(sandboxes_, pool);
  const Sandbox* parent = wanted ? FindParent(waiting, pool, *wanted) : nullptr;
  for (const Sandbox& row : waiting) {
    if (row.pool_id != pool.id || row.state == SandboxState::kCreating) continue;
    if (row.place == PoolPlace::kParent) {
      if (&row != parent) StartRetiring(row);
    } else if (row.state == SandboxState::kRunning) {
      ready.push_back(&row);
    } else {
      StartRetiring(row);  // stopped, or lost its way
    }
  }
  const Milliseconds steady = sandboxes_.options().steady();
  std::int64_t lacking = 0;
  bool checks = false;
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    Live& live = live_[pool.id];
    is_idle = IsIdle(pool, live);
    checks = live.checked == 0 || steady - live.checked >= kBetweenChecks;
    if (checks) live.checked = steady;
    const auto count = static_cast<std::int64_t>(ready.size());
    if (!is_idle && steady >= live.not_before) lacking = pool.size - count - live.making;
    // After a failure one is tried alone.
    if (live.failures > 0) lacking = std::min<std::int64_t>(lacking, 1 - live.making);
    // The parent comes first and alone.
    if (wanted && parent == nullptr) lacking = std::min<std::int64_t>(lacking, 1 - live.making);
  }
  if (is_idle && parent != nullptr) StartRetiring(*parent);
  const auto kept = static_cast<std::size_t>(is_idle ? 0 : pool.size);
  for (std::size_t i = kept; i < ready.size(); ++i) StartRetiring(*ready[i]);
  for (std::size_t i = 0; checks && i < std::min(kept, ready.size()); ++i) {
    others_.Start("check " + ready[i]->id, [this, pool, row = *ready[i]] { CheckOne(pool, row); });
  }
  StartMaking(pool, lacking);
}

void Pools::StartMaking(const store::Pool& pool, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      if (making_by_tenant_[pool.tenant] >= kMakersOfTenant) return;
      ++making_by_tenant_[pool.tenant];
      ++live_[pool.id].making;
      name = fmt::format("make {}", ++made_);
    }
    makers_.Start(name, [this, pool] {
      MakeOne(pool);
      const std::lock_guard lock(mutex_);
      if (--making_by_tenant_[pool.tenant] == 0) making_by_tenant_.erase(pool.tenant);
    });
  }
}

void Pools::Tend() {
  if (sandboxes_.draining()) return;
  const std::string& host = sandboxes_.options().host;
  const auto pools = store_.Read([](store::Rows& rows) { return rows.Pools(std::nullopt); });
  const auto waiting = Waiting(std::nullopt);
  if (!pools || !waiting) return;
  std::set<std::string> known;
  for (const store::Pool& pool : *pools) {
    if (pool.host == host) known.insert(pool.id);
  }
  std::set<std::pair<std::string, std::string>> leaving;
  for (const Sandbox& row : *waiting) {
    if (known.contains(row.pool_id)) continue;
    StartRetiring(row);  // of a definition that is gone, or was replaced
    leaving.emplace(row.tenant, row.pool);
  }
  for (const store::Pool& pool : *pools) {
    // What is replaced makes room first, since there may be none for both.
    if (known.contains(pool.id) && !leaving.contains({pool.tenant, pool.name})) {
      TendOne(pool, *waiting);
    }
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(live_, [&](const auto& entry) {
    return !known.contains(entry.first) && entry.second.making == 0;
  });
}

}  // namespace caisson::control
