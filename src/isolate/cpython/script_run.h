// SPDX-License-Identifier: Apache-2.0
// One run of a script: what the guest sends, counted and passed on, and why it ended. The guest's
// word is never taken for more than its own: limits and the end are found here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "isolate/cpython/guest.h"
#include "isolate/cpython/layout.h"
#include "isolate/script.h"

namespace caisson::isolate::cpython {

// What a guest is given when it asks for its job (runtimes/python/caisson_host.py). Fails as
// json::Read does on inputs that are no JSON.
Result<std::string> EncodeJob(const ScriptJob& job);

class ScriptRun final : public GuestSystem {
 public:
  // `job_text`: of EncodeJob. All others outlive the run itself, not this object.
  ScriptRun(const GuestFiles& files, const ScriptJob& job, std::string job_text, ScriptSink& sink,
            const std::function<bool()>& cancelled);

  // After the guest's call has ended.
  ScriptOutcome Finish(const GuestCall& call, const Guest& guest);

  std::optional<std::string> HostCall(std::string_view request) override;
  bool MayGoOn() override;

 private:
  using Clock = std::chrono::steady_clock;

  bool TakeMessage(MessageKind kind, bool final, std::string_view text);
  bool TakeReport(std::string_view text);
  void TakeOutput(MessageKind kind, std::string_view text);
  bool Deliver(const ScriptMessage& message);
  // False, so that a caller can return it.
  bool Stop(Fault fault, std::string message);
  std::chrono::nanoseconds TimeLeft() const;
  std::chrono::nanoseconds CpuUsed() const;
  void Explain(const GuestCall& call, const Guest& guest);
  void ExplainMemory();
  void JudgeMemory(bool was_refused);

  const ScriptJob* job_;
  std::string job_text_;
  ScriptSink* sink_;
  const std::function<bool()>* cancelled_;
  const Clock::time_point start_ = Clock::now();
  const std::chrono::nanoseconds cpu_at_start_;
  Clock::time_point deadline_;
  std::uint64_t messages_ = 0;
  std::uint64_t stream_bytes_[2] = {0, 0};
  bool settled_ = false;   // a final result was delivered; nothing after it counts
  bool reported_ = false;  // the harness said how the script ended
  bool stopped_ = false;   // by us; the outcome says why
  ScriptOutcome outcome_;
};

}  // namespace caisson::isolate::cpython
