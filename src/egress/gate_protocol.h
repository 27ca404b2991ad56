// SPDX-License-Identifier: Apache-2.0
// What the helper (root) and the gate (`caisson egress-gate`: jailed, it reads what guests send)
// say to each other over a socketpair. Frames: a length (32 bits, little endian: of all that
// follows), a kind (a byte), fields. Both sides check every field: the gate may have been taken
// over by a guest. Encoding and decoding alone; egress/gate_channel.h moves the bytes.
//
//   helper                                   gate
//                       <- ready | failed    sealed, or why not; nothing else comes before
//   configure + 3 sockets ->                 once
//   machine ->                               rules of one machine; replaces earlier ones
//                       <- applied           flows that they do not allow are gone
//   forget ->           <- applied           (generation 0) all of that machine is gone
//                       <- pin               before a guest gets an answer
//   pinned ->
//                       <- denial, counters  at any time, not awaited
//
// A gate that breaks the protocol is ended by the helper, and the other way round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "egress/policy.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxGateFrame =
    1u << 19;  // kMaxRules rules, each with a name of 253 bytes
inline constexpr std::size_t kMaxGateName = 253;
inline constexpr std::size_t kMaxPinned = 32;  // addresses of one answer
inline constexpr std::uint32_t kMinPinSeconds = 5;
inline constexpr std::uint32_t kMaxPinSeconds = 300;

// Addresses are IPv4, in host order. Names are lower case, without a dot at the end.

struct GateWall {
  std::string name;
  bool stands = false;
  std::string reason;
  bool operator==(const GateWall&) const = default;
};
struct GateReady {
  std::vector<GateWall> walls;
  bool operator==(const GateReady&) const = default;
};
struct GateFailed {
  std::string message;
  bool operator==(const GateFailed&) const = default;
};

// Brings three sockets that the helper has bound in the gateway's namespace, so that the gate needs
// no right to: UDP for questions, TCP for questions (listening), TCP for redirected flows
// (listening), in this order.
inline constexpr std::size_t kGateSockets = 3;
struct GateConfigure {
  struct Server {
    std::uint32_t address = 0;
    std::uint16_t port = 53;
    bool operator==(const Server&) const = default;
  };
  std::vector<Server> resolvers;  // at most three; none: every question fails
  bool operator==(const GateConfigure&) const = default;
};

// A machine without rules may ask as well: no name is answered, and each is recorded.
struct GateMachine {
  std::uint32_t address = 0;
  std::uint64_t generation = 0;  // 1 and up, grows with each change of this machine's rules
  std::vector<NameRule> rules;   // their text is not sent
  bool operator==(const GateMachine&) const = default;
};
struct GateForget {
  std::uint32_t address = 0;
  bool operator==(const GateForget&) const = default;
};
// The gate holds to these rules from now on, and has dropped what they do not allow. Generation 0:
// it has forgotten the machine.
struct GateApplied {
  std::uint32_t address = 0;
  std::uint64_t generation = 0;
  bool operator==(const GateApplied&) const = default;
};

// `name` resolves to these addresses. For which ports they are opened, and whether by way of the
// gate or directly, follows from the machine's rules, which the helper knows: it checks the name
// against them, the generation, and the addresses against what is closed, and trusts nothing here.
struct GatePin {
  std::uint64_t id = 0;
  std::uint32_t machine = 0;
  std::uint64_t generation = 0;
  std::string name;
  std::uint32_t seconds = kMinPinSeconds;  // kMinPinSeconds to kMaxPinSeconds
  std::vector<std::uint32_t> addresses;    // 1 to kMaxPinned
  bool operator==(const GatePin&) const = default;
};
struct GatePinned {
  std::uint64_t id = 0;
  // Those that are open now, at most kMaxPinned, and what the guest is told; none: that there is no
  // such name.
  std::vector<std::uint32_t> addresses;
  bool operator==(const GatePinned&) const = default;
};

enum class GateDenialKind : std::uint8_t {
  kName,            // a question for a name that no rule allows
  kQuestion,        // a question that is not answered: its type, its class, its form
  kRebinding,       // an allowed name that leads to a closed address, which is left out
  kResolver,        // an allowed name for which no resolver gave an answer
  kForeignName,     // a connection whose SNI or Host no rule allows at this port
  kForeignAddress,  // the name is allowed, but the connection goes to no address of it
  kNoName,          // a connection that names no host, in time
  kMalformed,       // neither a TLS hello nor an HTTP/1 request that has one meaning
  kTunnel,          // CONNECT, an upgrade, HTTP/2 without TLS
  kLimit,           // too many questions or connections
  kPolicyChanged,   // an open connection that the new rules do not allow
  kUnreachable,     // the destination did not take the connection
};
inline constexpr std::uint8_t kGateDenialKinds = 12;
std::string_view GateDenialName(GateDenialKind kind);  // "foreign_name"

struct GateDenial {
  std::uint32_t machine = 0;
  std::uint64_t generation = 0;
  GateDenialKind kind = GateDenialKind::kName;
  std::string name;           // as far as it is known; any printable ASCII, at most kMaxGateName
  std::uint32_t address = 0;  // where it went; 0: nowhere
  std::uint16_t port = 0;
  std::optional<std::uint16_t> rule;  // the rule that allows the name, where one does
  std::uint32_t suppressed = 0;       // denials of this machine that were not told since the last
  bool operator==(const GateDenial&) const = default;
};

// What has been added since the last time.
struct GateCounters {
  struct Entry {
    std::uint16_t rule = 0;
    std::uint32_t answers = 0;
    std::uint32_t connections = 0;
    bool operator==(const Entry&) const = default;
  };
  std::uint32_t machine = 0;
  std::uint64_t generation = 0;
  std::uint32_t denials = 0;  // those that were suppressed, too
  std::vector<Entry> entries;
  bool operator==(const GateCounters&) const = default;
};

using GateMessage = std::variant<GateReady, GateFailed, GateConfigure, GateMachine, GateForget,
                                 GateApplied, GatePin, GatePinned, GateDenial, GateCounters>;

// A whole frame. Requires what DecodeGateMessage checks; a text that is too long is cut.
std::string EncodeGateMessage(const GateMessage& message);

// `body`: a frame without its length. Empty when it is none of the above to the last byte.
std::optional<GateMessage> DecodeGateMessage(std::string_view body);

// True for what may be a name of a rule, a question or a connection: lower-case labels of letters,
// digits, - and _, of 1 to 63 bytes with no - at an end, the last one no number; at most 253 bytes.
bool IsGateName(std::string_view name);

}  // namespace caisson::egress
