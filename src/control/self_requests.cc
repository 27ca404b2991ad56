// SPDX-License-Identifier: Apache-2.0
#include "control/self_requests.h"

#include <poll.h>

#include <chrono>
#include <map>
#include <thread>

#include "agent/client.h"

namespace caisson::control {
namespace {

constexpr int kRoundMilliseconds = 500;
constexpr std::chrono::milliseconds kBetweenRounds{50};
// What has been said is there already: no waiting.
constexpr std::chrono::milliseconds kNoWait{0};

class Watches {
 public:
  explicit Watches(Sandboxes& sandboxes) : sandboxes_(sandboxes) {}

  // Begins with what runs now and leaves what does not.
  void Renew() {
    auto rows = sandboxes_.store().Read([&](store::Rows& store_rows) {
      return store_rows.Sandboxes({.host = sandboxes_.options().host,
                                   .states = {SandboxState::kRunning},
                                   .with_pooled = true});
    });
    if (!rows) return;
    std::map<std::string, Watched> kept;
    for (Sandbox& row : *rows) {
      const auto known = watched_.find(row.id);
      if (known != watched_.end()) {
        kept.insert(watched_.extract(known));
      } else if (auto watch = Begin(row)) {
        kept.emplace(row.id, Watched{.tenant = row.tenant, .watch = std::move(watch)});
      }
    }
    watched_ = std::move(kept);
  }

  void HearOneRound() {
    std::vector<pollfd> descriptors;
    std::vector<std::string> ids;
    for (const auto& [id, watched] : watched_) {
      descriptors.push_back({.fd = watched.watch->fd(), .events = POLLIN, .revents = 0});
      ids.push_back(id);
    }
    if (poll(descriptors.data(), descriptors.size(), kRoundMilliseconds) <= 0) return;
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      if (descriptors[i].revents != 0) Hear(ids[i]);
    }
  }

 private:
  struct Watched {
    std::string tenant;
    std::unique_ptr<agent::Watch> watch;
  };

  std::unique_ptr<agent::Watch> Begin(const Sandbox& row) {
    auto connection = sandboxes_.DriverOf(row).Connect(row.id);
    if (!connection) return nullptr;
    auto watch = agent::Watch::Start(*std::move(connection));
    return watch ? std::make_unique<agent::Watch>(*std::move(watch)) : nullptr;
  }

  // What waits in a pool asks in vain: it is the pool's until it is handed out.
  void Hear(const std::string& id) {
    const auto found = watched_.find(id);
    auto event = found->second.watch->Next(kNoWait);
    const Caller owner{.tenant = found->second.tenant, .actor = "the sandbox itself"};
    // Broken: begun anew at the next round when it still runs.
    if (!event || event->self) watched_.erase(found);
    if (!event || !event->self) return;
    if (event->self->action == agent::SelfAction::kDelete) {
      static_cast<void>(sandboxes_.Delete(owner, id));
    } else {
      static_cast<void>(sandboxes_.Pause(owner, id));
    }
  }

  Sandboxes& sandboxes_;
  std::map<std::string, Watched> watched_;
};

}  // namespace

void HearSelfRequests(Sandboxes& sandboxes, const std::stop_token& stop) {
  Watches watches(sandboxes);
  while (!stop.stop_requested()) {
    watches.Renew();
    watches.HearOneRound();
    // A guest that breaks its watch again and again must not keep this thread busy.
    std::this_thread::sleep_for(kBetweenRounds);
  }
}

}  // namespace caisson::control
