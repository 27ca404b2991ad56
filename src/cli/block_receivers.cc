// SPDX-License-Identifier: Apache-2.0
#include "cli/block_receivers.h"

#include <string_view>
#include <utility>

#include "base/foreign_text.h"
#include "block/frames.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

using block::Delivery;
using block::DeliveryKind;
using block::Taken;

constexpr std::string_view kFrameId = "run";

void Join(std::string& list, std::string_view items) {
  if (items.empty()) return;
  if (!list.empty()) list += ',';
  list += items;
}

// The result that a done completes, as one JSON text.
std::string Complete(std::string& parts, const Delivery& done) {
  if (done.parts == 0) return std::string(done.text);
  std::string list = std::exchange(parts, {});
  Join(list, done.text);
  return "[" + std::move(list) + "]";
}

std::string WarningText(std::string_view members) {
  const auto warning = json::Read("{" + std::string(members) + "}");
  if (!warning) return std::string(members);
  const json::Value* path = warning->Find("path");
  std::string text = warning->Find("message")->as_string();
  if (path != nullptr) text = path->as_string() + ": " + text;
  return text + " [" + warning->Find("code")->as_string() + "]";
}

// Foreign text on lines of its own; print() ends its lines itself.
std::string Shown(std::string_view text) {
  const bool ends_line = text.ends_with('\n');
  if (ends_line) text.remove_suffix(1);
  return ShowForeign(text, "", text.size()) + (ends_line ? "\n" : "");
}

Taken AnswerOf(const Result<void>& printed) { return printed ? Taken::kYes : Taken::kGone; }

}  // namespace

Taken ResultPrinter::Take(const Delivery& delivery) {
  switch (delivery.kind) {
    case DeliveryKind::kDone:
      printed_ = PrintResult(delivery);
      return AnswerOf(printed_);
    case DeliveryKind::kPart:
      Join(parts_, delivery.text);
      break;
    case DeliveryKind::kDebug:
      if (debug_) console_.Say("debug: " + SafeJson(delivery.text) + "\n");
      break;
    case DeliveryKind::kWarning:
      console_.Warn(WarningText(delivery.text));
      break;
    case DeliveryKind::kStdout:
    case DeliveryKind::kStderr:
      console_.Say(Shown(delivery.text));
      break;
  }
  return Taken::kYes;
}

Result<void> ResultPrinter::PrintResult(const Delivery& delivery) {
  if (delivery.parts == 0) {
    CAISSON_TRY(console_.Print(SafeJson(delivery.text)));
  } else {
    CAISSON_TRY(console_.Print(SafeJson(Complete(parts_, delivery))));
  }
  return console_.Print("\n");
}

Result<void> ResultPrinter::Finish(const block::BlockOutcome& /*outcome*/) {
  return std::move(printed_);
}

Taken ReportPrinter::Take(const Delivery& delivery) {
  switch (delivery.kind) {
    case DeliveryKind::kDone:
      Join(results_, std::string("\n  {\"final\":") + (delivery.final ? "true" : "false") +
                         ",\"result\":" + Complete(parts_, delivery) + "}");
      break;
    case DeliveryKind::kPart:
      Join(parts_, delivery.text);
      break;
    case DeliveryKind::kDebug:
      Join(debug_, "\n  " + std::string(delivery.text));
      break;
    case DeliveryKind::kWarning:
      Join(warnings_, "\n  {" + std::string(delivery.text) + "}");
      break;
    case DeliveryKind::kStdout:
      stdout_ += delivery.text;
      break;
    case DeliveryKind::kStderr:
      stderr_ += delivery.text;
      break;
  }
  return Taken::kYes;
}

Result<void> ReportPrinter::Finish(const block::BlockOutcome& outcome) {
  CAISSON_TRY(console_.Print("{\"results\":["));
  CAISSON_TRY(console_.Print(SafeJson(results_)));
  CAISSON_TRY(console_.Print("],\n\"debug\":["));
  CAISSON_TRY(console_.Print(SafeJson(debug_)));
  CAISSON_TRY(console_.Print("],\n\"warnings\":["));
  CAISSON_TRY(console_.Print(SafeJson(warnings_)));
  return console_.Print("],\n\"stdout\":" + SafeJson(json::Quote(stdout_)) +
                        ",\n\"stderr\":" + SafeJson(json::Quote(stderr_)) + ",\n\"end\":{" +
                        SafeJson(block::EncodeOutcome(outcome)) + "}}\n");
}

Taken FramePrinter::Take(const Delivery& delivery) {
  const block::Line line = block::EncodeDelivery(kFrameId, delivery);
  for (const std::string_view text :
       {std::string_view(line.head), line.body, line.tail, std::string_view("\n")}) {
    if (printed_) printed_ = console_.Print(text);
  }
  return AnswerOf(printed_);
}

Result<void> FramePrinter::Finish(const block::BlockOutcome& outcome) {
  CAISSON_TRY(std::move(printed_));
  return console_.Print(block::EncodeEnd(kFrameId, outcome) + "\n");
}

}  // namespace caisson::cli
