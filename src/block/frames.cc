// SPDX-License-Identifier: Apache-2.0
#include "block/frames.h"

#include "json/writer.h"

namespace caisson::block {
namespace {

std::string Head(std::string_view id, std::string_view type) {
  return "{\"id\":" + json::Quote(id) + ",\"type\":\"" + std::string(type) + "\"";
}

Line EncodeDone(std::string head, const Delivery& delivery) {
  head += std::string(",\"final\":") + (delivery.final ? "true" : "false") +
          ",\"parts\":" + std::to_string(delivery.parts) + ",\"result\":";
  if (delivery.parts == 0) return {std::move(head), delivery.text, "}"};
  return {std::move(head) + "[", delivery.text, "]}"};
}

}  // namespace

Line EncodeDelivery(std::string_view id, const Delivery& delivery) {
  switch (delivery.kind) {
    case DeliveryKind::kDone:
      return EncodeDone(Head(id, "done"), delivery);
    case DeliveryKind::kPart:
      return {Head(id, "part") + ",\"items\":[", delivery.text, "]}"};
    case DeliveryKind::kDebug:
      return {Head(id, "debug") + ",\"result\":", delivery.text, "}"};
    case DeliveryKind::kWarning:
      return {Head(id, "warning") + ",", delivery.text, "}"};
    case DeliveryKind::kStdout:
      return {Head(id, "stdout") + ",\"text\":" + json::Quote(delivery.text), {}, "}"};
    case DeliveryKind::kStderr:
      return {Head(id, "stderr") + ",\"text\":" + json::Quote(delivery.text), {}, "}"};
  }
  return {};
}

std::string EncodeAccepted(std::string_view id, std::string_view runtime) {
  return Head(id, "accepted") + ",\"runtime\":" + json::Quote(runtime) + "}";
}

std::string EncodeEnd(std::string_view id, const BlockOutcome& outcome) {
  return Head(id, "end") + "," + EncodeOutcome(outcome) + "}";
}

std::string EncodeRefusal(const RequestError& error, std::uint64_t line) {
  std::string text = R"({"type":"error")";
  if (!error.id.empty()) text += ",\"id\":" + json::Quote(error.id);
  if (!error.op.empty()) text += ",\"op\":" + json::Quote(error.op);
  text += ",\"line\":" + std::to_string(line) +
          ",\"error\":{\"code\":" + json::Quote(error.status.code.name) +
          ",\"message\":" + json::Quote(error.status.message);
  if (!error.path.empty()) text += ",\"path\":" + json::Quote(error.path);
  return text + "}}";
}

}  // namespace caisson::block
