// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/gate/http_requests.h"
#include "egress/gate/tls_hello.h"
#include "egress/gate/tls_retry.h"

namespace caisson::egress::gate {
namespace {

constexpr int kOriginalDestination = 80;  // SO_ORIGINAL_DST of linux/netfilter_ipv4.h
constexpr std::size_t kMaxEarly = 64u << 10;
constexpr std::size_t kMaxNames = 32;  // of one connection

void SetOption(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// Of a destination before the connection is made: how much may be under way is agreed upon then.
void SetBuffers(int fd, int bytes) {
  SetOption(fd, SOL_SOCKET, SO_RCVBUF, bytes);
  SetOption(fd, SOL_SOCKET, SO_SNDBUF, bytes);
}

// A peer that is gone without a word is noticed within two minutes.
void Prepare(int fd) {
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

sockaddr_in SocketAddress(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(endpoint.address);
  return address;
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

GateDenialKind KindOf(HttpRequests::What what) {
  if (what == HttpRequests::What::kTunnel) return GateDenialKind::kTunnel;
  if (what == HttpRequests::What::kNoHost) return GateDenialKind::kNoName;
  return GateDenialKind::kMalformed;
}

}  // namespace

std::optional<Endpoint> OriginalDestination(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockopt(fd, IPPROTO_IP, kOriginalDestination, &address, &size) != 0 ||
      address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return Endpoint{ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

struct Proxy::Flow {
  enum class Stage : std::uint8_t { kNaming, kDialling, kRelaying, kEnded };
  Stage stage = Stage::kNaming;
  std::uint32_t machine = 0;
  Places<FlowPointer>::Place place;
  Endpoint to;
  os::UniqueFd guest, world;
  std::string early;  // what the guest has sent before it could go on
  TlsHello hello;
  std::optional<TlsRetry> retry;
  HttpRequests requests;
  std::string name;             // the last one
  std::set<std::string> names;  // all that this connection was used for
  bool is_http = false;
  std::optional<Relay> relay;
  Loop::TimerId timer;
  Clock::time_point active;  // when something moved last
  bool is_wide = false;
  int buffer() const { return is_wide ? kWideBytes : kNarrowBytes; }
  Lane lane() const { return {.rank = Rank::kBulk, .party = machine}; }
};

Proxy::~Proxy() {
  for (const FlowPointer& flow : flows_.All()) End(flow, true);
  loop_.Forget(listener_.get());
}

Result<void> Proxy::Serve(os::UniqueFd listener) {
  listener_ = std::move(listener);
  SetBuffers(listener_.get(), kWideBytes);  // of those that it takes, too
  return loop_.Watch(listener_.get(), {}, [this](std::uint32_t) { Accept(); });
}

void Proxy::Accept() {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    os::UniqueFd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {  // no descriptor: later
        loop_.After(std::chrono::milliseconds(50), [this] { Accept(); });
      }
      return;
    }
    ResetOnClose(fd.get());
    Begin(std::move(fd), ntohl(from.sin_addr.s_addr));
  }
  loop_.Soon({}, [this] { Accept(); });
}

void Proxy::Begin(os::UniqueFd guest, std::uint32_t address) {
  Machine* machine = machines_.Find(address);
  const auto to = options_.destination(guest.get());
  if (machine == nullptr || !to) return;
  if (!FindPlace(*machine)) {
    machines_.Deny(*machine,
                   {.kind = GateDenialKind::kLimit, .address = to->address, .port = to->port},
                   loop_.now());
    return;
  }
  Prepare(guest.get());
  SetOption(guest.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMostUnsent);
  auto flow = std::make_shared<Flow>();
  flow->machine = address;
  flow->to = *to;
  flow->guest = std::move(guest);
  if (!loop_.Watch(flow->guest.get(), flow->lane(),
                   [this, weak = std::weak_ptr(flow)](std::uint32_t events) {
                     if (const FlowPointer held = weak.lock()) Ready(held, true, events);
                   })) {
    return;
  }
  flow->timer = loop_.After(options_.patience_for_name, [this, weak = std::weak_ptr(flow)] {
    if (const FlowPointer held = weak.lock()) Refuse(held, GateDenialKind::kNoName, "");
  });
  flow->is_wide =
      wide_ < options_.max_wide && flows_.CountOf(address) < options_.max_wide_of_machine;
  if (flow->is_wide) {
    ++wide_;
  } else {
    SetBuffers(flow->guest.get(), kNarrowBytes);
  }
  flow->place = flows_.Take(address, flow);
}

// Makes one where all are taken.
bool Proxy::FindPlace(const Machine& machine) {
  if (flows_.CountOf(machine.address) >= options_.max_flows_of_machine) return false;
  if (flows_.size() < options_.max_flows) return true;
  const auto idlest = flows_.WhoGoes(machine.address);
  if (!idlest) return false;
  Refuse(*idlest, GateDenialKind::kLimit, (*idlest)->name);
  return true;
}

void Proxy::Ready(const FlowPointer& flow, bool of_guest, std::uint32_t events) {
  const bool failed = (events & EPOLLERR) != 0;
  switch (flow->stage) {
    case Flow::Stage::kNaming:
      if (of_guest) ReadName(flow);
      return;
    case Flow::Stage::kDialling:
      if (of_guest && failed) return End(flow, true);
      if (!of_guest) Dialled(flow);
      return;
    case Flow::Stage::kRelaying:
      return Continue(flow, of_guest, !of_guest, failed);
    case Flow::Stage::kEnded:
      return;
  }
}

void Proxy::ReadName(const FlowPointer& flow) {
  while (flow->stage == Flow::Stage::kNaming) {
    std::array<char, 16384> bytes;
    // The analyzer takes weak_ptr::lock for that of a mutex.
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t got = ::recv(flow->guest.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return End(flow, true);
    const std::string_view more(bytes.data(), static_cast<std::size_t>(got));
    flow->early += more;
    flow->is_http = !BeginsTls(flow->early.front());
    if (flow->is_http) {
      const auto step = flow->requests.Next(flow->early, flow->to.port);
      if (step.what == HttpRequests::What::kHead) {
        flow->name = flow->requests.host();
      } else if (step.what != HttpRequests::What::kMore) {
        return Refuse(flow, KindOf(step.what), flow->requests.claimed());
      }
    } else if (flow->to.port == kHttpPort) {
      // Nobody speaks TLS there; a server that reads it as HTTP would see what nobody has checked.
      return Refuse(flow, GateDenialKind::kMalformed, "");
    } else {
      const TlsHello::State state = flow->hello.Feed(more);
      if (state == TlsHello::State::kBad) return Refuse(flow, GateDenialKind::kMalformed, "");
      if (state == TlsHello::State::kWhole) {
        if (flow->hello.name().empty()) return Refuse(flow, GateDenialKind::kNoName, "");
        flow->name = flow->hello.name();
      }
    }
    if (!flow->name.empty()) {
      if (!Admit(*flow, flow->name)) return End(flow, true);
      return Dial(flow);
    }
    if (flow->early.size() > kMaxEarly) return Refuse(flow, GateDenialKind::kMalformed, "");
  }
}

bool Proxy::Admit(Flow& flow, const std::string& name) {
  Machine* machine = machines_.Find(flow.machine);
  if (machine == nullptr) return false;
  const NameRule* rule = machine->rules.Find(name, flow.to.port);
  if (rule == nullptr) {
    Deny(flow, GateDenialKind::kForeignName, name);
    return false;
  }
  // A name that this connection was opened for stays good after its pin has ended.
  const bool is_known = flow.names.contains(name);
  if (!is_known && flow.names.size() >= kMaxNames) {
    Deny(flow, GateDenialKind::kLimit, name, rule);
    return false;
  }
  if (!is_known && !machine->IsPinned(name, flow.to.address, loop_.now())) {
    Deny(flow, GateDenialKind::kForeignAddress, name, rule);
    return false;
  }
  if (!is_known) machine->CountConnection(*rule);
  flow.names.insert(name);
  flow.name = name;
  return true;
}

void Proxy::Dial(const FlowPointer& flow) {
  loop_.Cancel(flow->timer);
  flow->stage = Flow::Stage::kDialling;
  flow->world = os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!flow->world.valid()) return Refuse(flow, GateDenialKind::kLimit, flow->name);
  SetBuffers(flow->world.get(), flow->buffer());
  Prepare(flow->world.get());
  ResetOnClose(flow->world.get());
  const sockaddr_in address = SocketAddress(options_.dialled(flow->to));
  const int result =
      ::connect(flow->world.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result != 0 && errno != EINPROGRESS) {
    return Refuse(flow, GateDenialKind::kUnreachable, flow->name);
  }
  flow->timer = loop_.After(options_.patience_for_answer, [this, weak = std::weak_ptr(flow)] {
    if (const FlowPointer held = weak.lock()) {
      Refuse(held, GateDenialKind::kUnreachable, held->name);
    }
  });
  if (!loop_.Watch(flow->world.get(), flow->lane(),
                   [this, weak = std::weak_ptr(flow)](std::uint32_t events) {
                     if (const FlowPointer held = weak.lock()) Ready(held, false, events);
                   })) {
    return End(flow, true);
  }
}

void Proxy::Dialled(const FlowPointer& flow) {
  if (ErrorOf(flow->world.get()) != 0) {
    return Refuse(flow, GateDenialKind::kUnreachable, flow->name);
  }
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(flow->world.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return;  // not yet
  }
  loop_.Cancel(flow->timer);
  flow->stage = Flow::Stage::kRelaying;
  flow->relay.emplace(pipes_, flow->guest.get(), flow->world.get(), std::exchange(flow->early, {}),
                      LooksOf(*flow));
  flow->active = loop_.now();
  EndWhenIdle(flow);
  Continue(flow, true, true, false);
}

// Looks now and then: a timer for every byte would cost more.
void Proxy::EndWhenIdle(const FlowPointer& flow) {
  const auto patience =
      flow->relay->is_half_closed() ? options_.patience_half_closed : options_.patience_idle;
  if (loop_.now() - flow->active >= patience) return End(flow, true);
  flow->timer = loop_.After(std::min(options_.patience_half_closed, options_.patience_idle),
                            [this, weak = std::weak_ptr(flow)] {
                              if (const FlowPointer held = weak.lock()) EndWhenIdle(held);
                            });
}

// What is looked at from the first byte on.
Relay::Looks Proxy::LooksOf(Flow& flow) {
  if (flow.is_http) {
    flow.requests = {};
    return {.out = [this, &flow](std::string_view bytes) { return Inspect(flow, bytes); },
            .in = {}};
  }
  flow.retry.emplace(flow.name, flow.hello.size());
  return {.out = [this, &flow](std::string_view bytes) { return InspectHello(flow, bytes); },
          .in = [&flow](std::string_view bytes) { return flow.retry->FromServer(bytes); }};
}

Relay::Verdict Proxy::InspectHello(Flow& flow, std::string_view bytes) {
  const Relay::Verdict verdict = flow.retry->FromClient(bytes);
  if (verdict.refused) {
    const std::string& other = flow.retry->other_name();
    Deny(flow, other.empty() ? GateDenialKind::kMalformed : GateDenialKind::kForeignName, other);
  }
  return verdict;
}

Relay::Verdict Proxy::Inspect(Flow& flow, std::string_view bytes) {
  Relay::Verdict verdict;
  for (int i = 0; i < kRequestsAtOnce && verdict.size < bytes.size(); ++i) {
    const auto step = flow.requests.Next(bytes.substr(verdict.size), flow.to.port);
    if (step.what == HttpRequests::What::kMore) break;
    // For the host of the last one it goes on: new rules that do not allow it would have ended it.
    const bool passes = step.what == HttpRequests::What::kBody ||
                        (step.what == HttpRequests::What::kHead &&
                         (flow.requests.host() == flow.name || Admit(flow, flow.requests.host())));
    if (!passes) {
      if (step.what != HttpRequests::What::kHead) {
        Deny(flow, KindOf(step.what), flow.requests.claimed());
      }
      return {.refused = true, .size = 0};
    }
    verdict.size += step.size;
  }
  if (verdict.size == bytes.size()) verdict.ahead = flow.requests.TakeBody();
  return verdict;
}

void Proxy::Continue(const FlowPointer& flow, bool guest_ready, bool world_ready, bool failed) {
  if (flow->stage != Flow::Stage::kRelaying) return;
  flow->active = loop_.now();
  flows_.Refresh(flow->place);
  const Relay::State state = flow->relay->Continue(guest_ready, world_ready, loop_.now() + kSlice);
  switch (state) {
    case Relay::State::kOpen:
      if (failed) End(flow, true);
      return;
    case Relay::State::kAgain:
      return loop_.Soon(flow->lane(), [this, weak = std::weak_ptr(flow), failed] {
        if (const FlowPointer held = weak.lock()) Continue(held, false, false, failed);
      });
    case Relay::State::kDone:
      return End(flow, false);
    case Relay::State::kBroken:
    case Relay::State::kRefused:
      return End(flow, true);
  }
}

void Proxy::Deny(const Flow& flow, GateDenialKind kind, std::string_view name,
                 const NameRule* rule) {
  if (Machine* machine = machines_.Find(flow.machine)) {
    machines_.Deny(*machine,
                   {.kind = kind,
                    .name = name,
                    .address = flow.to.address,
                    .port = flow.to.port,
                    .rule = rule},
                   loop_.now());
  }
}

void Proxy::Refuse(const FlowPointer& flow, GateDenialKind kind, std::string_view name) {
  Deny(*flow, kind, name);
  End(flow, true);
}

void Proxy::End(const FlowPointer& ended, bool reset) {
  const FlowPointer flow = ended;  // the argument may be what is in the table
  if (flow->stage == Flow::Stage::kEnded) return;
  flows_.Leave(flow->place);
  if (flow->is_wide) --wide_;
  flow->stage = Flow::Stage::kEnded;
  loop_.Cancel(flow->timer);
  flow->relay.reset();
  for (os::UniqueFd* fd : {&flow->guest, &flow->world}) {
    if (!fd->valid()) continue;
    loop_.Forget(fd->get());
    if (!reset) {
      const linger in_order{.l_onoff = 0, .l_linger = 0};
      ::setsockopt(fd->get(), SOL_SOCKET, SO_LINGER, &in_order, sizeof in_order);
    }
    fd->Reset();
  }
}

void Proxy::Recheck(Machine& machine) {
  for (const FlowPointer& flow : flows_.Of(machine.address)) {
    const auto lost = std::ranges::find_if(flow->names, [&](const std::string& name) {
      return machine.rules.Find(name, flow->to.port) == nullptr;
    });
    if (lost != flow->names.end()) Refuse(flow, GateDenialKind::kPolicyChanged, *lost);
  }
}

void Proxy::DropFlows(std::uint32_t machine) {
  for (const FlowPointer& flow : flows_.Of(machine)) End(flow, true);
}

}  // namespace caisson::egress::gate
