// SPDX-License-Identifier: Apache-2.0
// What the frames that are not raw carry. Each message lists its fields once, for both directions
// (agent/fields.h): integers little-endian, strings with a u32 length, lists with a u32 count of at
// most kMaxItems, optional values with a u8 before them. Every byte of a payload must be used.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace caisson::agent {

inline constexpr std::size_t kMaxItems = 65'536;

struct Pty {
  std::uint16_t rows = 24;
  std::uint16_t columns = 80;
  bool operator==(const Pty&) const = default;
  auto Fields() { return std::tie(rows, columns); }
};

// What a command is started with.
struct Command {
  std::vector<std::string> argv;  // the first is looked up in PATH of `env` unless it has a slash
  std::map<std::string, std::string> env;  // all of it; nothing is inherited
  std::string cwd;                         // empty: /
  std::optional<Pty> pty;                  // one terminal in place of three pipes
  bool operator==(const Command&) const = default;
  auto Fields() { return std::tie(argv, env, cwd, pty); }
};

struct ExecRequest {
  Command command;
  bool stdin_open = false;                           // else it is at its end from the start
  std::optional<std::chrono::milliseconds> timeout;  // counted by the agent from the start
  bool operator==(const ExecRequest&) const = default;
  auto Fields() { return std::tie(command, stdin_open, timeout); }
};

struct PutRequest {
  std::string path;                   // absolute
  std::optional<std::uint32_t> mode;  // else that of the file that is replaced, or 0644
  bool operator==(const PutRequest&) const = default;
  auto Fields() { return std::tie(path, mode); }
};

struct PathRequest {  // kGet
  std::string path;
  bool operator==(const PathRequest&) const = default;
  auto Fields() { return std::tie(path); }
};

struct StatRequest {
  std::string path;
  bool follow = true;  // a link at the path's end
  bool operator==(const StatRequest&) const = default;
  auto Fields() { return std::tie(path, follow); }
};

struct ListRequest {
  std::string path;
  std::uint32_t max_entries = 10'000;
  bool operator==(const ListRequest&) const = default;
  auto Fields() { return std::tie(path, max_entries); }
};

struct RemoveRequest {
  std::string path;
  bool recursive = false;
  bool operator==(const RemoveRequest&) const = default;
  auto Fields() { return std::tie(path, recursive); }
};

struct ProcessRequest {  // kProcessGet, kProcessCloseInput
  std::string process_id;
  bool operator==(const ProcessRequest&) const = default;
  auto Fields() { return std::tie(process_id); }
};

struct ConnectRequest {
  std::string process_id;
  std::uint64_t after = 0;
  bool operator==(const ConnectRequest&) const = default;
  auto Fields() { return std::tie(process_id, after); }
};

struct InputRequest {
  std::string process_id;
  std::string data;
  bool operator==(const InputRequest&) const = default;
  auto Fields() { return std::tie(process_id, data); }
};

struct ResizeRequest {
  std::string process_id;
  Pty size;
  bool operator==(const ResizeRequest&) const = default;
  auto Fields() { return std::tie(process_id, size); }
};

struct SignalRequest {
  std::string process_id;
  std::int32_t signal = 0;
  bool operator==(const SignalRequest&) const = default;
  auto Fields() { return std::tie(process_id, signal); }
};

enum class WaitScope : std::uint8_t { kLeader, kTree };
constexpr WaitScope LastOf(WaitScope) { return WaitScope::kTree; }

struct WaitRequest {
  std::string process_id;
  WaitScope scope = WaitScope::kLeader;
  std::optional<std::chrono::milliseconds> timeout;
  bool operator==(const WaitRequest&) const = default;
  auto Fields() { return std::tie(process_id, scope, timeout); }
};

struct TerminateRequest {
  std::string process_id;
  std::chrono::milliseconds grace{0};
  bool operator==(const TerminateRequest&) const = default;
  auto Fields() { return std::tie(process_id, grace); }
};

enum class DialTo : std::uint8_t {
  kLoopback,  // 127.0.0.1, else ::1
  kPublic,  // what listens beyond the loopback addresses: 0.0.0.0, ::, or one of the machine's own
};
constexpr DialTo LastOf(DialTo) { return DialTo::kPublic; }

struct DialRequest {
  std::uint16_t port = 0;
  DialTo to = DialTo::kLoopback;
  bool operator==(const DialRequest&) const = default;
  auto Fields() { return std::tie(port, to); }
};

struct SignalNumber {  // kSignal
  std::int32_t signal = 0;
  bool operator==(const SignalNumber&) const = default;
  auto Fields() { return std::tie(signal); }
};

// What makes a virtual machine one of its own, after it was booted or copied.
struct RenewRequest {       // kRenew
  std::int64_t now_ns = 0;  // since 1970
  std::string entropy;      // of the host, for the kernel's generator
  // Empty: the machine goes on as who it was.
  std::string host_name;
  std::string machine_id;                    // 32 hexadecimal digits
  std::map<std::string, std::string> files;  // path and content, written as root
  std::string address;                       // of eth0, IPv4; empty: it stays down
  std::string gateway;
  std::string mac;  // of eth0, "02:00:0a:e7:00:07"
  std::string gateway_mac;
  std::uint64_t memory_bytes = 0;  // of commands
  std::uint64_t pids = 0;
  bool operator==(const RenewRequest&) const = default;
  auto Fields() {
    return std::tie(now_ns, entropy, host_name, machine_id, files, address, gateway, mac,
                    gateway_mac, memory_bytes, pids);
  }
};

// What makes a copy of a machine one of its own where the kernel is not the agent's to renew.
struct IdentifyRequest {  // kIdentify
  std::string host_name;
  std::string machine_id;                    // 32 hexadecimal digits
  std::map<std::string, std::string> files;  // path and content, written as root
  bool operator==(const IdentifyRequest&) const = default;
  auto Fields() { return std::tie(host_name, machine_id, files); }
};

struct ThawRequest {        // kThaw
  std::int64_t now_ns = 0;  // the machine's own clock stood still as well
  bool operator==(const ThawRequest&) const = default;
  auto Fields() { return std::tie(now_ns); }
};

struct GrowDiskRequest {  // kGrowDisk
  std::uint64_t bytes = 0;
  bool operator==(const GrowDiskRequest&) const = default;
  auto Fields() { return std::tie(bytes); }
};

struct MountDiskRequest {   // kMountDisk
  std::uint64_t bytes = 0;  // what the disk has by now, or has at once
  bool operator==(const MountDiskRequest&) const = default;
  auto Fields() { return std::tie(bytes); }
};

// --- what the agent says ---

enum class FailureKind : std::uint8_t {
  kInternal,    // the agent itself failed
  kBadRequest,  // the request breaks its own rules
  kNotFound,    // no such file or directory
  kNotAFile,    // a directory, FIFO, device or socket where a file is wanted
  kNotADirectory,
  kNotEmpty,
  kRefused,       // permissions, a read-only file system
  kNoSpace,       // the disk is full, or a limit of it
  kUnreadable,    // any other failure of a file operation
  kStartFailed,   // the command could not be started
  kNoProcess,     // no managed process with this id
  kProcessEnded,  // it has ended, or its input is closed
  kInputFull,     // it does not read its input
  kNotAPty,
  kEventsLost,    // the window does not reach back that far
  kLost,          // how the command ended cannot be known
  kNotListening,  // nothing listens on the port
  kBusy,          // too many of them
};
constexpr FailureKind LastOf(FailureKind) { return FailureKind::kBusy; }

struct Failure {
  FailureKind kind = FailureKind::kInternal;
  std::int32_t error = 0;                  // errno, or 0
  std::string message;                     // what was wrong, where, and what to do
  std::uint64_t oldest_available_seq = 0;  // kEventsLost
  bool operator==(const Failure&) const = default;
  auto Fields() { return std::tie(kind, error, message, oldest_available_seq); }
};

struct Started {
  std::int32_t pid = 0;  // in the machine
  bool operator==(const Started&) const = default;
  auto Fields() { return std::tie(pid); }
};

struct ExitReport {
  std::int32_t exit_code = 0;  // when signal == 0
  std::int32_t signal = 0;     // what ended the leader
  bool timed_out = false;      // the agent ended it, for its timeout
  bool operator==(const ExitReport&) const = default;
  auto Fields() { return std::tie(exit_code, signal, timed_out); }
};

struct AgentInfo {
  std::string version;
  std::string boot_id;  // drawn when the agent starts
  std::uint16_t self_port = 0;
  bool operator==(const AgentInfo&) const = default;
  auto Fields() { return std::tie(version, boot_id, self_port); }
};

enum class FileType : std::uint8_t { kFile, kDirectory, kLink, kFifo, kSocket, kDevice };
constexpr FileType LastOf(FileType) { return FileType::kDevice; }

struct FileInfo {
  FileType type = FileType::kFile;
  std::optional<std::uint64_t> size;  // kGet: empty when it is only known at the end (/proc)
  std::uint32_t mode = 0;             // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::string link_target;
  bool operator==(const FileInfo&) const = default;
  auto Fields() { return std::tie(type, size, mode, uid, gid, modified_ns, link_target); }
};

struct FileEntry {
  std::string name;
  FileInfo info;
  bool operator==(const FileEntry&) const = default;
  auto Fields() { return std::tie(name, info); }
};

struct End {                // of a file, a listing, the processes, an upload, a removal
  std::uint64_t count = 0;  // bytes, or items
  bool truncated = false;   // a listing that is longer than was asked for
  bool operator==(const End&) const = default;
  auto Fields() { return std::tie(count, truncated); }
};

enum class ProcessState : std::uint8_t { kStarting, kRunning, kTerminating, kExited, kFailed };
constexpr ProcessState LastOf(ProcessState) { return ProcessState::kFailed; }

struct Foreground {
  std::int32_t pid = 0;
  std::vector<std::string> argv;
  bool operator==(const Foreground&) const = default;
  auto Fields() { return std::tie(pid, argv); }
};

struct OutputWindow {
  std::uint64_t oldest_seq = 0;  // 0 when there is none
  std::uint64_t newest_seq = 0;
  std::uint64_t bytes = 0;
  bool operator==(const OutputWindow&) const = default;
  auto Fields() { return std::tie(oldest_seq, newest_seq, bytes); }
};

struct ProcessView {
  std::string process_id;
  bool is_pty = false;
  std::int32_t pid = 0;
  ProcessState state = ProcessState::kStarting;
  bool leader_exited = false;
  bool tree_exited = false;
  std::int64_t created_at_ms = 0;  // since 1970
  std::optional<std::int64_t> finished_at_ms;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::vector<std::string> argv;
  std::string cwd;
  std::optional<Foreground> foreground;  // of a terminal
  OutputWindow output;
  bool operator==(const ProcessView&) const = default;
  auto Fields() {
    return std::tie(process_id, is_pty, pid, state, leader_exited, tree_exited, created_at_ms,
                    finished_at_ms, exit_code, signal, argv, cwd, foreground, output);
  }
};

enum class EventType : std::uint8_t { kData, kExit, kHeartbeat, kError };
constexpr EventType LastOf(EventType) { return EventType::kError; }
enum class OutputStream : std::uint8_t { kStdout, kStderr, kPty };
constexpr OutputStream LastOf(OutputStream) { return OutputStream::kPty; }

struct ProcessEvent {
  EventType type = EventType::kData;
  std::uint64_t seq = 0;  // 0 for heartbeats and errors
  OutputStream stream = OutputStream::kStdout;
  std::string data;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::string error;
  std::optional<std::uint64_t> oldest_available_seq;
  bool operator==(const ProcessEvent&) const = default;
  auto Fields() {
    return std::tie(type, seq, stream, data, exit_code, signal, error, oldest_available_seq);
  }
};

struct InputTaken {
  std::uint64_t input_seq = 0;
  bool operator==(const InputTaken&) const = default;
  auto Fields() { return std::tie(input_seq); }
};

enum class SelfAction : std::uint8_t { kPause, kDelete };
constexpr SelfAction LastOf(SelfAction) { return SelfAction::kDelete; }

// The machine asks for something about itself.
struct SelfRequest {
  SelfAction action = SelfAction::kPause;
  std::string reason;
  bool operator==(const SelfRequest&) const = default;
  auto Fields() { return std::tie(action, reason); }
};

struct Activity {
  std::uint32_t commands = 0;      // execs that run
  std::uint32_t streams = 0;       // transfers, dials, connected processes
  std::uint32_t processes = 0;     // managed ones that run
  std::uint64_t output_bytes = 0;  // of all commands and processes since the agent started
  bool operator==(const Activity&) const = default;
  auto Fields() { return std::tie(commands, streams, processes, output_bytes); }
};

// The payload of a message. `M` is one of the above.
template <typename M>
std::string Encode(const M& message);
// Empty when the bytes are not such a message.
template <typename M>
std::optional<M> Decode(std::string_view payload);

}  // namespace caisson::agent

#include "agent/fields.h"
