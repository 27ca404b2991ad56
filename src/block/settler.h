// SPDX-License-Identifier: Apache-2.0
// The settling rules of a block (docs/blocks.md): results are delivered as they are produced; the
// run settles once, by the first final done, the end of the script, an error, a limit or a cancel;
// the first final done closes the channel. Whatever a guest sends is checked before it is handed
// on. One settler per run, used by the thread of the run alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "block/outcome.h"
#include "block/receiver.h"
#include "isolate/script.h"

namespace caisson::block {

inline constexpr std::size_t kMaxPartBytes = 256u << 10;

struct SettleOptions {
  bool debug = true;                           // false: debug values are counted, not delivered
  std::size_t max_part_bytes = kMaxPartBytes;  // lists with more text are delivered in parts
};

class Settler final : public isolate::ScriptSink {
 public:
  Settler(const isolate::ScriptLimits& limits, const SettleOptions& options, Receiver& receiver)
      : limits_(limits), options_(options), receiver_(receiver) {}

  bool Take(const isolate::ScriptMessage& message) override;

  // Once, when the runtime has returned; `cancelled`: it had been asked to stop.
  BlockOutcome Settle(const Result<isolate::ScriptOutcome>& ended, bool cancelled);

 private:
  bool Count(const isolate::ScriptMessage& message);
  bool TakeDone(const isolate::ScriptMessage& message);
  bool TakePart(std::string_view text);
  bool TakeDebug(std::string_view text);
  bool TakeWarning(std::string_view text);
  bool TakeStream(const isolate::ScriptMessage& message);
  bool FlushStreams();

  bool DeliverStream(DeliveryKind kind, std::string& tail, std::string_view text);
  bool DeliverPart(std::string_view items);
  bool Deliver(const Delivery& delivery);

  bool BreakProtocol(const std::string& problem);
  bool ExceedLimit(std::string_view limit, const std::string& what);

  std::optional<BlockError> ErrorOf(const Result<isolate::ScriptOutcome>& ended,
                                    bool cancelled) const;
  void Measure(const Result<isolate::ScriptOutcome>& ended);

  const isolate::ScriptLimits limits_;
  const SettleOptions options_;
  Receiver& receiver_;

  bool closed_ = false;                // the final done was delivered
  std::optional<BlockError> stopped_;  // why the run was ended from here
  std::uint64_t open_parts_ = 0;       // delivered, their done still to come
  std::string stdout_tail_;            // the beginning of a character
  std::string stderr_tail_;
  BlockOutcome outcome_;
};

}  // namespace caisson::block
