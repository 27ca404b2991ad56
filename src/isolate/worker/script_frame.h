// SPDX-License-Identifier: Apache-2.0
// The frames of streaming runs: a job goes to the worker, messages come back while it runs, then
// its end. One run at a time. The decoders trust nothing; see isolate/worker/frame.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "isolate/script.h"
#include "isolate/worker/frame.h"

namespace caisson::isolate {

// The rest points into `job` (its inputs).
OutgoingFrame EncodeScriptJob(const ScriptJob& job);
std::string EncodeCancelScript();
// The rest is the message's text.
OutgoingFrame EncodeScriptMessage(const ScriptMessage& message);
std::string EncodeScriptEnd(const ScriptOutcome& outcome);
std::string EncodeScriptStatus(const Status& status);

// Empty: the bytes are not such a message.
std::optional<ScriptJob> DecodeScriptJob(std::string_view body);
std::optional<ScriptMessage> DecodeScriptMessage(std::string_view body);
std::optional<ScriptOutcome> DecodeScriptEnd(std::string_view body);
std::optional<Status> DecodeScriptStatus(std::string_view body);

// The most that a frame of a worker can have during a run with these limits.
std::uint64_t MaxScriptFrameBytes(const ScriptLimits& limits);

}  // namespace caisson::isolate
