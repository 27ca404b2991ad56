// SPDX-License-Identifier: Apache-2.0
// What networks of machines cost, in namespaces of its own. Prints JSON lines for bench/run.py.
//
//   network_bench [machines]      200 unless said
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "egress/network.h"
#include "os/network_namespace.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "network_bench: %s %s\n", result.error().message.c_str(),
                 result.error().details.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
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

Policy Addresses(int count, int from) {
  std::vector<std::string> rules;
  for (int i = 0; i < count; ++i) {
    rules.push_back(
        fmt::format("{}.{}.{}.0/25{}", 20 + from, i / 200, i % 200, i % 2 ? ":443" : ""));
  }
  return Must(Policy::Parse(rules));
}

void Print(const std::string& what, double value, const char* unit, const std::string& rest = "") {
  fmt::print(R"({{"what":"{}","value":{:.3f},"unit":"{}"{}}})"
             "\n",
             what, value, unit, rest);
  std::fflush(stdout);
}

class Bench {
 public:
  Bench() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      std::fprintf(stderr, "network_bench: needs root\n");
      std::exit(77);
    }
    std::string pattern = "/tmp/caisson-network-bench-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    internet_ =
        Must(os::MakeNetworkNamespace(directory_ + "/internet", [] { return Result<void>(); }));
    Links links = Must(Links::Open());
    Must(links.MakePair({"wan0", {2, 0, 0, 0, 0, 1}}, {"net0", {2, 0, 0, 0, 0, 2}},
                        internet_.get()));
    Must(links.SetUp({"wan0", kHost, kServer, {2, 0, 0, 0, 0, 2}, true}));
    Must(os::InNetworkNamespace(internet_.get(), [&]() -> Result<void> {
      CAISSON_ASSIGN(Links inner, Links::Open());
      return inner.SetUp({"net0", kServer, kHost, {2, 0, 0, 0, 0, 1}, true});
    }));
    Must(links.AwaitCarrier("wan0"));
    GatewayOptions options;
    options.directory = directory_ + "/network";
    options.resolvers = {{kServer}};
    gateway_ = Must(Gateway::Open(options));
  }
  ~Bench() {
    Must(gateway_->Dismantle());
    Must(os::DropNetworkNamespace(directory_ + "/internet"));
    std::filesystem::remove_all(directory_);
  }

  void Creation() {
    std::vector<std::uint32_t> made;
    const double empty = Median(50, [&](int i) {
      Must(os::MakeNetworkNamespace(fmt::format("{}/empty{}", directory_, i),
                                    [] { return Result<void>(); }));
    });
    for (int i = 0; i < 50; ++i)
      Must(os::DropNetworkNamespace(fmt::format("{}/empty{}", directory_, i)));
    const double make =
        Median(50, [&](int) { made.push_back(Must(gateway_->Make(Policy::PublicOnly())).index); });
    Print("create a network, p50", make, "ms",
          fmt::format(R"(,"control":{:.3f},"control_name":"an empty namespace","ratio":{:.2f})",
                      empty, make / empty));
    const double open = Median(50, [&](int i) {
      Must(gateway_->Apply(made[static_cast<std::size_t>(i)], Policy::DenyAll()));
    });
    Print("prepared network, its policy set, p50", open, "ms");
    std::size_t next = 0;
    Print("remove a network, p50", Median(50, [&](int) { Must(gateway_->Remove(made[next++])); }),
          "ms");
  }

  void Rules(int machines) {
    const std::uint32_t one = Must(gateway_->Make(Policy::DenyAll())).index;
    const Policy thousand = Addresses(1000, 0);
    const double apply = Median(11, [&](int) { Must(gateway_->Apply(one, thousand)); });
    const std::string file = directory_ + "/commands.nft";
    const std::string set = fmt::format("inet caisson addresses{}", one);
    std::ofstream text(file);
    text << "flush set " << set << "\nadd element " << set << " { ";
    for (int i = 0; i < 1000; ++i) {
      text << fmt::format("{}20.{}.{}.0/25", i > 0 ? ", " : "", i / 200, i % 200);
    }
    text << " }\n" << std::flush;
    const auto gateway = Must(os::OpenNetworkNamespace(directory_ + "/network/gateway"));
    double process = 0;
    Must(os::InNetworkNamespace(gateway.get(), [&]() -> Result<void> {
      process = Median(11, [&](int) { Must(os::RunProgram({.arguments = {"nft", "-f", file}})); });
      return {};
    }));
    Print("apply 1,000 rules, p50", apply, "ms",
          fmt::format(R"(,"control":{:.3f},"control_name":"nft -f of as many","ratio":{:.2f})",
                      process, apply / process));
    std::vector<std::uint32_t> all;
    for (int i = 0; i < machines; ++i)
      all.push_back(Must(gateway_->Make(Addresses(500, i % 50))).index);
    const double change = Median(21, [&](int i) {
      Must(gateway_->Apply(all[static_cast<std::size_t>(i) % all.size()],
                           Addresses(500, 60 + i % 50)));
    });
    Print(fmt::format("apply 500 rules beside {} machines of 500, p50", machines), change, "ms",
          fmt::format(R"(,"target":"< 50 ms","ok":{})", change < 50));
    for (const std::uint32_t index : all) Must(gateway_->Remove(index));
    Must(gateway_->Remove(one));
  }

  void Throughput() {
    const auto network = Must(gateway_->Make(Policy::PublicOnly()));
    const auto fd = Must(os::OpenNetworkNamespace(network.namespace_path));
    const double through = BytesPerSecond(fd.get(), kServer);
    const auto host = Must(os::OpenFile("/proc/self/ns/net", O_RDONLY));
    const double direct = BytesPerSecond(host.get(), kServer);
    Print(
        "TCP through gateway and host", through / 1e9, "GB/s",
        fmt::format(R"(,"control":{:.3f},"control_name":"host to the same server","ratio":{:.2f})",
                    direct / 1e9, through / direct));
    Must(gateway_->Remove(network.index));
  }

 private:
  static constexpr std::uint32_t kHost = 0xc6336401;    // 198.51.100.1
  static constexpr std::uint32_t kServer = 0xcb00710a;  // 203.0.113.10

  // One second of one connection from the namespace to a server that only reads.
  double BytesPerSecond(int from, std::uint32_t to) {
    os::UniqueFd server;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(5001);
    address.sin_addr.s_addr = htonl(to);
    Must(os::InNetworkNamespace(internet_.get(), [&]() -> Result<void> {
      server = os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
          ::listen(server.get(), 1) != 0) {
        return os::SyscallError("listen");
      }
      return {};
    }));
    std::uint64_t bytes = 0;
    std::thread reader([&] {
      const os::UniqueFd stream(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::vector<char> buffer(256u << 10);
      for (ssize_t got = 1; got > 0;) {
        got = ::recv(stream.get(), buffer.data(), buffer.size(), 0);
        if (got > 0) bytes += static_cast<std::uint64_t>(got);
      }
    });
    const auto begin = Clock::now();
    Must(os::InNetworkNamespace(from, [&]() -> Result<void> {
      const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        std::exit(1);
      const std::vector<char> buffer(256u << 10);
      while (Clock::now() - begin < std::chrono::seconds(1))
        ::send(fd.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL);
      return {};
    }));
    reader.join();
    return static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - begin).count();
  }

  std::string directory_;
  os::UniqueFd internet_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace
}  // namespace caisson::egress

int main(int argc, char** argv) {
  caisson::egress::Bench bench;
  bench.Creation();
  bench.Rules(argc > 1 ? std::atoi(argv[1]) : 200);
  bench.Throughput();
  return 0;
}
