// SPDX-License-Identifier: Apache-2.0
// What rules by name cost: a name's first resolution, a connection by way of the gate, bytes
// through it, a change of many rules; each beside the same without them, in namespaces of its own.
// Prints JSON lines for bench/run.py. This program is the gate, too.
//
//   names_bench [machines]      200 unless said
#include <arpa/inet.h>
#include <fmt/format.h>
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

#include "egress/gate/program.h"
#include "egress/network.h"
#include "os/network_namespace.h"

namespace caisson::egress {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kHost = 0xc6336401;    // 198.51.100.1
constexpr std::uint32_t kServer = 0xcb00710a;  // 203.0.113.10, name server as well
constexpr int kRounds = 100;                   // fewer than the gate answers at once
constexpr std::size_t kPiece = 256u << 10;

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "names_bench: %s %s\n", result.error().message.c_str(),
                 result.error().details.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "names_bench: %s failed\n", what);
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

void Print(const std::string& what, double value, const char* unit, const std::string& rest) {
  fmt::print(R"({{"what":"{}","value":{:.3f},"unit":"{}"{}}})"
             "\n",
             what, value, unit, rest);
  std::fflush(stdout);
}

sockaddr_in To(std::uint32_t address, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(address);
  return to;
}
os::UniqueFd Socket(int type, std::uint16_t listen_at) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (listen_at == 0) return fd;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in at = To(kServer, listen_at);
  Require(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0, "bind");
  if (type == SOCK_STREAM) ::listen(fd.get(), 256);
  return fd;
}

std::string Question(const std::string& name) {
  std::string query("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    query += static_cast<char>(dot - at);
    query.append(name, at, dot - at);
    at = dot + 1;
  }
  return query + std::string("\0\0\1\0\1", 5);
}

// Every name has one address, kServer.
void ServeNames(int fd, const std::atomic<bool>& stop) {
  std::array<char, 2048> buffer;
  while (!stop) {
    pollfd event{fd, POLLIN, 0};
    if (::poll(&event, 1, 50) <= 0) continue;
    sockaddr_in from{};
    socklen_t size = sizeof(from);
    const ssize_t got =
        ::recvfrom(fd, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 17) continue;
    std::string answer(buffer.data(), static_cast<std::size_t>(got));
    std::size_t end = 12;
    while (answer[end] != 0) end += 1 + static_cast<unsigned char>(answer[end]);
    answer.resize(end + 5);
    answer[2] = '\x81';
    answer[3] = '\x80';
    answer[7] = 1;
    answer[11] = 0;  // without EDNS
    const std::uint32_t address = htonl(kServer);
    answer += std::string("\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4", 12);
    answer.append(reinterpret_cast<const char*>(&address), 4);
    ::sendto(fd, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
  }
}

// Answers the first bytes of each connection with one byte, and reads the rest.
void ServeStreams(int fd, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& bytes) {
  std::vector<std::jthread> streams;
  while (!stop) {
    pollfd event{fd, POLLIN, 0};
    if (::poll(&event, 1, 50) <= 0) continue;
    streams.emplace_back(
        [stream = os::UniqueFd(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)), &bytes] {
          std::vector<char> buffer(kPiece);
          bool first = true;
          for (;;) {
            const ssize_t got = ::recv(stream.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            bytes += static_cast<std::uint64_t>(got);
            if (first) ::send(stream.get(), "!", 1, MSG_NOSIGNAL);
            first = false;
          }
        });
    if (streams.size() > 64) streams.clear();
  }
}

class Bench {
 public:
  Bench() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      std::fprintf(stderr, "names_bench: needs root\n");
      std::exit(77);
    }
    std::string pattern = "/tmp/caisson-names-bench-XXXXXX";
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
      names_ = Socket(SOCK_DGRAM, 53);
      checked_ = Socket(SOCK_STREAM, 80);
      direct_ = Socket(SOCK_STREAM, 8080);
      return {};
    }));
    Must(links.AwaitCarrier("wan0"));
    threads_.emplace_back([this] { ServeNames(names_.get(), stop_); });
    threads_.emplace_back([this] { ServeStreams(checked_.get(), stop_, bytes_); });
    threads_.emplace_back([this] { ServeStreams(direct_.get(), stop_, bytes_); });
    GatewayOptions options;
    options.directory = directory_ + "/network";
    options.resolvers = {{kServer}};
    options.start_gate = GateProcess::Start;
    gateway_ = Must(Gateway::Open(options));
    if (!gateway_->enforces_names()) {
      std::fprintf(stderr, "names_bench: %s\n", gateway_->gate_failure()->message.c_str());
      std::exit(77);
    }
  }
  ~Bench() {
    stop_ = true;
    threads_.clear();
    Must(gateway_->Dismantle());
    gateway_.reset();
    Must(os::DropNetworkNamespace(directory_ + "/internet"));
    std::filesystem::remove_all(directory_);
  }

  void Latency() {
    const auto open = Must(gateway_->Make(Policy::PublicOnly()));
    const auto named = Must(gateway_->Make(Rules({"*.a.test", "*.a.test:8080"})));
    const double asked_directly = Resolution(open.namespace_path, "open");
    const double asked = Resolution(named.namespace_path, "named");
    Report("a name's first resolution, p50", asked, asked_directly, "the host's resolver");
    const double connected_directly = Connection(named.namespace_path, 8080);
    const double connected = Connection(named.namespace_path, 80);
    Report("a connection to its first answer by way of the gate, p50", connected,
           connected_directly, "directly");
    Must(gateway_->Remove(open.index));
    Must(gateway_->Remove(named.index));
  }

  void Throughput() {
    const auto named = Must(gateway_->Make(Rules({"*.a.test", "*.a.test:8080"})));
    In(named.namespace_path, [] { Ask("a.a.test"); });
    const double direct = BytesPerSecond(named.namespace_path, 8080);
    const double through = BytesPerSecond(named.namespace_path, 80);
    Print("TCP by way of the gate", through / 1e9, "GB/s",
          fmt::format(R"(,"control":{:.3f},"control_name":"directly through the gateway",)"
                      R"("ratio":{:.2f},"target":">= 0.5","ok":{})",
                      direct / 1e9, through / direct, through >= 0.5 * direct));
    Must(gateway_->Remove(named.index));
  }

  void Change(int machines) {
    std::vector<std::uint32_t> all;
    for (int i = 0; i < machines; ++i) all.push_back(Must(gateway_->Make(Many(i % 50))).index);
    const double change = Median(21, [&](int i) {
      Must(gateway_->Apply(all[static_cast<std::size_t>(i) % all.size()], Many(60 + i % 50)));
    });
    Print(fmt::format("apply 500 rules, half of them names, beside {} machines, p50", machines),
          change, "ms", fmt::format(R"(,"target":"< 50 ms","ok":{})", change < 50));
    for (const std::uint32_t index : all) Must(gateway_->Remove(index));
  }

 private:
  static Policy Rules(const std::vector<std::string>& rules) {
    return Must(Policy::Parse(rules, HostNames::kEnforced));
  }
  static Policy Many(int from) {
    std::vector<std::string> rules;
    for (int i = 0; i < 250; ++i) {
      rules.push_back(fmt::format("{}.{}.{}.0/25:443", 20 + from, i / 200, i % 200));
      rules.push_back(fmt::format("*.n{}.m{}.test", i, from));
    }
    return Rules(rules);
  }
  static void Report(const std::string& what, double value, double control, const char* name) {
    Print(what, value, "ms",
          fmt::format(R"(,"control":{:.3f},"control_name":"{}","ratio":{:.2f},)"
                      R"("target":"<= 3 ms more","ok":{})",
                      control, name, value / control, value <= control + 3));
  }

  void In(const std::string& path, const std::function<void()>& work) {
    const auto fd = Must(os::OpenNetworkNamespace(path));
    Must(os::InNetworkNamespace(fd.get(), [&]() -> Result<void> {
      work();
      return {};
    }));
  }

  static void Ask(const std::string& name) {
    const os::UniqueFd fd = Socket(SOCK_DGRAM, 0);
    const sockaddr_in to = To(0x0ae70001, 53);
    ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    const std::string question = Question(name);
    ::send(fd.get(), question.data(), question.size(), 0);
    pollfd event{fd.get(), POLLIN, 0};
    std::array<char, 2048> answer;
    Require(::poll(&event, 1, 5000) > 0 && ::recv(fd.get(), answer.data(), answer.size(), 0) > 16 &&
                (answer[3] & 15) == 0 && answer[7] == 1,
            "resolve a name");
  }
  double Resolution(const std::string& path, const std::string& prefix) {
    double time = 0;
    In(path,
       [&] { time = Median(kRounds, [&](int i) { Ask(fmt::format("{}{}.a.test", prefix, i)); }); });
    return time;
  }

  static os::UniqueFd Connect(std::uint16_t port) {
    os::UniqueFd fd = Socket(SOCK_STREAM, 0);
    const sockaddr_in to = To(kServer, port);
    Require(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0,
            "connect");
    const std::string_view request =
        "POST / HTTP/1.1\r\nHost: a.a.test\r\nContent-Length: 1000000000000\r\n\r\n";
    ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::array<char, 16> answer;
    Require(::recv(fd.get(), answer.data(), answer.size(), 0) == 1, "get an answer");
    return fd;
  }
  double Connection(const std::string& path, std::uint16_t port) {
    double time = 0;
    In(path, [&] {
      Ask("a.a.test");
      time = Median(kRounds, [&](int) { (void)Connect(port); });
    });
    return time;
  }
  double BytesPerSecond(const std::string& path, std::uint16_t port) {
    double rate = 0;
    In(path, [&] {
      const os::UniqueFd fd = Connect(port);
      const std::vector<char> buffer(kPiece);
      const std::uint64_t before = bytes_;
      const auto begin = Clock::now();
      while (Clock::now() - begin < std::chrono::seconds(2))
        Require(::send(fd.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL) > 0, "send");
      rate = static_cast<double>(bytes_ - before) /
             std::chrono::duration<double>(Clock::now() - begin).count();
    });
    return rate;
  }

  std::string directory_;
  os::UniqueFd internet_;
  os::UniqueFd names_, checked_, direct_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::vector<std::jthread> threads_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace
}  // namespace caisson::egress

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "egress-gate")
    return caisson::egress::gate::GateMain(argv[argc - 1]);
  caisson::egress::Bench bench;
  bench.Latency();
  bench.Throughput();
  bench.Change(argc > 1 ? std::atoi(argv[1]) : 200);
  return 0;
}
