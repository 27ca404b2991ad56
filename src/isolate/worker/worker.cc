// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/worker.h"

#include <utility>

#include "errors/json.h"
#include "isolate/worker/frame.h"
#include "isolate/worker/pool.h"

namespace caisson::isolate {

WorkerRuntime::WorkerRuntime(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {}
WorkerRuntime::~WorkerRuntime() = default;

Result<std::unique_ptr<WorkerRuntime>> WorkerRuntime::Create(WorkerOptions options) {
  CAISSON_ASSIGN(std::unique_ptr<Pool> pool, Pool::Create(std::move(options)));
  return std::unique_ptr<WorkerRuntime>(new WorkerRuntime(std::move(pool)));
}

namespace {

Result<void> CheckSize(const EncodedJob& job) {
  constexpr std::size_t kRoomForTheRest = 4096;
  if (job.source.size() + job.payload.size() <= kMaxFrameBytes - kRoomForTheRest) return {};
  return Fail(errors::kJsonTooLarge,
              "A call's source and payload have " +
                  std::to_string(job.source.size() + job.payload.size()) +
                  " bytes, more than a worker takes (1 GiB); pass less state "
                  "to the node.");
}

}  // namespace

Result<EncodedOutcome> WorkerRuntime::CallEncoded(EncodedJob job) {
  CAISSON_TRY(CheckSize(job));
  return pool_->Call(std::move(job));
}

Result<Outcome> WorkerRuntime::Call(const Job& job) {
  CAISSON_ASSIGN(EncodedJob encoded, Encode(job));
  CAISSON_ASSIGN(EncodedOutcome outcome, CallEncoded(std::move(encoded)));
  return Decode(std::move(outcome));
}

void WorkerRuntime::Submit(EncodedJob job, Callback callback) {
  if (auto checked = CheckSize(job); !checked) {
    callback(Fail(std::move(checked).error()));
    return;
  }
  pool_->Submit(std::move(job), std::move(callback));
}

json::Value WorkerRuntime::Describe() const {
  const auto about = pool_->Describe();
  json::Object out;
  if (!about) {
    out.Set("error", about.error().message);
    return out;
  }
  if (about->describe.is_object()) out = about->describe.as_object();
  json::Array walls;
  for (const jail::WallReport& wall : about->walls) {
    json::Object entry;
    entry.Set("name", wall.name);
    entry.Set("stands", wall.stands);
    if (!wall.stands) entry.Set("reason", wall.reason);
    walls.push_back(std::move(entry));
  }
  out.Set("walls", std::move(walls));
  return out;
}

Result<std::vector<jail::WallReport>> WorkerRuntime::Walls() const {
  CAISSON_ASSIGN(auto about, pool_->Describe());
  return std::move(about.walls);
}

Result<void> WorkerRuntime::Warm() const {
  CAISSON_TRY(pool_->Describe());
  return {};
}

void WorkerRuntime::Shutdown() { pool_->Shutdown(); }

WorkerStats WorkerRuntime::Stats() const { return pool_->Stats(); }

}  // namespace caisson::isolate
