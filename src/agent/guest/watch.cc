// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/watch.h"

#include <optional>
#include <utility>

#include "agent/guest/agent.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostMissed = 8;
constexpr milliseconds kBetween{1000};
constexpr milliseconds kHeartbeat{10'000};

class WatchOperation final : public Operation, private Watcher {
 public:
  explicit WatchOperation(HostConnection& connection)
      : Operation(connection),
        again_(connection.agent().loop, [this] { TellActivity(); }),
        heartbeat_(connection.agent().loop, [this] { Beat(); }) {
    connection.Send(FrameType::kOk, {});
    connection.agent().watchers.Add(this);
    TellActivity();
    heartbeat_.Set(kHeartbeat);
  }
  ~WatchOperation() override { connection_.agent().watchers.Remove(this); }
  void OnSent() override { OnActivity(); }

 private:
  void OnSelf(const SelfRequest& request) override {
    connection_.SendMessage(FrameType::kSelf, request);
  }
  void OnActivity() override {
    if (!again_.is_set()) again_.Set(kBetween);
  }
  void TellActivity() {
    const Activity now = connection_.agent().Measure();
    if (connection_.congested() || told_ == now) return;
    told_ = now;
    connection_.SendMessage(FrameType::kActivity, now);
  }
  void Beat() {
    if (!connection_.congested()) connection_.Send(FrameType::kHeartbeat, {});
    heartbeat_.Set(kHeartbeat);
  }

  std::optional<Activity> told_;
  Timer again_;
  Timer heartbeat_;
};

}  // namespace

void Watchers::Add(Watcher* watcher) {
  watchers_.insert(watcher);
  for (const SelfRequest& request : std::exchange(missed_, {})) watcher->OnSelf(request);
}

void Watchers::TellSelf(const SelfRequest& request) {
  for (Watcher* watcher : watchers_) watcher->OnSelf(request);
  if (watchers_.empty() && missed_.size() < kMostMissed) missed_.push_back(request);
}

void Watchers::NoteActivity() {
  for (Watcher* watcher : watchers_) watcher->OnActivity();
}

std::unique_ptr<Operation> BeginWatch(HostConnection& connection) {
  return std::make_unique<WatchOperation>(connection);
}

}  // namespace caisson::agent::guest
