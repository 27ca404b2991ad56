// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/upstream.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <list>
#include <string_view>
#include <utility>

#include "egress/gate/dns_message.h"
#include "os/fd.h"

namespace caisson::egress::gate {
namespace {

constexpr int kMaxFollowed = 4;
constexpr int kMaxNonsense = 32;  // datagrams that are no answer, per attempt

void FillRandom(void* bytes, std::size_t size) {
  // Without random numbers answers can be guessed. Short requests are never cut (random(7)).
  if (::getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) std::abort();
}

// The same name with letters in random case (draft-vixie-dnsext-dns0x20).
std::string MixCase(std::string wire) {
  std::array<std::uint8_t, 32> bits;
  FillRandom(bits.data(), bits.size());
  for (std::size_t at = 0; wire[at] != 0;) {
    const auto end = at + 1 + static_cast<std::uint8_t>(wire[at]);
    for (++at; at < end; ++at) {
      const bool flip = (bits[at / 8 % bits.size()] >> at % 8 & 1) != 0;
      if (flip && wire[at] >= 'a' && wire[at] <= 'z') wire[at] = static_cast<char>(wire[at] - 32);
    }
  }
  return wire;
}

sockaddr_in SocketAddress(const GateConfigure::Server& server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  address.sin_addr.s_addr = htonl(server.address);
  return address;
}

// Connected, so that only what this server sends comes in. By TCP it is under way.
os::UniqueFd Connect(int type, const GateConfigure::Server& server) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_in address = SocketAddress(server);
  if (fd.valid() &&
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    fd.Reset();
  }
  return fd;
}

}  // namespace

class Upstream::Lookup {
 public:
  Lookup(Upstream& owner, std::uint64_t number, const std::string& name, Done done)
      : owner_(owner), number_(number), name_(WireName(name)), done_(std::move(done)) {
    deadline_ = owner_.loop_.After(kPatience, [this] { Finish({}); });
  }
  ~Lookup() {
    owner_.loop_.Cancel(deadline_);
    owner_.loop_.Cancel(next_);
    CloseAll();
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  void Begin() {
    attempt_ = 0;
    Next();
  }

 private:
  struct Attempt {
    std::size_t server = 0;
    std::uint16_t id = 0;
    std::string question;  // the name as it was asked
    bool by_tcp = false;
    bool over = false;  // it has failed; its socket goes
    int nonsense = 0;
    os::UniqueFd fd;
    std::string out, in;  // by TCP
  };

  void Finish(const Resolved& resolved) {
    const Done done = std::move(done_);
    Upstream& owner = owner_;
    const std::uint64_t number = number_;
    owner.lookups_.erase(number);  // this
    done(resolved);
  }

  void CloseAll() {
    for (Attempt& each : attempts_) owner_.loop_.Forget(each.fd.get());
    attempts_.clear();
  }

  // The next attempt; the earlier ones may still be answered.
  void Next() {
    owner_.loop_.Cancel(next_);
    while (attempt_ < std::size(kAttempts) && !owner_.servers_.empty()) {
      const std::size_t number = attempt_++;
      if (!Send(number % owner_.servers_.size(), number + 1 == std::size(kAttempts))) continue;
      if (attempt_ < std::size(kAttempts)) {
        next_ = owner_.loop_.After(kAttempts[number], [this] { Next(); });
      }
      return;
    }
    GiveUpIfOver();
  }

  void GiveUpIfOver() {
    if (owner_.servers_.empty()) {
      // Not from within Ask.
      owner_.loop_.Cancel(deadline_);
      deadline_ = owner_.loop_.After(std::chrono::milliseconds(0), [this] { Finish({}); });
      return;
    }
    if (attempt_ < std::size(kAttempts)) return;
    for (const Attempt& each : attempts_) {
      if (!each.over) return;
    }
    owner_.loop_.Cancel(deadline_);
    deadline_ = owner_.loop_.After(std::chrono::milliseconds(0), [this] { Finish({}); });
  }

  // `plain`: for old servers, without EDNS and with the letters as they are.
  bool Send(std::size_t server, bool plain) {
    Attempt& attempt = attempts_.emplace_back();
    attempt.server = server;
    FillRandom(&attempt.id, sizeof attempt.id);
    attempt.question = plain ? name_ : MixCase(name_);
    attempt.fd = Connect(SOCK_DGRAM, owner_.servers_[server]);
    const std::string message = EncodeQuestion(attempt.id, attempt.question, !plain);
    if (!attempt.fd.valid() || !Watch(attempt) ||
        ::send(attempt.fd.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) {
      owner_.loop_.Forget(attempt.fd.get());
      attempts_.pop_back();
      return false;
    }
    return true;
  }

  bool Watch(Attempt& attempt) {
    return owner_.loop_
        .Watch(attempt.fd.get(), {},
               [this, &attempt](std::uint32_t events) { Ready(attempt, events); })
        .has_value();
  }

  void Ready(Attempt& attempt, std::uint32_t events) {
    if (attempt.over) return;
    if (attempt.by_tcp) return ReadyByTcp(attempt, events);
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0) return;
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t got = ::recv(attempt.fd.get(), bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got < 0) return Fail(attempt);  // nobody listens there
      if (Take(attempt, {bytes.data(), static_cast<std::size_t>(got)})) return;
      if (++attempt.nonsense > kMaxNonsense) return Fail(attempt);
    }
  }

  void ReadyByTcp(Attempt& attempt, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && !attempt.out.empty()) {
      const ssize_t sent =
          ::send(attempt.fd.get(), attempt.out.data(), attempt.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return Fail(attempt);
      }
      if (sent > 0) attempt.out.erase(0, static_cast<std::size_t>(sent));
    }
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t got = ::recv(attempt.fd.get(), bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN)) return;
      if (got <= 0) return Fail(attempt);
      attempt.in.append(bytes.data(), static_cast<std::size_t>(got));
      if (attempt.in.size() < 2) continue;
      const std::size_t size = std::size_t{static_cast<std::uint8_t>(attempt.in[0])} << 8 |
                               static_cast<std::uint8_t>(attempt.in[1]);
      if (attempt.in.size() < size + 2) continue;
      if (!Take(attempt, std::string_view(attempt.in).substr(2, size))) Fail(attempt);
      return;
    }
  }

  void Fail(Attempt& attempt) {
    Close(attempt);
    if (attempt_ < std::size(kAttempts)) return Next();
    GiveUpIfOver();
  }
  void Close(Attempt& attempt) {
    attempt.over = true;
    owner_.loop_.Forget(attempt.fd.get());
    attempt.fd.Reset();
  }

  // True when `message` was the answer to `attempt`; `this` may be gone then.
  bool Take(Attempt& attempt, std::string_view message) {
    auto answer = DecodeAnswer(message, attempt.id, attempt.question);
    if (!answer) return false;
    if (answer->truncated) {
      attempt.by_tcp ? Fail(attempt) : AskByTcp(attempt);
      return true;
    }
    if (answer->rcode == Rcode::kNoName) {
      Finish({.what = Resolved::What::kNoName});
      return true;
    }
    if (answer->rcode != Rcode::kNoError) {
      Fail(attempt);
      return true;
    }
    if (!answer->addresses.empty()) {
      Finish({.what = Resolved::What::kAddresses,
              .addresses = std::move(answer->addresses),
              .ttl_seconds = followed_ > 0 ? 0 : answer->ttl_seconds});
      return true;
    }
    const bool moves_on = answer->last_name != name_ && answer->last_name.size() > 1;
    if (!moves_on || followed_ == kMaxFollowed) {
      Finish({.what = Resolved::What::kNone});
      return true;
    }
    // The rest of the chain. How long its start lives was not kept: the answer gets no lifetime.
    ++followed_;
    name_ = std::move(answer->last_name);
    CloseAll();
    Begin();
    return true;
  }

  void AskByTcp(Attempt& attempt) {
    owner_.loop_.Forget(attempt.fd.get());
    attempt.fd.Reset();
    attempt.by_tcp = true;
    FillRandom(&attempt.id, sizeof attempt.id);
    const std::string message = EncodeQuestion(attempt.id, attempt.question, false);
    attempt.out = {static_cast<char>(message.size() >> 8), static_cast<char>(message.size())};
    attempt.out += message;
    attempt.fd = Connect(SOCK_STREAM, owner_.servers_[attempt.server]);
    if (!attempt.fd.valid() || !Watch(attempt)) Fail(attempt);
  }

  Upstream& owner_;
  const std::uint64_t number_;
  std::string name_;
  Done done_;
  Loop::TimerId deadline_;
  Loop::TimerId next_;
  std::size_t attempt_ = 0;
  int followed_ = 0;
  std::list<Attempt> attempts_;
};

Upstream::Upstream(Loop& loop, std::vector<GateConfigure::Server> servers)
    : loop_(loop), servers_(std::move(servers)) {}
Upstream::~Upstream() = default;

void Upstream::Forget(std::uint64_t number) { lookups_.erase(number); }

std::uint64_t Upstream::Ask(const std::string& name, Done done) {
  const std::uint64_t number = ++last_;
  auto& lookup = lookups_[number];
  lookup = std::make_unique<Lookup>(*this, number, name, std::move(done));
  lookup->Begin();
  return number;
}

}  // namespace caisson::egress::gate
