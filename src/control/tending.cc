// SPDX-License-Identifier: Apache-2.0
// What happens to sandboxes without anybody asking: adoption after a start, auto-pause, deletion in
// time, machines that died, traffic, tombstones.
#include <fmt/format.h>

#include <atomic>
#include <set>
#include <string_view>
#include <thread>

#include "control/plan.h"
#include "control/sandboxes.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

constexpr std::size_t kAdopters = 8;
constexpr std::int64_t kRoundsBetweenLooks = 3;
constexpr std::int64_t kRoundsBetweenPurges = 60;
constexpr Milliseconds kKeepEvents = Milliseconds{24} * 3600'000;
constexpr Milliseconds kKeepIdempotency = Milliseconds{24} * 3600'000;

constexpr SandboxState kLive[] = {SandboxState::kCreating, SandboxState::kRunning,
                                  SandboxState::kPausing,  SandboxState::kPaused,
                                  SandboxState::kResuming, SandboxState::kForking,
                                  SandboxState::kError,    SandboxState::kDestroying};

// The machines of each driver that can be asked; of the others nothing is known.
using Found = std::map<std::string, std::map<std::string, machine::Machine>>;

Result<Found> ListMachines(const Drivers& drivers) {
  Found found;
  std::optional<Status> failure;
  for (const std::string& name : drivers.names()) {
    auto machines = drivers.Of(name).List();
    if (!machines) failure = machines.error();
    if (!machines) continue;
    auto& of_driver = found[name];
    for (machine::Machine& machine : *machines) of_driver.emplace(machine.id, std::move(machine));
  }
  if (found.empty() && failure) return Fail(*failure);
  return found;
}

}  // namespace

void Sandboxes::Lose(const Sandbox& row, const std::string& why) {
  static_cast<void>(DriverOf(row).Destroy(row.id));
  const SandboxEvent event =
      Next(row.state, SandboxEvent::kLost) ? SandboxEvent::kLost : SandboxEvent::kBootFailed;
  static_cast<void>(Move(row.id, event, [&](Sandbox& sandbox) {
    sandbox.failure = why;
    sandbox.destroyed_at = Now();
  }));
}

// A machine whose network is not known to be as its row says does not run. Resume tries again.
void Sandboxes::StandStill(const Sandbox& row, const machine::Machine& found,
                           const std::string& why) {
  const bool runs = found.state == machine::State::kRunning;
  if (runs && !HoldStill(row)) return Lose(row, why);
  const auto move = [&](SandboxEvent event) {
    static_cast<void>(Move(row.id, event, [&](Sandbox& sandbox) {
      sandbox.failure = why;
      if (event == SandboxEvent::kPauseDone) sandbox.paused_at = Now();
    }));
  };
  switch (row.state) {
    case SandboxState::kRunning:
      if (!runs) return move(SandboxEvent::kStopped);
      move(SandboxEvent::kPause);
      return move(SandboxEvent::kPauseDone);
    case SandboxState::kPausing:
      return move(SandboxEvent::kPauseDone);
    case SandboxState::kResuming:
      return move(SandboxEvent::kResumeFailed);
    default:
      return;
  }
}

// The row as it stands after a crash, and what is there of its machine.
void Sandboxes::Settle(const Sandbox& row, const std::optional<machine::Machine>& found) {
  machine::Driver& driver = DriverOf(row);
  const auto lose = [&](const std::string& why) { Lose(row, why); };
  switch (row.state) {
    case SandboxState::kCreating:
    case SandboxState::kForking:
      // Nobody was told that it exists.
      return lose("the service ended while the sandbox was made");
    case SandboxState::kDestroying:
      static_cast<void>(DeleteHeld(row));
      return;
    case SandboxState::kDestroyed:
    case SandboxState::kFailed:
      return;
    default:
      break;
  }
  if (!found) return lose("its machine is gone");
  if (auto applied = ApplyNetworks(row); !applied) {
    return StandStill(row, *found, "its network cannot be set: " + applied.error().message);
  }
  switch (row.state) {
    case SandboxState::kRunning:
      if (found->state == machine::State::kRunning && options_.answers(driver, row.id)) return;
      // A reboot of the host stopped it, or it was paused and the row not yet written.
      if (!driver.Resume(row.id) || !options_.answers(driver, row.id)) {
        lose("its machine does not answer");
      }
      return;
    case SandboxState::kPausing:
      static_cast<void>(PauseHeld(row, false));
      return;
    case SandboxState::kResuming:
      static_cast<void>(ResumeHeld(row));
      return;
    default:  // paused, error: as they are, and still
      if (found->state == machine::State::kRunning) static_cast<void>(HoldStill(row));
      return;
  }
}

void Sandboxes::AdoptOne(const Sandbox& row, const std::optional<machine::Machine>& found) {
  const KeyedLocks::Held held(locks_, row.id);
  Settle(row, found);
  activity_.Touch(row.id);
}

Result<void> Sandboxes::Adopt() {
  CAISSON_ASSIGN(Found orphans, ListMachines(drivers_));
  CAISSON_ASSIGN(const auto rows, store_.Read([&](store::Rows& store_rows) {
    return store_rows.Sandboxes({.host = options_.host,
                                 .states = {std::begin(kLive), std::end(kLive)},
                                 .with_pooled = true});
  }));
  std::vector<std::function<void()>> work;
  for (const Sandbox& row : rows) {
    const auto driver = orphans.find(row.driver);
    if (driver == orphans.end()) continue;  // stays as it is until its driver is there again
    const auto machine = driver->second.extract(row.id);
    work.emplace_back(
        [this, row, found = machine ? std::optional(machine.mapped()) : std::nullopt] {
          AdoptOne(row, found);
        });
  }
  for (const auto& [driver, machines] : orphans) {
    for (const auto& [id, machine] : machines) {
      work.emplace_back([this, driver, id] { static_cast<void>(drivers_.Of(driver).Destroy(id)); });
    }
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> adopters;
  for (std::size_t i = 0; i < std::min(kAdopters, work.size()); ++i) {
    adopters.emplace_back([&] {
      for (std::size_t mine = next++; mine < work.size(); mine = next++) work[mine]();
    });
  }
  return {};
}

// The wish stands in the store as a time of the wall clock, so that it outlives the service. How
// long it takes until then is settled when it is first seen: a wall clock that jumps afterwards
// neither deletes anything nor keeps it.
bool Sandboxes::IsToBeDeleted(const Sandbox& row) {
  if (!row.delete_at) return false;
  Deadline& deadline = deadlines_[row.id];
  const Milliseconds steady = options_.steady();
  if (deadline.wish != *row.delete_at) {
    deadline = {.wish = *row.delete_at, .steady = steady + *row.delete_at - Now()};
  }
  return deadline.steady <= steady;
}

void Sandboxes::StartChore(const Sandbox& row, RowWork work) {
  chores_.Start(row.id, [this, row, work = std::move(work)] {
    const KeyedLocks::Held held(locks_, row.id, std::try_to_lock);
    if (!held) return;
    const auto fresh = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(row.id); });
    if (fresh && *fresh && (*fresh)->revision == row.revision) work(**fresh);
  });
}

void Sandboxes::TendOne(const Sandbox& row) {
  if (IsToBeDeleted(row) || row.state == SandboxState::kDestroying) {
    return StartChore(row, [this](const Sandbox& fresh) { static_cast<void>(DeleteHeld(fresh)); });
  }
  if (row.state != SandboxState::kRunning || !row.auto_pause_seconds) return;
  const auto idle_since = activity_.IdleSince(row.id);
  if (!idle_since) return;
  if (options_.steady() - *idle_since < *row.auto_pause_seconds * 1000) return;
  StartChore(row, [this](const Sandbox& fresh) { static_cast<void>(PauseHeld(fresh, true)); });
}

// Of a row that is settled: a machine that is gone, that was ended from outside, or that runs
// though it must not.
void Sandboxes::LookAt(const Sandbox& row, const std::optional<machine::Machine>& found) {
  const bool shall_run = row.state == SandboxState::kRunning;
  const bool shall_stand = row.state == SandboxState::kPaused || row.state == SandboxState::kError;
  if (!found && (shall_run || row.state == SandboxState::kPaused)) {
    return StartChore(row, [this](const Sandbox& fresh) { Settle(fresh, std::nullopt); });
  }
  if (!found) return;
  if (shall_run && found->state == machine::State::kStopped) {
    return StartChore(row, [this](const Sandbox& fresh) {
      CountTraffic(fresh);
      static_cast<void>(Move(fresh.id, SandboxEvent::kStopped, [&](Sandbox& sandbox) {
        sandbox.failure = "its processes were ended from outside; resume starts it again";
      }));
    });
  }
  if (shall_stand && found->state == machine::State::kRunning) {
    return StartChore(row, [this](const Sandbox& fresh) {
      static_cast<void>(HoldStill(fresh));
      CountTraffic(fresh);
    });
  }
}

// Machines whose agent was killed or that vanished, and those that no row knows.
void Sandboxes::LookForTheLost() {
  // In this order: what a row says has its machine then has it in the list too, or is changed.
  auto rows = store_.Read([&](store::Rows& store_rows) {
    return store_rows.Sandboxes({.host = options_.host,
                                 .states = {std::begin(kLive), std::end(kLive)},
                                 .with_pooled = true});
  });
  if (!rows) return;
  auto orphans = ListMachines(drivers_);
  if (!orphans) return;  // the helper is away: no verdict
  for (const Sandbox& row : *rows) {
    const auto driver = orphans->find(row.driver);
    if (driver == orphans->end()) continue;
    const auto machine = driver->second.extract(row.id);
    LookAt(row, machine ? std::optional(machine.mapped()) : std::nullopt);
  }
  for (const auto& [driver, left] : *orphans) {
    for (const auto& [id, machine] : left) {
      chores_.Start(id, [this, driver, id] { DestroyIfNobodys(driver, id); });
    }
  }
}

void Sandboxes::DestroyIfNobodys(const std::string& driver, const std::string& id) {
  if (IsReserved(id)) return;
  const KeyedLocks::Held held(locks_, id, std::try_to_lock);
  if (!held) return;
  const auto row = store_.Read([&](store::Rows& rows) { return rows.FindSandbox(id); });
  if (row && (!*row || IsTerminal((*row)->state) || (*row)->driver != driver)) {
    static_cast<void>(drivers_.Of(driver).Destroy(id));
  }
}

Sandboxes::Reserved::Reserved(Sandboxes& sandboxes, std::string id)
    : sandboxes_(sandboxes), id_(std::move(id)) {
  const std::lock_guard lock(sandboxes_.reserved_mutex_);
  sandboxes_.reserved_.insert(id_);
}
Sandboxes::Reserved::~Reserved() {
  const std::lock_guard lock(sandboxes_.reserved_mutex_);
  sandboxes_.reserved_.erase(id_);
}
bool Sandboxes::IsReserved(const std::string& id) {
  const std::lock_guard lock(reserved_mutex_);
  return reserved_.contains(id);
}

// Of what may run: what is paused was counted when it was.
void Sandboxes::CountAllTraffic() {
  auto rows = store_.Read([&](store::Rows& store_rows) {
    return store_rows.Sandboxes({.host = options_.host,
                                 .states = {SandboxState::kRunning, SandboxState::kPausing,
                                            SandboxState::kResuming, SandboxState::kError},
                                 .with_pooled = true});
  });
  if (!rows) return;
  for (const Sandbox& row : *rows) {
    StartChore(row, [this](const Sandbox& fresh) { CountTraffic(fresh); });
  }
}

void Sandboxes::Forget() {
  const Milliseconds now = Now();
  static_cast<void>(store_.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_TRY(rows.PurgeSandboxes(options_.host, now - options_.keep_tombstones));
    CAISSON_TRY(rows.PurgeEvents(now - kKeepEvents));
    CAISSON_TRY(rows.PurgeAudit(now - options_.keep_audit));
    return rows.PurgeIdempotency(now - kKeepIdempotency);
  }));
}

void Sandboxes::Tend() {
  auto rows = store_.Read([&](store::Rows& store_rows) {
    return store_rows.Sandboxes({.host = options_.host,
                                 .states = {std::begin(kLive), std::end(kLive)},
                                 .with_pooled = true});
  });
  if (rows) {
    for (const Sandbox& row : *rows) TendOne(row);
    chores_.Await(options_.tend_patience);
    std::set<std::string_view> wishes;
    for (const Sandbox& row : *rows) {
      if (row.delete_at) wishes.insert(row.id);
    }
    std::erase_if(deadlines_, [&](const auto& entry) { return !wishes.contains(entry.first); });
  }
  ++rounds_;
  if (rounds_ % kRoundsBetweenLooks == 0) {
    LookForTheLost();
    chores_.Await(options_.tend_patience);
    CountAllTraffic();
    chores_.Await(options_.tend_patience);
  }
  neighbours_.Tell(rounds_ % kRoundsBetweenPurges == 0);
  if (rounds_ % kRoundsBetweenPurges == 0) Forget();
  tended_at_ = options_.steady();
}

}  // namespace caisson::control
