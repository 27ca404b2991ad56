// SPDX-License-Identifier: Apache-2.0
// What rules by name cost: a real gate behind a real packet filter, in namespaces of its own,
// beside the same path without it. Prints JSON lines for bench/run.py.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "egress/gate/dns_message.h"
#include "egress/gate/program.h"
#include "egress/network.h"
#include "os/network_namespace.h"

namespace caisson::egress::gate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kHost = 0xc6336401;    // 198.51.100.1
constexpr std::uint32_t kServer = 0xcb00710a;  // 203.0.113.10
constexpr std::uint16_t kSecure = 443;
constexpr int kRounds = 150;     // within what one machine may ask at once
constexpr char kDownload = 'd';  // the last byte of what a client sends first says what it wants

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "gate_bench: %s %s\n", result.error().message.c_str(),
                 result.error().details.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
void Must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "gate_bench: %s\n", what);
  std::exit(1);
}

double Median(int rounds, const std::function<void(int)>& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    work(i);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<std::size_t>(rounds / 2)];
}

sockaddr_in Address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(address);
  return result;
}

std::string Number(std::size_t bytes, std::size_t value) {
  std::string text;
  for (std::size_t i = bytes; i > 0; --i) text += static_cast<char>(value >> (8 * (i - 1)) & 0xff);
  return text;
}
std::string Vector(std::size_t length_bytes, const std::string& body) {
  return Number(length_bytes, body.size()) + body;
}
std::string Hello(const std::string& name) {
  const std::string list = Vector(2, std::string(1, '\0') + Vector(2, name));
  const std::string body = "\x03\x03" + std::string(32, 'r') + std::string(1, '\0') +
                           Vector(2, "\x13\x01") + Vector(1, std::string(1, '\0')) +
                           Vector(2, Number(2, 0) + Vector(2, list));
  return "\x16\x03\x01" + Vector(2, "\x01" + Vector(3, body));
}

// Answers every question with one address.
void ServeNames(int fd, const std::atomic<bool>& stop) {
  std::array<char, 2048> bytes;
  while (!stop) {
    pollfd event{fd, POLLIN, 0};
    if (::poll(&event, 1, 20) <= 0) continue;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    const auto decoded =
        DecodeQuery({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
    if (!decoded) continue;
    const std::string answer = EncodeAnswer(decoded->query, Rcode::kNoError, {kServer}, 60, 512);
    ::sendto(fd, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

// Says one byte as soon as something has come; then takes all, or sends for a second.
void ServeStream(os::UniqueFd fd, std::atomic<std::uint64_t>& taken) {
  std::vector<char> bytes(256u << 10);
  ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
  if (got <= 0 || ::send(fd.get(), "!", 1, MSG_NOSIGNAL) != 1) return;
  if (bytes[static_cast<std::size_t>(got) - 1] == kDownload) {
    while (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) continue;
    return;
  }
  while ((got = ::recv(fd.get(), bytes.data(), bytes.size(), 0)) > 0) {
    taken += static_cast<std::uint64_t>(got);
  }
}

class Bench {
 public:
  Bench() {
    Must(::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
         "needs root");
    std::string pattern = "/tmp/caisson-gate-bench-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    internet_ =
        Must(os::MakeNetworkNamespace(directory_ + "/internet", [] { return Result<void>(); }));
    Links links = Must(Links::Open());
    Must(links.MakePair({"wan0", {2, 0, 0, 0, 0, 1}}, {"net0", {2, 0, 0, 0, 0, 2}},
                        internet_.get()));
    Must(links.SetUp({"wan0", kHost, kServer, {2, 0, 0, 0, 0, 2}, true}));
    Must(os::InNetworkNamespace(internet_.get(), [&]() -> Result<void> {
      CAISSON_ASSIGN(Links inner, Links::Open());
      CAISSON_TRY(inner.SetUp({"net0", kServer, kHost, {2, 0, 0, 0, 0, 1}, true}));
      names_ = Bound(SOCK_DGRAM, 53);
      streams_ = Bound(SOCK_STREAM, kSecure);
      ::listen(streams_.get(), 64);
      return {};
    }));
    Must(links.AwaitCarrier("wan0"));
    serving_.emplace_back([this] { ServeNames(names_.get(), stop_); });
    serving_.emplace_back([this] { ServeStreams(); });
    GatewayOptions options;
    options.directory = directory_ + "/network";
    options.resolvers = {{kServer}};
    options.start_gate = [](GateOptions gate, GateEvents& events) {
      gate.arguments = {"gate_bench", "egress-gate"};
      return GateProcess::Start(gate, events);
    };
    gateway_ = Must(Gateway::Open(options));
    by_name_ = Machine({"*.good.test"});
    by_address_ = Machine({"203.0.113.10"});
    open_ = Machine({"*"});
  }
  ~Bench() {
    stop_ = true;
    for (std::thread& each : serving_) each.join();
    Must(gateway_->Dismantle());
    gateway_.reset();
    Must(os::DropNetworkNamespace(directory_ + "/internet"));
    std::filesystem::remove_all(directory_);
  }

  void Resolution() {
    const double plain = In(open_, [&] {
      return Median(kRounds, [&](int i) { Resolve(fmt::format("p{}.good.test", i)); });
    });
    const double gated = In(by_name_, [&] {
      return Median(kRounds, [&](int i) { Resolve(fmt::format("g{}.good.test", i)); });
    });
    Print("first resolution of a name, added", gated - plain, "ms", plain, gated, 3);
    const double again =
        In(by_name_, [&] { return Median(kRounds / 3, [&](int) { Resolve("g1.good.test"); }); });
    fmt::print("{{\"what\":\"a name again, p50\",\"value\":{:.3f},\"unit\":\"ms\"}}\n", again);
  }

  void Connection() {
    const auto once = [&](int) {
      const os::UniqueFd fd = Connected();
      const std::string hello = Hello("g1.good.test");
      char byte = 0;
      Must(::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0 &&
               ::recv(fd.get(), &byte, 1, 0) == 1,
           "a connection was refused");
    };
    const double plain = In(by_address_, [&] { return Median(kRounds, once); });
    const double gated = In(by_name_, [&] { return Median(kRounds, once); });
    Print("connection to its first byte, added", gated - plain, "ms", plain, gated, 3);
  }

  void Throughput() {
    for (const bool download : {false, true}) {
      const double plain = In(by_address_, [&] { return BytesPerSecond(download); });
      const double gated = In(by_name_, [&] { return BytesPerSecond(download); });
      fmt::print(
          "{{\"what\":\"TCP through the gate, {}\",\"value\":{:.3f},\"unit\":\"GB/s\","
          "\"control\":{:.3f},\"control_name\":\"the same path without the gate\","
          "\"ratio\":{:.2f},\"target\":\">= 0.5\",\"ok\":{}}}\n",
          download ? "down" : "up", gated / 1e9, plain / 1e9, gated / plain, gated / plain >= 0.5);
      std::fflush(stdout);
    }
  }

 private:
  static os::UniqueFd Bound(int type, std::uint16_t port) {
    os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Address(kServer, port);
    ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return fd;
  }
  void ServeStreams() {
    std::vector<std::thread> threads;
    while (!stop_) {
      pollfd event{streams_.get(), POLLIN, 0};
      if (::poll(&event, 1, 20) <= 0) continue;
      threads.emplace_back([this, fd = ::accept4(streams_.get(), nullptr, nullptr, SOCK_CLOEXEC)] {
        ServeStream(os::UniqueFd(fd), taken_);
      });
    }
    for (std::thread& each : threads) each.join();
  }
  os::UniqueFd Machine(const std::vector<std::string>& rules) {
    const auto network = Must(gateway_->Make(Must(Policy::Parse(rules, HostNames::kEnforced))));
    return Must(os::OpenNetworkNamespace(network.namespace_path));
  }
  template <typename Work>
  double In(const os::UniqueFd& machine, Work work) {
    double result = 0;
    Must(os::InNetworkNamespace(machine.get(), [&]() -> Result<void> {
      result = work();
      return {};
    }));
    return result;
  }
  void Resolve(const std::string& name) {
    const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = Address(0x0ae70001, 53);  // 10.231.0.1
    const std::string question = EncodeQuestion(7, WireName(name), false);
    std::array<char, 512> bytes;
    Must(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
             ::send(fd.get(), question.data(), question.size(), 0) > 0,
         "a question was not sent");
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    const auto answer = DecodeAnswer(
        {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))}, 7, WireName(name));
    Must(answer && answer->addresses.size() == 1, "a name was not resolved");
  }
  static os::UniqueFd Connected() {
    os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr_in to = Address(kServer, kSecure);
    Must(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
         "a connection was refused");
    return fd;
  }
  double BytesPerSecond(bool download) {
    const os::UniqueFd fd = Connected();
    const std::string first = Hello("g1.good.test") + (download ? kDownload : 'u');
    std::vector<char> buffer(256u << 10);
    Must(::send(fd.get(), first.data(), first.size(), MSG_NOSIGNAL) > 0 &&
             ::recv(fd.get(), buffer.data(), 1, 0) == 1,
         "a connection was refused");
    const std::uint64_t before = taken_;
    std::uint64_t got = 0;
    const auto begin = Clock::now();
    while (Clock::now() - begin < std::chrono::seconds(2)) {
      const ssize_t n = download ? ::recv(fd.get(), buffer.data(), buffer.size(), 0)
                                 : ::send(fd.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL);
      Must(n > 0, "a transfer was broken off");
      got += static_cast<std::uint64_t>(n);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return static_cast<double>(download ? got : taken_ - before) / seconds;
  }
  static void Print(const char* what, double value, const char* unit, double plain, double gated,
                    double most) {
    fmt::print(
        "{{\"what\":\"{}, p50\",\"value\":{:.3f},\"unit\":\"{}\",\"control\":{:.3f},"
        "\"control_name\":\"without the gate\",\"with\":{:.3f},\"target\":\"<= {} "
        "ms\",\"ok\":{}}}\n",
        what, value, unit, plain, gated, most, value <= most);
    std::fflush(stdout);
  }

  std::string directory_;
  os::UniqueFd internet_, names_, streams_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> taken_ = 0;
  std::vector<std::thread> serving_;
  std::unique_ptr<Gateway> gateway_;
  os::UniqueFd by_name_, by_address_, open_;
};

}  // namespace
}  // namespace caisson::egress::gate

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate") {
    return caisson::egress::gate::GateMain(argv[argc - 1]);
  }
  caisson::egress::gate::Bench bench;
  bench.Resolution();
  bench.Connection();
  bench.Throughput();
  return 0;
}
