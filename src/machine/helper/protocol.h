// SPDX-License-Identifier: Apache-2.0
// What the service and its helper (`caisson machined`) say to each other over a Unix socket: frames
// of a length (32 bits, little endian) and a JSON document, one reply per request, in order. The
// replies to kConnect, and to what makes or resumes a machine, bring a connection to its agent
// along. Both sides check every field: the helper because the caller has fewer rights, the caller
// because a helper of another version may answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "egress/policy.h"
#include "json/value.h"
#include "machine/driver.h"
#include "os/fd.h"

namespace caisson::machine::helper {

inline constexpr std::size_t kMaxRequestBytes = 1u << 20;
inline constexpr std::size_t kMaxReplyBytes = 8u << 20;
// Values in a request, about: four times as many as the largest one has.
inline constexpr std::size_t kMaxRequestValues = 4096;

enum class Operation : std::uint8_t {
  kCapabilities,
  kCreate,
  kDestroy,
  kPause,
  kResume,
  kFork,
  kTakeSnapshot,
  kRestore,
  kRemoveSnapshot,
  kListSnapshots,
  kResize,
  kSetNetwork,
  kSetSharedNetworks,
  kReadNetworkLog,
  kReadStats,
  kList,
  kConnect,
};

struct Request {
  std::string driver;  // its name; which there are, the helper knows
  Operation operation = Operation::kCapabilities;
  std::string id;                         // of the machine; of the parent for kFork
  std::string snapshot;                   // its id
  Extent extent = Extent::kNone;          // kTakeSnapshot, kFork
  Level level = Level::kNone;             // kPause
  std::uint64_t disk_bytes = 0;           // kResize
  std::optional<MachineSpec> spec;        // kCreate, kFork, kRestore
  std::optional<egress::Policy> network;  // kSetNetwork
  SentCap sent_cap;                       // kSetNetwork
  std::set<std::string> networks;         // kSetSharedNetworks
  std::uint64_t after = 0;                // kReadNetworkLog
};

Result<std::string> Encode(const Request& request);
// Has exactly the members that its operation takes, with valid ids. Fails with machine.protocol,
// machine.invalid, and as egress::Policy::Parse.
Result<Request> DecodeRequest(std::string_view text);

// What an operation answers: a failure, or a value of its own form.
Result<std::string> EncodeFailure(const Status& status);
Result<std::string> EncodeReply(const json::Value& value);
// The value, or the failure that was told; machine.protocol when it is neither.
Result<json::Value> DecodeReply(std::string_view text);

json::Value ToJson(const Capabilities& capabilities);
json::Value ToJson(const Machine& machine);
json::Value ToJson(const Snapshot& snapshot);
json::Value ToJson(const Stats& stats);
json::Value ToJson(const egress::NetworkLog& log);
// Each fails with machine.protocol.
Result<Capabilities> CapabilitiesFromJson(const json::Value& value);
Result<Machine> MachineFromJson(const json::Value& value);
Result<Snapshot> SnapshotFromJson(const json::Value& value);
Result<Stats> StatsFromJson(const json::Value& value);
Result<egress::NetworkLog> NetworkLogFromJson(const json::Value& value);

// --- frames ---

Result<void> SendFrame(int socket, std::string_view text, int fd = -1);
struct ReceivedFrame {
  std::string text;
  os::UniqueFd fd;
};
// Empty at the end of the stream, between two frames. Fails with machine.protocol when a frame is
// larger than `limit` or does not end.
Result<std::optional<ReceivedFrame>> ReceiveFrame(int socket, std::size_t limit);

}  // namespace caisson::machine::helper
