// SPDX-License-Identifier: Apache-2.0
// Pools: machines of one tenant that are made before somebody asks for them, all of one definition.
// Each is handed out once, by Sandboxes::Create, and never comes back. This fills them, looks after
// what waits, and empties those that nobody uses. Waiting machines are rows of the store that count
// as the tenant's, and that nobody but the pool can reach. Thread-safe.
//
// After a restart what waited waits on; what was being made is gone, and is made anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "control/chores.h"
#include "control/pool_definition.h"
#include "control/sandboxes.h"
#include "store/store.h"

namespace caisson::control {

inline constexpr std::int64_t kMostPoolSize = 100;
inline constexpr std::size_t kMostPools = 100;  // of one tenant
inline constexpr std::int64_t kMostIdleSeconds = std::int64_t{366} * 86400;

struct PoolRequest {
  PoolDefinition definition;
  std::int64_t size = 0;
  std::int64_t idle_seconds = 3600;
};

struct PoolView {
  store::Pool row;
  PoolDefinition definition;
  std::int64_t ready = 0;
  std::int64_t making = 0;
  std::string error;  // why one could not be made the last time; empty: it could
};

class Pools {
 public:
  // `round`: how long between two looks at everything; what is taken is replaced at once. Zero: no
  // thread looks, and a test calls Tend.
  explicit Pools(Sandboxes& sandboxes, std::chrono::milliseconds round = std::chrono::seconds(1));
  // What is being made is broken off.
  ~Pools();

  struct Defined {
    PoolView view;
    bool is_new = false;  // there was none of the name
  };
  // The pool of that name as the request says: with another sandbox or warm process than before it
  // is another pool, of which nothing waits yet; with another size or time alone it is the same.
  // Fails as Sandboxes::Create does before it makes anything, with control.bad_pool and
  // control.quota; the details are the JSON path of the field.
  Result<Defined> Put(const Caller& caller, const std::string& name, const PoolRequest& request);
  Result<PoolView> Get(const Caller& caller, const std::string& name);
  Result<std::vector<PoolView>> List(const Caller& caller);
  // What waits in it is destroyed; what was handed out is left alone.
  Result<void> Delete(const Caller& caller, const std::string& name);

  // One look at everything: begins to make what lacks and to destroy what is too much.
  void Tend();
  // Waits for what has been begun; for tests.
  void Await(std::chrono::milliseconds patience);

 private:
  // Of one definition, as long as this program runs.
  struct Live {
    std::int64_t making = 0;
    int failures = 0;             // one after the other
    Milliseconds not_before = 0;  // by the steady clock
    std::string error;
    Milliseconds used_at = 0;  // as the row says, and
    Milliseconds used = 0;     // when that was by the steady clock
    Milliseconds checked = 0;
  };

  void TendOne(const store::Pool& pool, const std::vector<Sandbox>& waiting);
  void StartMaking(const store::Pool& pool, std::int64_t count);
  void MakeOne(const store::Pool& pool);
  void CheckOne(const store::Pool& pool, const Sandbox& waiting);
  void Failed(const std::string& id, const std::string& why);
  bool IsIdle(const store::Pool& pool, Live& live);
  void StartRetiring(const Sandbox& waiting);
  Result<std::vector<Sandbox>> Waiting(const std::optional<std::string>& tenant);
  PoolView ViewOf(store::Pool row, const std::vector<Sandbox>& waiting);
  Result<void> CheckRoom(store::Rows& rows, const store::Pool& pool, const Sandbox& one,
                         const HostNow& host);
  void Wake();

  Sandboxes& sandboxes_;
  store::Store& store_;
  std::stop_source stop_;

  std::mutex mutex_;  // all below
  std::condition_variable_any woken_;
  bool is_woken_ = false;
  std::map<std::string, Live> live_;
  std::map<std::string, std::int64_t> making_by_tenant_;
  std::uint64_t made_ = 0;  // for names of chores

  Chores makers_;
  Chores others_;
  std::jthread thread_;  // ends first
};

}  // namespace caisson::control
