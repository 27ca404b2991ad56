// SPDX-License-Identifier: Apache-2.0
#include "block/settler.h"

#include <algorithm>
#include <utility>

#include "block/list_pieces.h"
#include "errors/block.h"
#include "json/reader.h"
#include "json/scanner.h"
#include "json/writer.h"

namespace caisson::block {
namespace {

using isolate::Fault;
using isolate::MessageKind;
using isolate::ScriptMessage;
using isolate::ScriptOutcome;

constexpr std::size_t kMaxGuestDepth = 1000;
constexpr std::size_t kMaxWarningBytes = 64u << 10;
// One text cannot hold more; the run's limit on output has cut it before.
constexpr json::ReadOptions kGuestJson = {.max_bytes = std::size_t{1} << 40,
                                          .max_depth = kMaxGuestDepth};

// Line ends stand between tokens only, where a blank says the same.
std::string WithoutLineEnds(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
  return line;
}

// A guest's text, checked; `storage` keeps it when it had to be written anew.
struct GuestText {
  std::string storage;
  ScannedText scanned;
};

Result<void> Check(std::string_view text, std::size_t piece_bytes, GuestText& guest) {
  CAISSON_ASSIGN(guest.scanned, ScanInPieces(text, piece_bytes, kGuestJson));
  if (!guest.scanned.report.has_line_end) return {};
  guest.storage = WithoutLineEnds(text);
  CAISSON_ASSIGN(guest.scanned, ScanInPieces(guest.storage, piece_bytes, kGuestJson));
  return {};
}

// The bytes at the end of `text` that begin a character whose rest may still come.
std::size_t UnfinishedBytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

std::string_view LimitOf(Fault fault) {
  switch (fault) {
    case Fault::kMemory:
      return "memory_bytes";
    case Fault::kWallClock:
      return "wall_ms";
    case Fault::kFuel:
    case Fault::kCpu:
      return "cpu_ms";
    case Fault::kOutput:
      return "output_bytes";
    case Fault::kMessages:
      return "messages";
    default:
      return {};
  }
}

ErrorCode CodeOf(Fault fault) {
  if (!LimitOf(fault).empty()) return errors::kBlockLimit;
  switch (fault) {
    case Fault::kRaised:
      return errors::kBlockRaised;
    case Fault::kSyntax:
      return errors::kBlockSyntax;
    case Fault::kExited:
      return errors::kBlockExited;
    case Fault::kProtocol:
      return errors::kBlockProtocol;
    default:
      return errors::kBlockRuntimeFailed;
  }
}

std::string DefaultMessage(Fault fault, int exit_code) {
  if (const std::string_view limit = LimitOf(fault); !limit.empty()) {
    return "the script hit its limit " + std::string(limit);
  }
  switch (fault) {
    case Fault::kExited:
      return "the script exited with code " + std::to_string(exit_code);
    case Fault::kProtocol:
      return "the script sent something that is no message of a block";
    case Fault::kKilled:
      return "the process that ran the script died";
    default:
      return "the interpreter of the script failed";
  }
}

BlockError ErrorOfOutcome(const ScriptOutcome& ended) {
  BlockError error{.code = CodeOf(ended.fault),
                   .message = ended.message.empty() ? DefaultMessage(ended.fault, ended.exit_code)
                                                    : ended.message,
                   .type = ended.error_type,
                   .line = ended.line,
                   .column = ended.column,
                   .frames = ended.traceback,
                   .traceback = ended.traceback_text,
                   .limit = LimitOf(ended.fault)};
  if (ended.fault == Fault::kExited) error.exit_code = ended.exit_code;
  return error;
}

BlockError Cancelled() {
  return {.code = errors::kBlockCancelled, .message = "the run was cancelled"};
}

SettledBy SettledByError(const BlockError& error) {
  if (error.code == errors::kBlockLimit) return SettledBy::kLimit;
  if (error.code == errors::kBlockCancelled) return SettledBy::kCancel;
  return SettledBy::kError;
}

// The members of a warning that are known, or nothing when it is none.
std::optional<std::string> WarningMembers(std::string_view text) {
  auto value = json::Read(text, {.max_bytes = kMaxWarningBytes, .max_depth = 8});
  if (!value || !value->is_object()) return std::nullopt;
  json::Object known;
  for (const char* name : {"code", "message", "path"}) {
    const json::Value* member = value->Find(name);
    if (member == nullptr && std::string_view(name) == "path") continue;
    if (member == nullptr || !member->is_string()) return std::nullopt;
    known.Set(name, *member);
  }
  auto written = json::Write(known);
  if (!written) return std::nullopt;
  return written->substr(1, written->size() - 2);
}

}  // namespace

bool Settler::Take(const ScriptMessage& message) {
  if (stopped_ || !Count(message)) return false;
  switch (message.kind) {
    case MessageKind::kDone:
      return TakeDone(message);
    case MessageKind::kPart:
      return TakePart(message.text);
    case MessageKind::kDebug:
      return TakeDebug(message.text);
    case MessageKind::kWarning:
      return TakeWarning(message.text);
    case MessageKind::kStdout:
    case MessageKind::kStderr:
      return TakeStream(message);
  }
  return BreakProtocol("a message of a kind that does not exist");
}

// The runtime counts too; what it reports as delivered must not depend on that alone.
bool Settler::Count(const ScriptMessage& message) {
  if (message.kind == MessageKind::kStdout || message.kind == MessageKind::kStderr) return true;
  if (message.kind == MessageKind::kWarning) return true;
  BlockUsage& usage = outcome_.usage;
  ++usage.messages;
  usage.output_bytes += message.text.size();
  if (limits_.messages != 0 && usage.messages > limits_.messages) {
    return ExceedLimit(
        "messages", "the script sent more than " + std::to_string(limits_.messages) + " messages");
  }
  if (limits_.output_bytes != 0 && usage.output_bytes > limits_.output_bytes) {
    return ExceedLimit("output_bytes", "the script produced more than " +
                                           std::to_string(limits_.output_bytes) +
                                           " bytes of output");
  }
  return true;
}

bool Settler::TakeDone(const ScriptMessage& message) {
  if (closed_) {
    ++outcome_.dropped.done;
    return true;
  }
  GuestText guest;
  auto checked = Check(message.text, options_.max_part_bytes, guest);
  if (!checked) return BreakProtocol("a result that is no JSON (" + checked.error().message + ")");
  const json::ScanReport& report = guest.scanned.report;
  const auto& pieces = guest.scanned.pieces;
  const bool is_list = report.kind == json::Value::Kind::kArray;
  if (open_parts_ != 0 && !is_list) return BreakProtocol("parts of a list that is none");

  Delivery done{.text = report.text, .final = message.final};
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (!DeliverPart(pieces[i])) return false;
  }
  if (open_parts_ != 0) done.text = pieces.empty() ? std::string_view{} : pieces.back();
  done.parts = std::exchange(open_parts_, 0);
  if (!Deliver(done)) return false;
  ++outcome_.results;
  closed_ = message.final;
  return true;
}

bool Settler::TakePart(std::string_view text) {
  if (closed_) {
    ++outcome_.dropped.parts;
    return true;
  }
  GuestText guest;
  auto checked = Check(text, options_.max_part_bytes, guest);
  if (!checked) return BreakProtocol("a part that is no JSON (" + checked.error().message + ")");
  if (guest.scanned.report.kind != json::Value::Kind::kArray) {
    return BreakProtocol("a part that is no list");
  }
  return std::ranges::all_of(guest.scanned.pieces,
                             [this](std::string_view piece) { return DeliverPart(piece); });
}

bool Settler::TakeDebug(std::string_view text) {
  if (closed_ || !options_.debug) {
    ++outcome_.dropped.debug;
    return true;
  }
  GuestText guest;
  auto checked = Check(text, std::string_view::npos, guest);
  if (!checked) {
    return BreakProtocol("a debug value that is no JSON (" + checked.error().message + ")");
  }
  return Deliver({.kind = DeliveryKind::kDebug, .text = guest.scanned.report.text});
}

bool Settler::TakeWarning(std::string_view text) {
  if (closed_) {
    ++outcome_.dropped.warning;
    return true;
  }
  const auto members = WarningMembers(text);
  if (!members) return BreakProtocol("a warning without code and message");
  return Deliver({.kind = DeliveryKind::kWarning, .text = *members});
}

bool Settler::TakeStream(const ScriptMessage& message) {
  return message.kind == MessageKind::kStdout
             ? DeliverStream(DeliveryKind::kStdout, stdout_tail_, message.text)
             : DeliverStream(DeliveryKind::kStderr, stderr_tail_, message.text);
}

bool Settler::DeliverStream(DeliveryKind kind, std::string& tail, std::string_view text) {
  std::string joined;
  if (!tail.empty()) {
    joined = std::exchange(tail, {}).append(text);
    text = joined;
  }
  const std::size_t unfinished = UnfinishedBytes(text);
  tail = text.substr(text.size() - unfinished);
  text.remove_suffix(unfinished);
  while (!text.empty()) {
    std::string_view piece = text.substr(0, options_.max_part_bytes);
    if (piece.size() < text.size()) piece.remove_suffix(UnfinishedBytes(piece));
    if (!Deliver({.kind = kind, .text = piece})) return false;
    text.remove_prefix(piece.size());
  }
  return true;
}

// What never became a character goes out as it is.
bool Settler::FlushStreams() {
  for (auto [kind, tail] : {std::pair{DeliveryKind::kStdout, &stdout_tail_},
                            std::pair{DeliveryKind::kStderr, &stderr_tail_}}) {
    if (!tail->empty() && !Deliver({.kind = kind, .text = *tail})) return false;
    tail->clear();
  }
  return true;
}

bool Settler::DeliverPart(std::string_view items) {
  if (!Deliver({.kind = DeliveryKind::kPart, .text = items})) return false;
  ++open_parts_;
  return true;
}

bool Settler::Deliver(const Delivery& delivery) {
  switch (receiver_.Take(delivery)) {
    case Taken::kYes:
      return true;
    case Taken::kGone:
      stopped_ = Cancelled();
      return false;
    case Taken::kTooLate:
      return ExceedLimit("wall_ms",
                         "the time of the run was over while it waited for the reader "
                         "of its results");
  }
  return false;
}

bool Settler::BreakProtocol(const std::string& problem) {
  stopped_ = BlockError{.code = errors::kBlockProtocol,
                        .message = "the script sent " + problem + "; done and debug never do"};
  return false;
}

bool Settler::ExceedLimit(std::string_view limit, const std::string& what) {
  stopped_ = BlockError{.code = errors::kBlockLimit, .message = what, .limit = limit};
  return false;
}

BlockOutcome Settler::Settle(const Result<ScriptOutcome>& ended, bool cancelled) {
  if (!stopped_ && !cancelled) (void)FlushStreams();
  Measure(ended);
  outcome_.dropped.parts += std::exchange(open_parts_, 0);
  std::optional<BlockError> error = ErrorOf(ended, cancelled);
  if (closed_) {
    outcome_.settled_by = SettledBy::kFinalDone;
    outcome_.late_error = std::move(error);
  } else if (error) {
    outcome_.settled_by = SettledByError(*error);
    outcome_.error = std::move(error);
  } else {
    outcome_.settled_by = SettledBy::kEnd;
  }
  return std::move(outcome_);
}

std::optional<BlockError> Settler::ErrorOf(const Result<ScriptOutcome>& ended,
                                           bool cancelled) const {
  if (stopped_) return stopped_;
  if (cancelled && (!ended || ended->fault == Fault::kKilled)) return Cancelled();
  if (!ended) return BlockError{.code = ended.error().code, .message = ended.error().message};
  const bool clean_exit = ended->fault == Fault::kExited && ended->exit_code == 0;
  if (ended->ok() || clean_exit) return std::nullopt;
  return ErrorOfOutcome(*ended);
}

void Settler::Measure(const Result<ScriptOutcome>& ended) {
  if (!ended) return;
  outcome_.usage.wall = ended->usage.wall;
  outcome_.usage.cpu = ended->cpu;
  outcome_.usage.peak_memory_bytes = ended->usage.memory_bytes;
  outcome_.dropped.done += ended->late_done;
  outcome_.dropped.debug += ended->late_debug;
  outcome_.dropped.stdout_bytes = ended->stdout_dropped;
  outcome_.dropped.stderr_bytes = ended->stderr_dropped;
}

}  // namespace caisson::block
