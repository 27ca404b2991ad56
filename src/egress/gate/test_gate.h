// SPDX-License-Identifier: Apache-2.0
// For tests: a gate on a thread of this process, over loopback sockets, with a helper, resolvers
// and destinations that do what a test wants. Machines are addresses of 127.0.0.0/8.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "egress/address.h"
#include "egress/gate/gate.h"
#include "egress/gate_channel.h"
#include "os/fd.h"

namespace caisson::egress::gate {

inline constexpr std::uint32_t kLoopback = 0x7f000001;
inline constexpr std::uint32_t kMachine = 0x7f000102;       // 127.0.1.2
inline constexpr std::uint32_t kOtherMachine = 0x7f000103;  // 127.0.1.3
inline constexpr int kLongMilliseconds = 20'000;            // for what must come

inline sockaddr_in LoopbackAddress(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(address);
  return result;
}

inline std::uint16_t PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

inline os::UniqueFd Bound(int type, std::uint32_t address, std::uint16_t port = 0) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if ((type & 0xf) == SOCK_DGRAM) ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  const sockaddr_in to = LoopbackAddress(address, port);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}
inline os::UniqueFd Listening(std::uint32_t address, std::uint16_t port = 0, int flags = 0) {
  os::UniqueFd fd = Bound(SOCK_STREAM | flags, address, port);
  EXPECT_EQ(::listen(fd.get(), 256), 0);
  return fd;
}
inline bool AwaitReadable(int fd, int milliseconds = kLongMilliseconds) {
  pollfd event{fd, POLLIN, 0};
  return ::poll(&event, 1, milliseconds) > 0;
}

// A name server that answers as `answer` says: the datagrams (or frames) to send for one question.
class FakeServer {
 public:
  using Answer = std::function<std::vector<std::string>(const std::string& question, bool by_tcp)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    stream_ = Listening(kLoopback);
    datagrams_ = Bound(SOCK_DGRAM, kLoopback, PortOf(stream_.get()));
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeServer() {
    stop_ = true;
    thread_.join();
  }
  GateConfigure::Server address() const { return {kLoopback, PortOf(datagrams_.get())}; }
  std::vector<std::string> questions() const {
    const std::lock_guard lock(mutex_);
    return questions_;
  }

 private:
  void Serve() {
    while (!stop_) {
      std::array<pollfd, 2> events = {pollfd{datagrams_.get(), POLLIN, 0},
                                      pollfd{stream_.get(), POLLIN, 0}};
      if (::poll(events.data(), events.size(), 20) <= 0) continue;
      if (events[0].revents != 0) AnswerDatagram();
      if (events[1].revents != 0) AnswerStream();
    }
  }
  std::vector<std::string> AnswerTo(const std::string& question, bool by_tcp) {
    {
      const std::lock_guard lock(mutex_);
      questions_.push_back(question);
    }
    return answer_(question, by_tcp);
  }
  void AnswerDatagram() {
    std::array<char, 2048> bytes;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = ::recvfrom(datagrams_.get(), bytes.data(), bytes.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return;
    for (const std::string& each : AnswerTo({bytes.data(), static_cast<std::size_t>(got)}, false)) {
      ::sendto(datagrams_.get(), each.data(), each.size(), 0,
               reinterpret_cast<const sockaddr*>(&from), size);
    }
  }
  void AnswerStream() {
    const os::UniqueFd fd(::accept4(stream_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string in;
    while (AwaitReadable(fd.get(), 2000)) {
      std::array<char, 2048> bytes;
      const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      in.append(bytes.data(), static_cast<std::size_t>(got));
      if (in.size() < 2 || in.size() < 2u + static_cast<unsigned char>(in[1])) continue;
      for (const std::string& each : AnswerTo(in.substr(2), true)) {
        std::string frame = {static_cast<char>(each.size() >> 8), static_cast<char>(each.size())};
        frame += each;
        ::send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
      }
      return;
    }
  }

  const Answer answer_;
  os::UniqueFd stream_, datagrams_;
  mutable std::mutex mutex_;
  std::vector<std::string> questions_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

inline NameRule RuleFor(std::string name, std::optional<std::uint16_t> port = {},
                        std::size_t index = 0) {
  NameRule rule{.port = port, .index = index};
  rule.wildcard = name.starts_with("*.");
  rule.name = rule.wildcard ? name.substr(2) : std::move(name);
  return rule;
}

class TestGate {
 public:
  struct Options {
    std::vector<GateConfigure::Server> resolvers;
    ProxyOptions proxy;
    ResolverOptions names;
    // What the helper opens of a pin; empty: it says nothing at all.
    std::function<Resolver::Opened(const GatePin&)> pin = [](const GatePin& wish) {
      return wish.addresses;
    };
  };

  struct Counted {
    std::size_t denials = 0;
    std::size_t answers = 0;
    std::size_t connections = 0;
  };

  explicit TestGate(Options options) : options_(std::move(options)) {
    os::FdPair pair = os::MakeSocketPair(1u << 20).value();
    channel_.emplace(std::move(pair.first));
    wake_ = os::MakeEventFd().value();
    options_.proxy.destination = [this](int fd) { return Destination(fd); };
    options_.proxy.dialled = [this](const Endpoint& to) {
      const std::lock_guard lock(mutex_);
      const auto found = served_.find({to.address, to.port});
      return found == served_.end() ? Endpoint{kLoopback, 1} : Endpoint{kLoopback, found->second};
    };
    os::UniqueFd names_stream = Listening(0, 0, SOCK_NONBLOCK);
    names_port_ = PortOf(names_stream.get());
    os::UniqueFd names = Bound(SOCK_DGRAM | SOCK_NONBLOCK, 0, names_port_);
    os::UniqueFd proxy = Listening(0, 0, SOCK_NONBLOCK);
    proxy_port_ = PortOf(proxy.get());
    gate_ = std::thread([this, fd = std::make_shared<os::UniqueFd>(std::move(pair.second))] {
      Gate gate(Loop::Make().value(), std::move(*fd), options_.proxy, options_.names);
      end_ = gate.Run({});
    });
    std::vector<os::UniqueFd> sockets;
    sockets.push_back(std::move(names));
    sockets.push_back(std::move(names_stream));
    sockets.push_back(std::move(proxy));
    channel_->Queue(GateConfigure{.resolvers = options_.resolvers}, std::move(sockets));
    helper_ = std::thread([this] { Help(); });
  }
  ~TestGate() {
    stop_ = true;
    Wake();
    helper_.join();
    ::shutdown(channel_->fd(), SHUT_WR);  // the gate ends with it, and may still tell something
    gate_.join();
    EXPECT_TRUE(end_) << end_.error().message;
  }

  // As the helper: returns once the gate holds to it.
  void SetMachine(std::uint32_t address, std::uint64_t generation, std::vector<NameRule> rules) {
    SetMachines({{.address = address, .generation = generation, .rules = std::move(rules)}});
  }
  // All at once.
  void SetMachines(const std::vector<GateMachine>& machines) {
    {
      const std::lock_guard lock(mutex_);
      outbox_.insert(outbox_.end(), machines.begin(), machines.end());
    }
    Wake();
    for (const GateMachine& each : machines) {
      Await([&] { return applied_[each.address] == each.generation; });
    }
  }
  void Forget(std::uint32_t address) {
    Post(GateForget{.address = address});
    Await([&] { return applied_[address] == 0; });
  }
  // The helper's view.
  std::vector<GatePin> pins() {
    const std::lock_guard lock(mutex_);
    return pins_;
  }
  std::vector<GateDenial> denials() {
    const std::lock_guard lock(mutex_);
    return denials_;
  }
  // "foreign_name evil.test" of the `count`th denial, which may still be on its way.
  std::string Denial(std::size_t count) {
    std::string text;
    Await([&] { return denials_.size() >= count; });
    const std::lock_guard lock(mutex_);
    if (denials_.size() < count) return "none";
    const GateDenial& denial = denials_[count - 1];
    return std::string(GateDenialName(denial.kind)) + " " + denial.name;
  }
  template <typename Holds>
  void AwaitCounters(Holds holds) {
    Await([&] { return holds(counted_); });
  }

  // --- as a guest ---

  // Sends to the resolver from this machine's address; the answer, empty when none comes in time.
  std::string Ask(const std::string& message, std::uint32_t from = kMachine,
                  int patience = kLongMilliseconds) {
    const os::UniqueFd fd = AskLater(message, from);
    return Answer(fd, patience);
  }
  os::UniqueFd AskLater(const std::string& message, std::uint32_t from = kMachine) {
    os::UniqueFd fd = Bound(SOCK_DGRAM, from);
    const sockaddr_in to = LoopbackAddress(kLoopback, names_port_);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_GE(::send(fd.get(), message.data(), message.size(), 0), 0);
    return fd;
  }
  static std::string Answer(const os::UniqueFd& fd, int patience = kLongMilliseconds) {
    std::array<char, 4096> bytes;
    if (!AwaitReadable(fd.get(), patience)) return "";
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    return got > 0 ? std::string(bytes.data(), static_cast<std::size_t>(got)) : "";
  }
  os::UniqueFd ConnectToNames(std::uint32_t from = kMachine) {
    os::UniqueFd fd = Bound(SOCK_STREAM, from);
    const sockaddr_in to = LoopbackAddress(kLoopback, names_port_);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  // A connection of this machine to `to`, which "the packet filter" redirects to the gate.
  os::UniqueFd Connect(const Endpoint& to, std::uint32_t from = kMachine) {
    os::UniqueFd fd = Bound(SOCK_STREAM, from);
    {
      const std::lock_guard lock(mutex_);
      destinations_[PortOf(fd.get())] = to;
    }
    const sockaddr_in proxy = LoopbackAddress(kLoopback, proxy_port_);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&proxy), sizeof proxy), 0);
    return fd;
  }
  // Who listens on `port` of loopback stands for `at`.
  void Serve(const Endpoint& at, std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    served_[{at.address, at.port}] = port;
  }

 private:
  std::optional<Endpoint> Destination(int fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
    const std::lock_guard lock(mutex_);
    const auto found = destinations_.find(ntohs(peer.sin_port));
    if (found == destinations_.end()) return std::nullopt;
    return found->second;
  }
  void Post(GateMessage message) {
    {
      const std::lock_guard lock(mutex_);
      outbox_.push_back(std::move(message));
    }
    Wake();
  }
  void Wake() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(wake_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  template <typename Holds>
  void Await(Holds holds) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kLongMilliseconds), holds));
  }
  void Help() {
    while (!stop_) {
      {
        const std::lock_guard lock(mutex_);
        for (GateMessage& message : std::exchange(outbox_, {})) channel_->Queue(message);
      }
      ASSERT_TRUE(channel_->Send());
      const short wanted = channel_->waiting() > 0 ? POLLIN | POLLOUT : POLLIN;
      std::array<pollfd, 2> events = {pollfd{channel_->fd(), wanted, 0},
                                      pollfd{wake_.get(), POLLIN, 0}};
      ::poll(events.data(), events.size(), -1);
      std::uint64_t count = 0;
      if (events[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
      const auto open = channel_->Receive();
      ASSERT_TRUE(open && *open);
      for (;;) {
        auto message = channel_->Next();
        ASSERT_TRUE(message) << message.error().message;
        if (!*message) break;
        Take(**message);
      }
    }
  }
  void Take(const GateMessage& message) {
    const std::lock_guard lock(mutex_);
    if (const auto* applied = std::get_if<GateApplied>(&message)) {
      applied_[applied->address] = applied->generation;
    } else if (const auto* pin = std::get_if<GatePin>(&message)) {
      pins_.push_back(*pin);
      if (auto opened = options_.pin(*pin)) {
        channel_->Queue(GatePinned{.id = pin->id, .addresses = *std::move(opened)});
      }
    } else if (const auto* denial = std::get_if<GateDenial>(&message)) {
      denials_.push_back(*denial);
    } else if (const auto* counters = std::get_if<GateCounters>(&message)) {
      counted_.denials += counters->denials;
      for (const auto& entry : counters->entries) {
        counted_.answers += entry.answers;
        counted_.connections += entry.connections;
      }
    }
    changed_.notify_all();
  }

  Options options_;
  std::optional<GateChannel> channel_;
  os::UniqueFd wake_;
  std::uint16_t names_port_ = 0;
  std::uint16_t proxy_port_ = 0;
  std::thread gate_;
  std::thread helper_;
  std::atomic<bool> stop_ = false;
  Result<void> end_;

  std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::vector<GateMessage> outbox_;
  std::map<std::uint32_t, std::uint64_t> applied_;
  std::vector<GatePin> pins_;
  std::vector<GateDenial> denials_;
  Counted counted_;
  std::map<std::uint16_t, Endpoint> destinations_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint16_t> served_;
};

}  // namespace caisson::egress::gate
