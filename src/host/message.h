// SPDX-License-Identifier: Apache-2.0
// What the engine and a node host say to each other: JSON objects, one a frame. docs/node-host.md
// has their members. The decoder trusts nothing: it bounds depth, counts and lengths and refuses
// what is not exactly a message. No I/O here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "host/provider.h"
#include "json/value.h"
#include "nodes/node.h"

namespace caisson::host {

inline constexpr std::int64_t kProtocolVersion = 1;
inline constexpr std::size_t kMaxDepth = 700;  // of a message; values have 600
inline constexpr std::size_t kMaxTypes = 4096;
inline constexpr std::size_t kMaxFields = 512;           // of a type
inline constexpr std::size_t kMaxNameBytes = 256;        // of a type, a field, a class
inline constexpr std::size_t kMaxSaidBytes = 64u << 10;  // of an error or a line; the rest is cut
inline constexpr std::uint64_t kMaxCallId = 1ull << 53;  // what every JSON library keeps

struct Hello {
  std::string package;  // "orcheo 0.46.1", for people
  std::vector<ServedType> types;
};
struct ResultMessage {
  std::uint64_t id = 0;
  json::Value value;
};
struct ErrorMessage {
  // Why there is no result: no node can be made of the configuration, the node raised something,
  // its result is no JSON or too large, the type is not there, or the call was cancelled.
  enum class Kind : std::uint8_t {
    kConfig,
    kRaised,
    kNotJson,
    kTooLarge,
    kUnknownType,
    kCancelled
  };
  std::uint64_t id = 0;
  Kind kind = Kind::kRaised;
  std::string error_type;
  std::string message;
};
struct LogMessage {
  std::optional<std::uint64_t> id;  // of the call that says it, when that is known
  nodes::LogLevel level = nodes::LogLevel::kInfo;
  std::string text;
};
struct PongMessage {};

using Message = std::variant<Hello, ResultMessage, ErrorMessage, LogMessage, PongMessage>;

// Fails with host.protocol; with host.version for the hello of another version.
Result<Message> DecodeMessage(std::string_view body);

// Each gives a body. EncodeRun and EncodeCheck fail with host.not_json.
Result<std::string> EncodeRun(std::uint64_t id, const Call& call);
Result<std::string> EncodeCheck(std::uint64_t id, const std::string& type, const std::string& node,
                                const json::Value& config);
std::string EncodeCancel(std::uint64_t id);
std::string EncodePing();

}  // namespace caisson::host
