// SPDX-License-Identifier: Apache-2.0
#include "host/message.h"

#include <utility>

#include "errors/host.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::host {
namespace {

std::unexpected<Status> Broken(const std::string& what) {
  return Fail(errors::kHostProtocol, "the node host sent what is no message: " + what);
}

Result<std::string> TextMember(const json::Value& object, std::string_view key,
                               std::size_t max_bytes) {
  const json::Value* value = object.Find(key);
  if (value == nullptr || !value->is_string()) {
    return Broken("$." + std::string(key) + " must be a text");
  }
  if (value->as_string().size() > max_bytes) {
    return Broken("$." + std::string(key) + " is longer than " + std::to_string(max_bytes) +
                  " bytes");
  }
  return value->as_string();
}

// At most `max_bytes` of it, cut between characters.
Result<std::string> CutText(const json::Value& object, std::string_view key,
                            std::size_t max_bytes) {
  CAISSON_ASSIGN(std::string text, TextMember(object, key, std::string::npos));
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

bool FlagMember(const json::Value& object, std::string_view key) {
  const json::Value* value = object.Find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

Result<const json::Array*> ListMember(const json::Value& object, std::string_view key,
                                      std::size_t max_items) {
  const json::Value* value = object.Find(key);
  if (value == nullptr || !value->is_array()) {
    return Broken("$." + std::string(key) + " must be a list");
  }
  if (value->as_array().size() > max_items) {
    return Broken("$." + std::string(key) + " has more than " + std::to_string(max_items) +
                  " items");
  }
  return &value->as_array();
}

Result<std::uint64_t> Id(const json::Value& object) {
  const json::Value* value = object.Find("id");
  if (value == nullptr || !value->is_int() || value->as_int() < 1 ||
      static_cast<std::uint64_t>(value->as_int()) > kMaxCallId) {
    return Broken("$.id must be the number of a call");
  }
  return static_cast<std::uint64_t>(value->as_int());
}

Result<ServedType> DecodeType(const json::Value& value) {
  ServedType type;
  CAISSON_ASSIGN(type.name, TextMember(value, "name", kMaxNameBytes));
  CAISSON_ASSIGN(type.category, TextMember(value, "category", kMaxNameBytes));
  if (type.name.empty()) return Broken("a type has no name");
  type.restricted = FlagMember(value, "restricted");
  CAISSON_ASSIGN(const json::Array* fields, ListMember(value, "fields", kMaxFields));
  type.fields.reserve(fields->size());
  for (const json::Value& field : *fields) {
    CAISSON_ASSIGN(std::string name, TextMember(field, "name", kMaxNameBytes));
    type.fields.push_back({std::move(name), FlagMember(field, "required")});
  }
  return type;
}

Result<Message> DecodeHello(const json::Value& value) {
  const json::Value* version = value.Find("protocol");
  if (version == nullptr || !version->is_int()) return Broken("$.protocol must be a number");
  if (version->as_int() != kProtocolVersion) {
    return Fail(errors::kHostVersion,
                "the node host speaks version " + std::to_string(version->as_int()) +
                    " of the protocol, and this program version " +
                    std::to_string(kProtocolVersion) +
                    "; install the caisson-orcheo that comes with this version of Caisson");
  }
  Hello hello;
  CAISSON_ASSIGN(hello.package, TextMember(value, "package", kMaxNameBytes));
  CAISSON_ASSIGN(const json::Array* types, ListMember(value, "types", kMaxTypes));
  hello.types.reserve(types->size());
  for (const json::Value& type : *types) {
    CAISSON_ASSIGN(ServedType served, DecodeType(type));
    hello.types.push_back(std::move(served));
  }
  return hello;
}

Result<Message> DecodeResult(const json::Value& value) {
  ResultMessage result;
  CAISSON_ASSIGN(result.id, Id(value));
  const json::Value* given = value.Find("value");
  if (given == nullptr) return Broken("$.value is missing");
  result.value = *given;
  return result;
}

Result<ErrorMessage::Kind> KindMember(const json::Value& value) {
  using Kind = ErrorMessage::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"config", Kind::kConfig},
      {"raised", Kind::kRaised},
      {"not_json", Kind::kNotJson},
      {"too_large", Kind::kTooLarge},
      {"unknown_type", Kind::kUnknownType},
      {"cancelled", Kind::kCancelled}};
  CAISSON_ASSIGN(const std::string name, TextMember(value, "kind", kMaxNameBytes));
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  return Broken("$.kind is none that is known");
}

Result<Message> DecodeError(const json::Value& value) {
  ErrorMessage error;
  CAISSON_ASSIGN(error.id, Id(value));
  CAISSON_ASSIGN(error.kind, KindMember(value));
  CAISSON_ASSIGN(error.error_type, CutText(value, "error_type", kMaxNameBytes));
  CAISSON_ASSIGN(error.message, CutText(value, "message", kMaxSaidBytes));
  return error;
}

Result<Message> DecodeLog(const json::Value& value) {
  LogMessage log;
  if (value.Find("id") != nullptr) {
    CAISSON_ASSIGN(log.id, Id(value));
  }
  CAISSON_ASSIGN(const std::string level, TextMember(value, "level", kMaxNameBytes));
  if (level == "warning") {
    log.level = nodes::LogLevel::kWarning;
  } else if (level == "error") {
    log.level = nodes::LogLevel::kError;
  } else if (level != "info") {
    return Broken("$.level must be info, warning or error");
  }
  CAISSON_ASSIGN(log.text, CutText(value, "text", kMaxSaidBytes));
  return log;
}

std::string Body(const json::Value& message) { return json::Write(message).value_or("{}"); }

Result<std::string> BodyOrFault(const json::Value& message) {
  auto body = json::Write(message);
  if (body) return *std::move(body);
  return Fail(errors::kHostNotJson,
              "what the node is given has no JSON form and cannot go to the node host: " +
                  body.error().message);
}

}  // namespace

Result<Message> DecodeMessage(std::string_view body) {
  const auto value = json::Read(
      body, {.max_bytes = body.size(), .max_depth = kMaxDepth, .reject_duplicate_keys = true});
  if (!value) return Broken(value.error().message);
  if (!value->is_object()) return Broken("it must be an object");
  CAISSON_ASSIGN(const std::string type, TextMember(*value, "type", kMaxNameBytes));
  if (type == "hello") return DecodeHello(*value);
  if (type == "result") return DecodeResult(*value);
  if (type == "error") return DecodeError(*value);
  if (type == "log") return DecodeLog(*value);
  if (type == "pong") return PongMessage{};
  return Broken("$.type is none that is known");
}

Result<std::string> EncodeRun(std::uint64_t id, const Call& call) {
  return BodyOrFault(json::Object{{"type", "run"},
                                  {"id", id},
                                  {"node_type", call.type},
                                  {"node", call.node},
                                  {"instance", call.instance},
                                  {"config", call.config},
                                  {"values", call.values},
                                  {"state", call.state},
                                  {"run_config", call.run_config}});
}

Result<std::string> EncodeCheck(std::uint64_t id, const std::string& type, const std::string& node,
                                const json::Value& config) {
  return BodyOrFault(json::Object{
      {"type", "check"}, {"id", id}, {"node_type", type}, {"node", node}, {"config", config}});
}

std::string EncodeCancel(std::uint64_t id) {
  return Body(json::Object{{"type", "cancel"}, {"id", id}});
}

std::string EncodePing() { return Body(json::Object{{"type", "ping"}}); }

}  // namespace caisson::host
