// SPDX-License-Identifier: Apache-2.0
// The life of sandboxes over the drivers of machines. Every transition is written to the store
// before it is acted on, so that whoever comes after a crash knows what was under way. Operations
// on one sandbox follow one another; reading never waits. Thread-safe.
//
// What a caller does not own does not exist for him (control.not_found). Fails also with what the
// driver says, as control.machine or control.full.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "control/activity.h"
#include "control/admission.h"
#include "control/chores.h"
#include "control/drivers.h"
#include "control/identity.h"
#include "control/keyed_lock.h"
#include "control/neighbours.h"
#include "control/pool_definition.h"
#include "control/requests.h"
#include "control/states.h"
#include "control/warm_process.h"
#include "egress/policy.h"
#include "machine/driver.h"
#include "store/store.h"

namespace caisson::control {

using store::Milliseconds;
using store::Sandbox;

struct RootImage {
  std::string name;  // "devbox:1"
  std::string description;
  std::string image;  // id in the image store
};

Milliseconds ReadSteadyClock();

struct SandboxesOptions {
  std::string host = "local";  // which rows are ours
  std::string region = "local";
  std::string default_rootfs = "devbox:1";
  HostCapacity capacity;
  std::int64_t max_disk_mib = 1 << 20;
  std::uint64_t pids = 4096;
  Milliseconds keep_tombstones = Milliseconds{15} * 60'000;
  Milliseconds keep_audit = Milliseconds{90} * 24 * 3600'000;
  // What can be asked for as rootfs beside templates.
  std::function<Result<std::vector<RootImage>>()> catalogue;
  std::function<HostNow()> host_now;
  std::function<Milliseconds()> now;  // the wall clock, for what is shown and stored
  // How long one round of Tend waits for what it has begun. What takes longer goes on beside it.
  std::chrono::milliseconds tend_patience{500};
  // Inside of machines, where they find the names of those that they share networks with.
  std::string hosts_file = "/etc/hosts";
  // A clock that never jumps, for how long something lasts; since any moment.
  std::function<Milliseconds()> steady = ReadSteadyClock;
  // True when the agent of a running machine answers.
  std::function<bool(machine::Driver& driver, const std::string& id)> answers;
  // What control/warm_process.h says, for tests without an agent.
  WarmUp warm_up = StartWarmProcess;
  WarmCheck warm_check = CheckWarmProcess;
};

struct Made {
  Sandbox sandbox;
  std::string ingress_token;  // shown once; empty when there is no new one
  // Whether it was ready in the pool that it was taken from; empty: it is of none.
  std::optional<bool> was_ready = {};
};

struct FoundOrMade {
  Made made;
  bool is_new = false;
};

struct InUse {
  Sandbox sandbox;
  Use use;
};

class Sandboxes {
 public:
  Sandboxes(SandboxesOptions options, store::Store& store, Drivers drivers);

  Result<Made> Create(const Caller& caller, const CreateRequest& request,
                      const Repeatable& repeatable = {});
  // The living sandbox of the request's name, running, or a new one. Of several callers one makes
  // it and all get it. Labels, auto-pause and the time of deletion of the request are given to what
  // is found; it must agree with all else that the request says, else control.differs.
  Result<FoundOrMade> FindOrCreate(const Caller& caller, const CreateRequest& request);
  // What waits in a pool is nobody's: this and all that follows knows only what was handed out.
  Result<Sandbox> Get(const Caller& caller, const std::string& id);
  Result<Sandbox> GetByIp(const Caller& caller, const std::string& ip);
  Result<std::vector<Sandbox>> List(const Caller& caller, store::SandboxFilter filter,
                                    std::int64_t& total);
  Result<Sandbox> Pause(const Caller& caller, const std::string& id);
  Result<Sandbox> Resume(const Caller& caller, const std::string& id);
  Result<Made> Fork(const Caller& caller, const std::string& parent, const ForkRequest& request,
                    const Repeatable& repeatable = {});
  Result<Sandbox> Delete(const Caller& caller, const std::string& id);
  Result<Made> Patch(const Caller& caller, const std::string& id, const PatchRequest& request);
  Result<Sandbox> Resize(const Caller& caller, const std::string& id, std::int64_t disk_mib);
  Result<Sandbox> SetEgress(const Caller& caller, const std::string& id,
                            const std::vector<std::string>& rules);

  // A network of the tenant's by id or name (control/networks.h). Fails with control.state,
  // control.not_found, egress.bad_network, machine.unsupported; the old ones stand then.
  Result<Sandbox> Join(const Caller& caller, const std::string& id, const std::string& network);
  Result<Sandbox> Leave(const Caller& caller, const std::string& id, const std::string& network);
  // What was denied to it, and what its rules by name have let through (machine/driver.h).
  Result<egress::NetworkLog> ReadNetworkLog(const Sandbox& sandbox, std::uint64_t after);

  // The sandbox, running and held in use; fails with control.paused, control.state.
  Result<InUse> Hold(const Caller& caller, const std::string& id);
  // For a preview URL, which needs no key: only what has ingress switched on.
  Result<InUse> HoldForIngress(const std::string& id, std::string_view token);
  // A connection to the agent. A machine that turns out to be gone is control.lost.
  Result<os::UniqueFd> Connect(const Sandbox& sandbox);
  Result<machine::Stats> ReadStats(const Sandbox& sandbox);
  // With the counters brought up to date where the machine can be asked.
  Result<Sandbox> ReadBandwidth(const Caller& caller, const std::string& id);
  Result<Sandbox> Recharge(const Caller& caller, const std::string& id, std::int64_t add_bytes);

  // ---- for pools (control/pools.h)

  // What it is checked for as a request of its own. Fails as Create does before it makes anything.
  Result<Sandbox> TryOut(const Caller& caller, const CreateRequest& request);
  // A machine that waits in the pool, warm and ready; or, as `place` says, the one that others are
  // forked from, warm and paused. Fails as Create does, and with control.warm_failed.
  Result<Sandbox> MakeForPool(const store::Pool& pool, store::PoolPlace place,
                              const std::stop_token& stop);
  // Whether what waits is still fit to be handed out. Fails with what is wrong with it.
  Result<void> CheckWaiting(const Sandbox& sandbox);
  // Destroys what waits. What has been handed out meanwhile is left alone.
  void Retire(const std::string& id);
  // Called with the id of the pool after somebody has asked for one of its machines.
  void OnPoolUse(std::function<void(const std::string& pool)> told) {
    pool_used_ = std::move(told);
  }

  Result<std::vector<RootImage>> Catalogue() const { return options_.catalogue(); }
  const SandboxesOptions& options() const { return options_; }
  const Drivers& drivers() const { return drivers_; }
  machine::Driver& DriverOf(const Sandbox& sandbox) const { return drivers_.Of(sandbox.driver); }
  // The rules as the sandbox's driver takes them.
  Result<egress::Policy> PolicyOf(const Sandbox& sandbox) const;
  store::Store& store() { return store_; }
  Activity& activity() { return activity_; }

  // As long as the result lives, a machine of this id belongs to somebody though no row says so.
  class Reserved {
   public:
    Reserved(Sandboxes& sandboxes, std::string id);
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;
    ~Reserved();

   private:
    Sandboxes& sandboxes_;
    std::string id_;
  };
  Reserved Reserve(const std::string& id) { return Reserved(*this, id); }

  // After start, before anything is served: takes over what lives, destroys what nobody owns, and
  // settles every row that was under way.
  Result<void> Adopt();
  // What has to be done from time to time: pausing what is idle, deleting what has had its time,
  // finding what has died, counting traffic, forgetting tombstones. Called about once a second, by
  // one thread. A sandbox that somebody changes is left to the next round, and no sandbox keeps the
  // others waiting.
  void Tend();
  // Milliseconds since Tend came to its end the last time, or since the start.
  std::int64_t SinceTended() const { return options_.steady() - tended_at_; }

  // Refuses what is new with control.draining from here on.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // Blocks until there may be events after `seq`, or `wait` is over.
  void AwaitEvents(std::int64_t seq, std::chrono::milliseconds wait);
  void Publish(const std::string& tenant, const std::string& sandbox, const std::string& type,
               const std::string& data);

 private:
  struct Plan;
  Milliseconds Now() const { return options_.now(); }
  Result<Plan> PlanCreate(const Caller& caller, const CreateRequest& request);
  Result<Plan> PlanFork(const Caller& caller, const Sandbox& parent, const ForkRequest& request);
  Result<PoolDefinition> DefinitionOf(const Caller& caller, const std::string& pool);
  Result<store::Pool> PoolOf(const Caller& caller, const std::string& name);
  Result<Made> CreateFromPool(const Caller& caller, const CreateRequest& request,
                              const Repeatable& repeatable);
  Result<std::optional<Made>> TakeReady(const Caller& caller, const store::Pool& pool,
                                        const Plan& plan, const Repeatable& repeatable);
  Result<std::optional<Sandbox>> HandOver(const Caller& caller, const store::Pool& pool,
                                          const Plan& plan, const Repeatable& repeatable,
                                          const Sandbox& waiting, bool& is_repeated);
  Result<machine::Machine> MakeMachine(const Plan& plan);
  Result<Made> Make(const Caller& caller, Plan& plan, const Repeatable& repeatable,
                    const std::function<Result<machine::Machine>()>& make);
  void PublishState(const Sandbox& sandbox);
  Result<machine::Machine> MakeWarm(Plan& plan, const std::optional<Warm>& warm,
                                    const std::stop_token& stop);
  Result<std::optional<Sandbox>> Enter(const Caller& caller, Plan& plan,
                                       const Repeatable& repeatable);
  Result<void> EnterRow(store::Rows& rows, Plan& plan, const HostNow& host);
  Result<std::optional<Sandbox>> FindRepeated(store::Rows& rows, const Caller& caller,
                                              const Repeatable& repeatable);
  Result<Sandbox> Boot(Plan& plan, const std::function<Result<machine::Machine>()>& make);
  Result<std::optional<Sandbox>> TakeUp(const Caller& caller, const CreateRequest& request,
                                        const std::string& id);
  Result<Sandbox> AwaitRepeated(const Caller& caller, const std::string& id);

  using Change = std::function<void(Sandbox&)>;
  Result<Sandbox> Move(const std::string& id, SandboxEvent event, const Change& change = {});
  Result<Sandbox> ChangeRow(const std::string& id,
                            const std::function<Result<void>(Sandbox&)>& change);
  Result<Sandbox> PauseHeld(Sandbox sandbox, bool only_when_idle);
  Result<Sandbox> ResumeHeld(const Sandbox& sandbox);
  Result<Sandbox> DeleteHeld(const Sandbox& sandbox);
  Result<void> ApplyNetwork(const Sandbox& sandbox);
  // Policy, cap and shared networks as the rows say: a service that was killed between a row and
  // the driver's call has left others.
  Result<void> ApplyNetworks(const Sandbox& sandbox);
  // The networks that it is in, by id.
  Result<std::set<std::string>> JoinedBy(const std::string& id);
  Result<Sandbox> ChangeMembership(const Caller& caller, const std::string& id,
                                   const std::string& network, bool shall_be_in);
  void CountTraffic(const Sandbox& of);
  // True when its machine does not run afterwards.
  bool HoldStill(const Sandbox& sandbox);

  void AdoptOne(const Sandbox& row, const std::optional<machine::Machine>& found);
  void Settle(const Sandbox& row, const std::optional<machine::Machine>& found);
  void Lose(const Sandbox& row, const std::string& why);
  void StandStill(const Sandbox& row, const machine::Machine& found, const std::string& why);
  // Does `work` with the row as it stands, unless it is of another revision by then or somebody has
  // it under way.
  using RowWork = std::function<void(const Sandbox& fresh)>;
  void StartChore(const Sandbox& row, RowWork work);
  void TendOne(const Sandbox& row);
  bool IsToBeDeleted(const Sandbox& row);
  void LookAt(const Sandbox& row, const std::optional<machine::Machine>& found);
  void LookForTheLost();
  void DestroyIfNobodys(const std::string& driver, const std::string& id);
  bool IsReserved(const std::string& id);
  void CountAllTraffic();
  void Forget();

  SandboxesOptions options_;
  store::Store& store_;
  const Drivers drivers_;
  Activity activity_;
  std::function<void(const std::string&)> pool_used_;
  KeyedLocks locks_;
  KeyedLocks names_;  // that FindOrCreate is asked for; taken before locks_
  std::atomic<bool> draining_ = false;
  std::int64_t rounds_ = 0;
  std::atomic<Milliseconds> tended_at_;
  // When what is to be deleted at a time of the wall clock has had its time by the steady one. Of
  // the thread that tends.
  struct Deadline {
    Milliseconds wish;
    Milliseconds steady;
  };
  std::map<std::string, Deadline> deadlines_;

  std::mutex reserved_mutex_;
  std::set<std::string> reserved_;

  std::mutex events_mutex_;
  std::condition_variable events_came_;
  std::int64_t newest_event_ = 0;

  // These end first: their threads use all above.
  Neighbours neighbours_;
  Chores chores_;
};

}  // namespace caisson::control
