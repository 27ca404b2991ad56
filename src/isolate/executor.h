// SPDX-License-Identifier: Apache-2.0
// The half of a Runtime that deals in JSON text: what stands next to the guest, in this process or
// in a worker. A job's payload reaches it as it was encoded; whether the host or the guest parses
// it is the executor's affair. The caller's side encodes jobs and strictly decodes results, since a
// worker is not trusted.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "isolate/runtime.h"
#include "json/value.h"

namespace caisson::isolate {

struct EncodedJob {
  std::string source;   // as Job::source
  std::string payload;  // {"self":{...},"state":{...},"config":{...}}, compact UTF-8 JSON
  Limits limits;
};

struct EncodedOutcome {
  Outcome outcome;         // all but `value`
  std::string value_text;  // outcome.ok(): what the guest says is JSON; not yet checked
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Result<EncodedOutcome> Execute(const EncodedJob& job) = 0;  // thread-safe, blocks
  virtual json::Value Describe() const = 0;
};

// Fails with json.not_representable, naming the path, when a value has no JSON form.
Result<EncodedJob> Encode(const Job& job);
// Parses value_text strictly; what is no JSON object becomes Fault::kProtocol.
Outcome Decode(EncodedOutcome encoded);

// A Runtime over an Executor of this process. Owns it.
class LocalRuntime final : public Runtime {
 public:
  explicit LocalRuntime(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}
  Result<Outcome> Call(const Job& job) override;
  json::Value Describe() const override { return executor_->Describe(); }

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace caisson::isolate
