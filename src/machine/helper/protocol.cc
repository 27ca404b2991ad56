// SPDX-License-Identifier: Apache-2.0
#include "machine/helper/protocol.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error_catalogue.h"
#include "errors/machine.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/fields.h"
#include "machine/spec.h"
#include "os/fd_passing.h"
#include "os/syscall_error.h"

namespace caisson::machine::helper {
namespace {

// Which members an operation takes, beside its name and the driver's.
struct Form {
  Operation operation;
  std::string_view name;
  bool id = false, snapshot = false, extent = false, level = false, disk_bytes = false,
       spec = false, network = false, networks = false, after = false;
};
constexpr std::array<Form, 17> kForms = {{
    {.operation = Operation::kCapabilities, .name = "capabilities"},
    {.operation = Operation::kCreate, .name = "create", .spec = true},
    {.operation = Operation::kDestroy, .name = "destroy", .id = true},
    {.operation = Operation::kPause, .name = "pause", .id = true, .level = true},
    {.operation = Operation::kResume, .name = "resume", .id = true},
    {.operation = Operation::kFork, .name = "fork", .id = true, .extent = true, .spec = true},
    {.operation = Operation::kTakeSnapshot,
     .name = "take_snapshot",
     .id = true,
     .snapshot = true,
     .extent = true},
    {.operation = Operation::kRestore, .name = "restore", .snapshot = true, .spec = true},
    {.operation = Operation::kRemoveSnapshot, .name = "remove_snapshot", .snapshot = true},
    {.operation = Operation::kListSnapshots, .name = "list_snapshots"},
    {.operation = Operation::kResize, .name = "resize", .id = true, .disk_bytes = true},
    {.operation = Operation::kSetNetwork, .name = "set_network", .id = true, .network = true},
    {.operation = Operation::kSetSharedNetworks,
     .name = "set_shared_networks",
     .id = true,
     .networks = true},
    {.operation = Operation::kReadNetworkLog,
     .name = "read_network_log",
     .id = true,
     .after = true},
    {.operation = Operation::kReadStats, .name = "read_stats", .id = true},
    {.operation = Operation::kList, .name = "list"},
    {.operation = Operation::kConnect, .name = "connect", .id = true},
}};

constexpr std::array<std::string_view, 3> kLevels = {"none", "memory", "disk"};
constexpr std::array<std::string_view, 3> kExtents = {"none", "filesystem", "full"};
constexpr std::array<State, 4> kStates = {State::kRunning, State::kPausedInMemory,
                                          State::kPausedOnDisk, State::kStopped};

std::unexpected<Status> Violation(const std::string& what) {
  return Fail(errors::kMachineProtocol, what);
}

Result<void> Complete(const Fields& fields, const char* what) {
  if (fields.missed().empty()) return {};
  return Violation(fmt::format("{} has no valid {}", what, fields.missed()));
}

template <std::size_t N>
std::optional<std::uint8_t> PlaceOf(const std::array<std::string_view, N>& names,
                                    std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - names.begin());
}

template <std::size_t N>
std::string_view NameIn(const std::array<std::string_view, N>& names, auto value) {
  return names[static_cast<std::size_t>(value)];
}

Result<void> CheckId(const std::string& id, const char* what) {
  if (IsValidId(id)) return {};
  return Fail(errors::kMachineInvalid,
              fmt::format("{} has 1 to {} characters of a-z, 0-9 and -", what, kMaxIdLength));
}

}  // namespace

Result<std::string> Encode(const Request& request) {
  const Form& form = *std::ranges::find(kForms, request.operation, &Form::operation);
  json::Object object{{"driver", request.driver}, {"operation", form.name}};
  if (form.id) object.Set("id", request.id);
  if (form.snapshot) object.Set("snapshot", request.snapshot);
  if (form.extent) object.Set("extent", NameIn(kExtents, request.extent));
  if (form.level) object.Set("level", NameIn(kLevels, request.level));
  if (form.disk_bytes) object.Set("disk_bytes", request.disk_bytes);
  if (form.spec) object.Set("spec", ToJson(request.spec.value_or(MachineSpec{})));
  if (form.network) {
    object.Set("network", machine::ToJson(request.network.value_or(egress::Policy::DenyAll())));
    object.Set("sent_cap", machine::ToJson(request.sent_cap));
  }
  if (form.networks) object.Set("networks", machine::ToJson(request.networks));
  if (form.after) object.Set("after", request.after);
  return json::Write(json::Value(std::move(object)));
}

Result<Request> DecodeRequest(std::string_view text) {
  // Each value but the first of its list follows a comma: before anything is made of them.
  if (std::ranges::count(text, ',') >= static_cast<std::ptrdiff_t>(kMaxRequestValues)) {
    return Violation(fmt::format("a request has more than {} values", kMaxRequestValues));
  }
  auto value = json::Read(text, {.max_bytes = kMaxRequestBytes,
                                 .max_depth = 8,
                                 .max_integer_digits = 20,
                                 .reject_duplicate_keys = true});
  if (!value) return Violation("a request is no JSON: " + value.error().message);
  Fields fields(*value);
  const std::string name = fields.Text("operation");
  const auto form = std::ranges::find(kForms, name, &Form::name);
  if (form == kForms.end()) return Violation("there is no such operation");
  Request request{.driver = fields.Text("driver"), .operation = form->operation};
  if (form->id) request.id = fields.Text("id");
  if (form->snapshot) request.snapshot = fields.Text("snapshot");
  const std::string extent = form->extent ? fields.Text("extent") : "none";
  const std::string level = form->level ? fields.Text("level") : "none";
  if (form->disk_bytes) request.disk_bytes = fields.Number("disk_bytes");
  const json::Value spec = form->spec ? fields.Any("spec") : json::Value();
  const json::Value network = form->network ? fields.Any("network") : json::Value();
  const json::Value sent_cap = form->network ? fields.Any("sent_cap") : json::Value();
  const json::Value networks = form->networks ? fields.Any("networks") : json::Value();
  if (form->after) request.after = fields.Number("after");
  fields.Expect(2u + form->id + form->snapshot + form->extent + form->level + form->disk_bytes +
                form->spec + 2u * form->network + form->networks + form->after);
  CAISSON_TRY(Complete(fields, "a request"));
  const auto place = PlaceOf(kLevels, level);
  if (!place) return Violation("there is no such level");
  request.level = static_cast<Level>(*place);
  const auto most = PlaceOf(kExtents, extent);
  if (!most) return Violation("there is no such extent");
  request.extent = static_cast<Extent>(*most);
  if (form->id) CAISSON_TRY(CheckId(request.id, "id"));
  if (form->snapshot) CAISSON_TRY(CheckId(request.snapshot, "snapshot"));
  if (form->spec) {
    CAISSON_ASSIGN(request.spec, SpecFromJson(spec));
  }
  if (form->network) {
    CAISSON_ASSIGN(request.network, PolicyFromJson(network));
    CAISSON_ASSIGN(request.sent_cap, SentCapFromJson(sent_cap));
  }
  if (form->networks) {
    CAISSON_ASSIGN(request.networks, SharedNetworksFromJson(networks));
  }
  return request;
}

Result<std::string> EncodeFailure(const Status& status) {
  // The texts of failures name files, which may have any bytes.
  const auto text = [](const std::string& raw) { return json::Quote(raw); };
  return "{\"code\":" + text(std::string(status.code.name)) +
         ",\"message\":" + text(status.message) + ",\"details\":" + text(status.details) + "}";
}

Result<std::string> EncodeReply(const json::Value& value) {
  return json::Write(json::Object{{"value", value}});
}

Result<json::Value> DecodeReply(std::string_view text) {
  auto reply = json::Read(text, {.max_bytes = kMaxReplyBytes, .max_depth = 16});
  if (!reply) return Violation("a reply is no JSON: " + reply.error().message);
  if (const json::Value* value = reply->Find("value")) return *value;
  Fields fields(*reply);
  const std::string code = fields.Text("code");
  Status status{.code = errors::kMachineProtocol,
                .message = fields.Text("message"),
                .span = {},
                .details = fields.Text("details")};
  CAISSON_TRY(Complete(fields, "a reply"));
  const auto known = std::ranges::find(ErrorCatalogue(), code, &ErrorEntry::code);
  if (known != ErrorCatalogue().end()) status.code = ErrorCode{known->code};
  return Fail(std::move(status));
}

json::Value ToJson(const Capabilities& capabilities) {
  return json::Object{{"driver", capabilities.driver},
                      {"isolation", capabilities.isolation},
                      {"isolation_class", capabilities.isolation_class},
                      {"emulated", capabilities.emulated},
                      {"pause", NameIn(kLevels, capabilities.pause)},
                      {"disk_pause_keeps_processes", capabilities.disk_pause_keeps_processes},
                      {"snapshot", NameIn(kExtents, capabilities.snapshot)},
                      {"fork", NameIn(kExtents, capabilities.fork)},
                      {"resize_disk", capabilities.resize_disk},
                      {"network", capabilities.network},
                      {"host_name_rules", capabilities.host_name_rules},
                      {"shared_networks", capabilities.shared_networks}};
}

Result<Capabilities> CapabilitiesFromJson(const json::Value& value) {
  Fields fields(value);
  Capabilities capabilities{.driver = fields.Text("driver"),
                            .isolation = fields.Text("isolation"),
                            .isolation_class = fields.Text("isolation_class"),
                            .emulated = fields.Bool("emulated"),
                            .disk_pause_keeps_processes = fields.Bool("disk_pause_keeps_processes"),
                            .resize_disk = fields.Bool("resize_disk"),
                            .network = fields.Bool("network"),
                            .host_name_rules = fields.Bool("host_name_rules"),
                            .shared_networks = fields.Bool("shared_networks")};
  const auto pause = PlaceOf(kLevels, fields.Text("pause"));
  const auto snapshot = PlaceOf(kExtents, fields.Text("snapshot"));
  const auto fork = PlaceOf(kExtents, fields.Text("fork"));
  CAISSON_TRY(Complete(fields, "a reply"));
  if (!pause || !snapshot || !fork) return Violation("a reply has an unknown capability");
  capabilities.pause = static_cast<Level>(*pause);
  capabilities.snapshot = static_cast<Extent>(*snapshot);
  capabilities.fork = static_cast<Extent>(*fork);
  return capabilities;
}

json::Value ToJson(const Machine& machine) {
  return json::Object{{"id", machine.id},
                      {"state", NameOf(machine.state)},
                      {"ip", machine.ip},
                      {"image", machine.image},
                      {"disk_bytes", machine.disk_bytes}};
}

Result<Machine> MachineFromJson(const json::Value& value) {
  Fields fields(value);
  Machine machine{.id = fields.Text("id"),
                  .ip = fields.Text("ip"),
                  .image = fields.Text("image"),
                  .disk_bytes = fields.Number("disk_bytes")};
  const std::string state = fields.Text("state");
  CAISSON_TRY(Complete(fields, "a reply"));
  const auto found =
      std::ranges::find_if(kStates, [&state](State known) { return NameOf(known) == state; });
  if (found == kStates.end()) return Violation("a reply has an unknown state");
  machine.state = *found;
  return machine;
}

json::Value ToJson(const Snapshot& snapshot) {
  return json::Object{{"id", snapshot.id},
                      {"image", snapshot.image},
                      {"disk_bytes", snapshot.disk_bytes},
                      {"stored_bytes", snapshot.stored_bytes}};
}

Result<Snapshot> SnapshotFromJson(const json::Value& value) {
  Fields fields(value);
  Snapshot snapshot{.id = fields.Text("id"),
                    .image = fields.Text("image"),
                    .disk_bytes = fields.Number("disk_bytes"),
                    .stored_bytes = fields.Number("stored_bytes")};
  CAISSON_TRY(Complete(fields, "a reply"));
  return snapshot;
}

json::Value ToJson(const Stats& stats) {
  return json::Object{{"memory_bytes", stats.memory_bytes},
                      {"memory_limit_bytes", stats.memory_limit_bytes},
                      {"cpu_nanoseconds", stats.cpu_nanoseconds},
                      {"pids", stats.pids},
                      {"disk_bytes", stats.disk_bytes},
                      {"disk_used_bytes", stats.disk_used_bytes},
                      {"network_received_bytes", stats.network_received_bytes},
                      {"network_sent_bytes", stats.network_sent_bytes}};
}

Result<Stats> StatsFromJson(const json::Value& value) {
  Fields fields(value);
  const Stats stats{.memory_bytes = fields.Number("memory_bytes"),
                    .memory_limit_bytes = fields.Number("memory_limit_bytes"),
                    .cpu_nanoseconds = fields.Number("cpu_nanoseconds"),
                    .pids = fields.Number("pids"),
                    .disk_bytes = fields.Number("disk_bytes"),
                    .disk_used_bytes = fields.Number("disk_used_bytes"),
                    .network_received_bytes = fields.Number("network_received_bytes"),
                    .network_sent_bytes = fields.Number("network_sent_bytes")};
  CAISSON_TRY(Complete(fields, "a reply"));
  return stats;
}

json::Value ToJson(const egress::NetworkLog& log) {
  json::Array denials;
  for (const egress::Denial& denial : log.denials) {
    denials.emplace_back(json::Object{{"number", denial.number},
                                      {"time", denial.time},
                                      {"kind", denial.kind},
                                      {"protocol", denial.protocol},
                                      {"address", denial.address},
                                      {"port", static_cast<int>(denial.port)},
                                      {"name", denial.name},
                                      {"rule", denial.rule},
                                      {"why", denial.why},
                                      {"count", denial.count}});
  }
  json::Array rules;
  for (const egress::RuleUse& use : log.rules) {
    rules.emplace_back(json::Object{
        {"rule", use.rule}, {"answers", use.answers}, {"connections", use.connections}});
  }
  return json::Object{{"denials", std::move(denials)},
                      {"last", log.last},
                      {"lost", log.lost},
                      {"refused_packets", log.refused_packets},
                      {"refused_by_gate", log.refused_by_gate},
                      {"rules", std::move(rules)}};
}

namespace {

Result<egress::Denial> DenialFromJson(const json::Value& value) {
  Fields fields(value);
  egress::Denial denial{.number = fields.Number("number"),
                        .time = static_cast<std::int64_t>(fields.Number("time")),
                        .kind = fields.Text("kind"),
                        .protocol = fields.Text("protocol"),
                        .address = fields.Text("address"),
                        .port = static_cast<std::uint16_t>(fields.Number("port", 65535)),
                        .name = fields.Text("name"),
                        .rule = fields.Text("rule"),
                        .why = fields.Text("why"),
                        .count = fields.Number("count")};
  CAISSON_TRY(Complete(fields, "a reply"));
  return denial;
}

Result<egress::RuleUse> RuleUseFromJson(const json::Value& value) {
  Fields fields(value);
  egress::RuleUse use{.rule = fields.Text("rule"),
                      .answers = fields.Number("answers"),
                      .connections = fields.Number("connections")};
  CAISSON_TRY(Complete(fields, "a reply"));
  return use;
}

}  // namespace

Result<egress::NetworkLog> NetworkLogFromJson(const json::Value& value) {
  Fields fields(value);
  const json::Value& denials = fields.Any("denials");
  const json::Value& rules = fields.Any("rules");
  egress::NetworkLog log{.denials = {},
                         .last = fields.Number("last"),
                         .lost = fields.Number("lost"),
                         .refused_packets = fields.Number("refused_packets"),
                         .refused_by_gate = fields.Number("refused_by_gate"),
                         .rules = {}};
  CAISSON_TRY(Complete(fields, "a reply"));
  if (!denials.is_array() || !rules.is_array()) return Violation("a reply has no lists");
  for (const json::Value& each : denials.as_array()) {
    CAISSON_ASSIGN(egress::Denial denial, DenialFromJson(each));
    log.denials.push_back(std::move(denial));
  }
  for (const json::Value& each : rules.as_array()) {
    CAISSON_ASSIGN(egress::RuleUse use, RuleUseFromJson(each));
    log.rules.push_back(std::move(use));
  }
  return log;
}

// --- frames ---

namespace {

constexpr std::size_t kHeaderBytes = 4;

Result<std::size_t> SendPiece(int socket, std::string_view bytes, int fd) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  os::FdSpace<1> space;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) space.Attach(message, {&fd, 1});
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return os::SyscallError("send to the other side of the helper's socket");
  return static_cast<std::size_t>(n);
}

// Fills as much of `bytes` as comes at once; 0 at the end. The first descriptor that comes along is
// kept, others are closed.
Result<std::size_t> ReceivePiece(int socket, char* bytes, std::size_t size, os::UniqueFd& fd) {
  constexpr std::size_t kMaxFds = 8;
  iovec part{.iov_base = bytes, .iov_len = size};
  os::FdSpace<kMaxFds> space;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  space.Await(message);
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return os::SyscallError("receive from the other side of the helper's socket");
  os::TakeFds(message, [&fd](int received) {
    os::UniqueFd owned(received);
    if (!fd.valid()) fd = std::move(owned);
  });
  return static_cast<std::size_t>(n);
}

// Whether all came; false when the stream ended before the first byte.
Result<bool> ReceiveAll(int socket, char* bytes, std::size_t size, os::UniqueFd& fd) {
  for (std::size_t done = 0; done < size;) {
    CAISSON_ASSIGN(const std::size_t n, ReceivePiece(socket, bytes + done, size - done, fd));
    if (n == 0 && done == 0) return false;
    if (n == 0) return Violation("a frame has no end");
    done += n;
  }
  return true;
}

}  // namespace

Result<void> SendFrame(int socket, std::string_view text, int fd) {
  std::string frame(kHeaderBytes, '\0');
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    frame[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  frame += text;
  for (std::string_view left = frame; !left.empty();) {
    CAISSON_ASSIGN(const std::size_t n,
                   SendPiece(socket, left, left.size() == frame.size() ? fd : -1));
    left.remove_prefix(n);
  }
  return {};
}

Result<std::optional<ReceivedFrame>> ReceiveFrame(int socket, std::size_t limit) {
  ReceivedFrame frame;
  std::array<char, kHeaderBytes> header{};
  CAISSON_ASSIGN(const bool any, ReceiveAll(socket, header.data(), header.size(), frame.fd));
  if (!any) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  if (size > limit) return Violation("a frame is too large");
  frame.text.resize(size);
  CAISSON_ASSIGN(const bool rest, ReceiveAll(socket, frame.text.data(), size, frame.fd));
  if (!rest && size > 0) return Violation("a frame has no end");
  return frame;
}

}  // namespace caisson::machine::helper
