// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/resolver.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "egress/address.h"

namespace caisson::egress::gate {
namespace {

constexpr std::uint16_t kInternet = 1;
constexpr std::size_t kMostUnsent = 256u << 10;  // answers that a guest does not read

// The control data of one datagram: from which of our addresses to answer.
using PacketInfo = std::array<char, CMSG_SPACE(sizeof(in_pktinfo))>;

std::optional<in_pktinfo> InfoOf(msghdr& message) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != IPPROTO_IP || each->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(each), sizeof info);
    return info;
  }
  return std::nullopt;
}

bool IsReverse(const Query& query) {
  return query.name.ends_with(".in-addr.arpa") || query.name.ends_with(".ip6.arpa");
}

// Those that no policy opens are left out.
std::vector<std::uint32_t> OpenOnly(const std::vector<std::uint32_t>& addresses) {
  std::vector<std::uint32_t> open;
  for (const std::uint32_t each : addresses) {
    if (!OpenParts({each, each}).empty()) open.push_back(each);
  }
  return open;
}

}  // namespace

struct Resolver::Connection {
  os::UniqueFd fd;
  std::uint32_t machine = 0;
  std::uint16_t port = 0;
  std::string in, out;
  std::size_t unanswered = 0;
  bool ended = false;  // no more questions will come
  std::optional<Loop::TimerId> timer;
  bool is_done() const { return ended && unanswered == 0 && out.empty(); }
};

Resolver::~Resolver() {
  while (!connections_.empty()) Close(connections_.begin()->second);
  loop_.Forget(datagrams_.get());
  loop_.Forget(stream_.get());
}

Result<void> Resolver::Serve(os::UniqueFd datagrams, os::UniqueFd stream) {
  datagrams_ = std::move(datagrams);
  stream_ = std::move(stream);
  CAISSON_TRY(loop_.Watch(datagrams_.get(), [this](std::uint32_t) { ReceiveDatagrams(); }));
  return loop_.Watch(stream_.get(), [this](std::uint32_t) { Accept(); });
}

void Resolver::DropConnections(std::uint32_t machine) {
  std::vector<std::shared_ptr<Connection>> dropped;
  for (const auto& [fd, connection] : connections_) {
    if (connection->machine == machine) dropped.push_back(connection);
  }
  for (const auto& connection : dropped) Close(connection);
}

void Resolver::ReceiveDatagrams() {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce; ++i) {
    std::array<char, 2048> bytes;
    sockaddr_in from{};
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) PacketInfo control{};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(datagrams_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // EAGAIN, or an error that belongs to an answer sent before
    const auto info = InfoOf(message);
    if ((message.msg_flags & MSG_TRUNC) != 0 || from.sin_family != AF_INET || !info) continue;
    Handle({bytes.data(), static_cast<std::size_t>(got)}, {.query = {},
                                                           .machine = ntohl(from.sin_addr.s_addr),
                                                           .port = ntohs(from.sin_port),
                                                           .asked = ntohl(info->ipi_addr.s_addr),
                                                           .connection = {}});
  }
  loop_.Soon([this] { ReceiveDatagrams(); });
}

void Resolver::Handle(std::string_view message, Asker asker) {
  Machine* machine = machines_.Find(asker.machine);
  auto decoded = DecodeQuery(message);
  if (machine == nullptr || !decoded) return Drop(asker);
  asker.query = std::move(decoded->query);
  if (!machine->questions.Take(loop_.now())) {
    // No answer: a flood must not cost more than to read it.
    machines_.Deny(*machine, {.kind = GateDenialKind::kLimit, .name = asker.query.name},
                   loop_.now());
    return Drop(asker);
  }
  if (decoded->rcode != Rcode::kNoError) {
    return Deny(*machine, asker, GateDenialKind::kQuestion, nullptr, decoded->rcode);
  }
  Decide(*machine, std::move(asker));
}

void Resolver::Decide(Machine& machine, Asker asker) {
  const Query& query = asker.query;
  const bool is_name = query.is_plain && IsGateName(query.name);
  const NameRule* rule = is_name ? machine.FindRule(query.name) : nullptr;
  if (rule == nullptr) {
    const bool is_reverse = query.type == kTypePtr && IsReverse(query);
    return Deny(machine, asker, is_reverse ? GateDenialKind::kQuestion : GateDenialKind::kName,
                nullptr, Rcode::kNoName);
  }
  if (query.record_class != kInternet) {
    return Deny(machine, asker, GateDenialKind::kQuestion, rule, Rcode::kRefused);
  }
  switch (query.type) {
    case kTypeA:
      return LookUp(machine, std::move(asker));
    // Closed, but asked for beside A by programs that would wait: none is there.
    case kTypeAaaa:
    case kTypeHttps:
    case kTypeSvcb:
      return Answer(asker, Rcode::kNoError);
    default:
      return Deny(machine, asker, GateDenialKind::kQuestion, rule, Rcode::kRefused);
  }
}

void Resolver::LookUp(Machine& machine, Asker asker) {
  const std::string name = asker.query.name;
  if (const Pin* pin = machine.FindAnswer(name, loop_.now())) {
    machine.CountAnswer(*machine.FindRule(name));
    return Answer(asker, Rcode::kNoError, pin);
  }
  const LookupKey key{machine.address, name};
  if (const auto found = lookups_.find(key); found != lookups_.end()) {
    auto& askers = found->second.askers;
    if (askers.size() >= kMaxWaiting) return Drop(asker);  // one that comes again and again
    askers.push_back(std::move(asker));
    return;
  }
  if (machine.lookups >= kMaxLookupsOfMachine || lookups_.size() >= kMaxLookups) {
    return Deny(machine, asker, GateDenialKind::kLimit, machine.FindRule(name),
                Rcode::kServerFailure);
  }
  lookups_[key].askers.push_back(std::move(asker));
  ++machine.lookups;
  upstream_.Ask(name, [this, key](const Resolved& resolved) { Resolve(key, resolved); });
}

void Resolver::Resolve(const LookupKey& key, const Resolved& resolved) {
  Machine* machine = machines_.Find(key.first);
  // Its rules may be others than when it asked.
  const NameRule* rule = machine == nullptr ? nullptr : machine->FindRule(key.second);
  if (rule == nullptr) return AnswerAll(key, Rcode::kNoName, nullptr);
  const auto deny = [&](GateDenialKind kind) {
    const std::uint32_t first = resolved.addresses.empty() ? 0 : resolved.addresses.front();
    machines_.Deny(*machine, {.kind = kind, .name = key.second, .address = first, .rule = rule},
                   loop_.now());
  };
  switch (resolved.what) {
    case Resolved::What::kNone:
      return AnswerAll(key, Rcode::kNoError, nullptr);
    case Resolved::What::kNoName:
      return AnswerAll(key, Rcode::kNoName, nullptr);
    case Resolved::What::kFailed:
      deny(GateDenialKind::kResolver);
      return AnswerAll(key, Rcode::kServerFailure, nullptr);
    case Resolved::What::kAddresses:
      break;
  }
  const std::vector<std::uint32_t> open = OpenOnly(resolved.addresses);
  if (open.empty()) {
    deny(GateDenialKind::kRebinding);
    return AnswerAll(key, Rcode::kNoName, nullptr);
  }
  const std::uint32_t seconds = std::clamp(resolved.ttl_seconds, kMinPinSeconds, kMaxPinSeconds);
  PinThese(*machine, key, seconds, open);
}

void Resolver::PinThese(Machine& machine, const LookupKey& key, std::uint32_t seconds,
                        const std::vector<std::uint32_t>& addresses) {
  const std::uint64_t generation = machine.generation;
  // Counted from before the packet filter counts, so that ours ends first.
  const Pin pin{addresses, loop_.now() + std::chrono::seconds(seconds), generation};
  pin_(machine, key.second, seconds, addresses, [this, key, pin](PinEnd end) {
    Machine* now = machines_.Find(key.first);
    if (end == PinEnd::kNoAnswer || now == nullptr || now->generation != pin.generation) {
      // No answer, or other rules since: the guest may ask again.
      return AnswerAll(key, Rcode::kServerFailure, nullptr);
    }
    if (end == PinEnd::kRefused) return AnswerAll(key, Rcode::kNoName, nullptr);
    now->Remember(key.second, pin, loop_.now());
    const NameRule* rule = now->FindRule(key.second);
    if (rule != nullptr) now->CountAnswer(*rule);
    AnswerAll(key, Rcode::kNoError, &pin);
  });
}

void Resolver::AnswerAll(const LookupKey& key, Rcode rcode, const Pin* pin) {
  const auto node = lookups_.extract(key);
  if (Machine* machine = machines_.Find(key.first); machine != nullptr && machine->lookups > 0) {
    --machine->lookups;
  }
  if (node.empty()) return;
  for (const Asker& asker : node.mapped().askers) Answer(asker, rcode, pin);
}

void Resolver::Deny(Machine& machine, const Asker& asker, GateDenialKind kind, const NameRule* rule,
                    Rcode rcode) {
  // That nobody has a name for an address is what programs ask for their logs, and no attempt.
  const bool may_tell = !IsReverse(asker.query);
  machines_.Deny(machine, {.kind = kind, .name = asker.query.name, .rule = rule}, loop_.now(),
                 may_tell);
  Answer(asker, rcode);
}

// Its connection, if that is still there, waits for one answer less.
std::shared_ptr<Resolver::Connection> Resolver::Release(const Asker& asker) {
  auto connection = asker.connection.lock();
  if (connection == nullptr || !connection->fd.valid()) return nullptr;
  --connection->unanswered;
  return connection;
}

// No answer at all.
void Resolver::Drop(const Asker& asker) { (void)Release(asker); }

void Resolver::Answer(const Asker& asker, Rcode rcode, const Pin* pin) {
  static const std::vector<std::uint32_t> kNone;
  std::uint32_t ttl = 0;
  if (pin != nullptr) {
    const auto left = std::chrono::floor<std::chrono::seconds>(pin->until - loop_.now()).count();
    // A program that keeps the answer to its end must still find the address open.
    ttl = static_cast<std::uint32_t>(std::max<std::int64_t>(left - 1, 1));
  }
  const std::string bytes =
      EncodeAnswer(asker.query, rcode, pin != nullptr ? pin->addresses : kNone, ttl,
                   asker.by_tcp ? kMaxTcpMessage : RoomFor(asker.query));
  if (asker.by_tcp) {
    const auto connection = Release(asker);
    if (connection == nullptr) return;
    connection->out += static_cast<char>(bytes.size() >> 8);
    connection->out += static_cast<char>(bytes.size() & 0xff);
    connection->out += bytes;
    // Not at once: the caller may be reading this connection.
    loop_.Soon([this, connection] {
      if (!WriteConnection(connection) || connection->is_done()) Close(connection);
    });
    return;
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(asker.port);
  to.sin_addr.s_addr = htonl(asker.machine);
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) PacketInfo control{};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_spec_dst.s_addr = htonl(asker.asked);
  std::memcpy(CMSG_DATA(header), &info, sizeof info);
  // What finds no room is lost, as datagrams are; the guest asks again.
  (void)::sendmsg(datagrams_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Resolver::Accept() {
  for (;;) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    os::UniqueFd fd(::accept4(stream_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {  // no descriptor: later
        loop_.After(std::chrono::milliseconds(50), [this] { Accept(); });
      }
      return;
    }
    const std::uint32_t address = ntohl(from.sin_addr.s_addr);
    Machine* machine = machines_.Find(address);
    if (machine == nullptr || connections_.size() >= kMaxConnections ||
        machine->connections >= kMaxConnectionsOfMachine) {
      if (machine != nullptr) {
        machines_.Deny(*machine, {.kind = GateDenialKind::kLimit, .port = 53}, loop_.now());
      }
      const linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      continue;
    }
    auto connection = std::make_shared<Connection>();
    connection->machine = address;
    connection->port = ntohs(from.sin_port);
    connection->fd = std::move(fd);
    if (!loop_.Watch(connection->fd.get(),
                     [this, connection](std::uint32_t events) { Ready(connection, events); })) {
      continue;
    }
    ++machine->connections;
    connections_[connection->fd.get()] = connection;
    Rest(connection);
  }
}

// It has this long for its next question.
void Resolver::Rest(const std::shared_ptr<Connection>& connection) {
  if (connection->timer) loop_.Cancel(*connection->timer);
  connection->timer = loop_.After(kIdleConnection, [this, weak = std::weak_ptr(connection)] {
    if (const auto held = weak.lock()) Close(held);
  });
}

void Resolver::Close(const std::shared_ptr<Connection>& connection) {
  if (!connection->fd.valid()) return;
  // The argument may be what is in there.
  const auto node = connections_.extract(connection->fd.get());
  if (connection->timer) loop_.Cancel(*connection->timer);
  if (Machine* machine = machines_.Find(connection->machine);
      machine != nullptr && machine->connections > 0) {
    --machine->connections;
  }
  loop_.Forget(connection->fd.get());
  connection->fd.Reset();
}

void Resolver::Ready(const std::shared_ptr<Connection>& connection, std::uint32_t events) {
  if (!connection->fd.valid()) return;
  if ((events & EPOLLOUT) != 0 && !WriteConnection(connection)) return Close(connection);
  if (!ReadConnection(connection)) Close(connection);
}

// False when it has ended. Answers go out later.
bool Resolver::ReadConnection(const std::shared_ptr<Connection>& connection) {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    std::array<char, 4096> bytes;
    // The analyzer takes weak_ptr::lock for that of a mutex.
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t got = ::recv(connection->fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got < 0) return false;
    if (got == 0) {
      connection->ended = true;
      return connection->in.empty() && !connection->is_done();
    }
    connection->in.append(bytes.data(), static_cast<std::size_t>(got));
    while (connection->in.size() >= 2) {
      const std::size_t size = std::size_t{static_cast<std::uint8_t>(connection->in[0])} << 8 |
                               static_cast<std::uint8_t>(connection->in[1]);
      if (size > 2048) return false;  // no question is that long
      if (connection->in.size() < size + 2) break;
      const std::string message = connection->in.substr(2, size);
      connection->in.erase(0, size + 2);
      Rest(connection);
      ++connection->unanswered;
      Handle(message, {.query = {},
                       .machine = connection->machine,
                       .port = connection->port,
                       .connection = connection,
                       .by_tcp = true});
      if (connection->out.size() > kMostUnsent) return false;
    }
  }
  loop_.Soon([this, connection] { Ready(connection, EPOLLIN); });
  return true;
}

// False when it is broken.
bool Resolver::WriteConnection(const std::shared_ptr<Connection>& connection) {
  if (!connection->fd.valid()) return false;
  std::string& out = connection->out;
  while (!out.empty()) {
    const ssize_t sent = ::send(connection->fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    out.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace caisson::egress::gate
