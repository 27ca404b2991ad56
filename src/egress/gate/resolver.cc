// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/resolver.h"

#include <netinet/in.h>
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

}  // namespace

Resolver::Resolver(Loop& loop, Machines& machines, Upstream& upstream, PinRequest pin,
                   const ResolverOptions& options)
    : loop_(loop),
      machines_(machines),
      upstream_(upstream),
      pin_(std::move(pin)),
      options_(options),
      streams_(loop, machines, options.max_connections,
               [this](std::string_view message, const NameStreams::Asked& asked) {
                 return Handle(message, {.query = {},
                                         .machine = asked.machine,
                                         .port = asked.port,
                                         .connection = asked.connection,
                                         .by_tcp = true});
               }) {}

Resolver::~Resolver() { loop_.Forget(datagrams_.get()); }

Result<void> Resolver::Serve(os::UniqueFd datagrams, os::UniqueFd stream) {
  datagrams_ = std::move(datagrams);
  CAISSON_TRY(loop_.Watch(datagrams_.get(), {}, [this](std::uint32_t) { ReceiveDatagrams(); }));
  return streams_.Serve(std::move(stream));
}

void Resolver::Forget(std::uint32_t machine) {
  streams_.DropConnections(machine);
  for (const LookupKey& key : places_.Of(machine)) {
    const auto node = lookups_.extract(key);
    upstream_.Forget(node.mapped().number);
    places_.Leave(node.mapped().place);
  }
}

void Resolver::ReceiveDatagrams() {
  constexpr int kAtOnce = 16;
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
  loop_.Soon({}, [this] { ReceiveDatagrams(); });
}

// False when the machine asks too much.
bool Resolver::Handle(std::string_view message, Asker asker) {
  Machine* machine = machines_.Find(asker.machine);
  auto decoded = DecodeQuery(message);
  if (machine == nullptr || !decoded) return Drop(asker), true;
  asker.query = std::move(decoded->query);
  if (!machine->questions.Take(loop_.now())) {
    // No answer: a flood must not cost more than to read it.
    machines_.Deny(*machine, {.kind = GateDenialKind::kLimit, .name = asker.query.name},
                   loop_.now());
    return Drop(asker), false;
  }
  if (decoded->rcode != Rcode::kNoError) {
    Deny(*machine, asker, GateDenialKind::kQuestion, nullptr, decoded->rcode);
  } else {
    Decide(*machine, std::move(asker));
  }
  return true;
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
  if (!FindPlace(machine)) {
    return Deny(machine, asker, GateDenialKind::kLimit, machine.FindRule(name),
                Rcode::kServerFailure);
  }
  Lookup& lookup = lookups_[key];
  lookup.askers.push_back(std::move(asker));
  lookup.place = places_.Take(machine.address, key);
  lookup.number =
      upstream_.Ask(name, [this, key](const Resolved& resolved) { Resolve(key, resolved); });
}

// Makes one where all are taken.
bool Resolver::FindPlace(const Machine& machine) {
  if (places_.CountOf(machine.address) >= kMaxLookupsOfMachine) return false;
  if (places_.size() < options_.max_lookups) return true;
  const auto oldest = places_.WhoGoes(machine.address);
  if (!oldest) return false;
  if (Machine* loser = machines_.Find(oldest->first)) {
    machines_.Deny(*loser,
                   {.kind = GateDenialKind::kLimit,
                    .name = oldest->second,
                    .rule = loser->FindRule(oldest->second)},
                   loop_.now());
  }
  upstream_.Forget(lookups_.at(*oldest).number);
  AnswerAll(*oldest, Rcode::kServerFailure, nullptr);
  return true;
}

void Resolver::Resolve(const LookupKey& key, const Resolved& resolved) {
  Machine* machine = machines_.Find(key.first);
  // Its rules may be others than when it asked.
  const NameRule* rule = machine == nullptr ? nullptr : machine->FindRule(key.second);
  if (rule == nullptr) return AnswerAll(key, Rcode::kNoName, nullptr);
  const auto deny = [&](GateDenialKind kind, std::uint32_t address = 0) {
    machines_.Deny(*machine, {.kind = kind, .name = key.second, .address = address, .rule = rule},
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
  const auto is_closed = [](std::uint32_t each) { return OpenParts({each, each}).empty(); };
  std::vector<std::uint32_t> open = resolved.addresses;
  if (const auto closed = std::ranges::find_if(open, is_closed); closed != open.end()) {
    deny(GateDenialKind::kRebinding, *closed);
  }
  std::erase_if(open, is_closed);
  if (open.empty()) return AnswerAll(key, Rcode::kNoName, nullptr);
  const std::uint32_t seconds = std::clamp(resolved.ttl_seconds, kMinPinSeconds, kMaxPinSeconds);
  PinThese(*machine, key, seconds, open);
}

void Resolver::PinThese(Machine& machine, const LookupKey& key, std::uint32_t seconds,
                        const std::vector<std::uint32_t>& addresses) {
  // Counted from before the packet filter counts, so that ours ends first.
  Pin pin{{}, loop_.now() + std::chrono::seconds(seconds), machine.generation};
  pin_(machine, key.second, seconds, addresses,
       [this, key, number = lookups_.at(key).number, pin = std::move(pin)](Opened opened) {
         FinishPin(key, number, pin, std::move(opened));
       });
}

void Resolver::FinishPin(const LookupKey& key, std::uint64_t number, Pin pin, Opened opened) {
  const auto lookup = lookups_.find(key);
  if (lookup == lookups_.end() || lookup->second.number != number) return;  // it had to go
  Machine* machine = machines_.Find(key.first);
  if (!opened || machine == nullptr || machine->generation != pin.generation) {
    // No answer, or other rules since: the guest may ask again.
    return AnswerAll(key, Rcode::kServerFailure, nullptr);
  }
  if (opened->empty()) return AnswerAll(key, Rcode::kNoName, nullptr);
  pin.addresses = *std::move(opened);
  machine->Remember(key.second, pin, loop_.now());
  const NameRule* rule = machine->FindRule(key.second);
  if (rule != nullptr) machine->CountAnswer(*rule);
  AnswerAll(key, Rcode::kNoError, &pin);
}

void Resolver::AnswerAll(const LookupKey& key, Rcode rcode, const Pin* pin) {
  const auto node = lookups_.extract(key);
  if (node.empty()) return;
  for (const Asker& asker : node.mapped().askers) Answer(asker, rcode, pin);
  places_.Leave(node.mapped().place);  // the argument may be what is in there
}

void Resolver::Deny(Machine& machine, const Asker& asker, GateDenialKind kind, const NameRule* rule,
                    Rcode rcode) {
  // That nobody has a name for an address is what programs ask for their logs, and no attempt.
  const bool may_tell = !IsReverse(asker.query);
  machines_.Deny(machine, {.kind = kind, .name = asker.query.name, .rule = rule}, loop_.now(),
                 may_tell);
  Answer(asker, rcode);
}

// No answer at all.
void Resolver::Drop(const Asker& asker) {
  if (asker.by_tcp) streams_.Drop(asker.connection);
}

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
  if (asker.by_tcp) return streams_.Answer(asker.connection, bytes);
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

}  // namespace caisson::egress::gate
