// SPDX-License-Identifier: Apache-2.0
// A small world for tests, made of namespaces of their own: a host, and an "internet" behind it
// with documentation addresses, private ones and a metadata service, where TCP and UDP servers
// answer on every address. Nothing reaches the real network.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "egress/network.h"
#include "os/network_namespace.h"
#include "os/run_program.h"

namespace caisson::egress {

// True when this process may make namespaces and filter packets.
inline bool CanMakeNetworks() {
  return ::geteuid() == 0 && !os::FindProgram("nft").empty() && !os::FindProgram("ip").empty();
}

// Runs one line of shell in this thread's namespace.
inline void Shell(const std::string& line) {
  const auto end = os::RunProgram({.arguments = {"/bin/sh", "-c", line}});
  ASSERT_TRUE(end && end->succeeded()) << line << "\n" << (end ? end->messages : "");
}
inline std::string ShellOutput(const std::string& line) {
  const auto end = os::RunProgram({.arguments = {"/bin/sh", "-c", line}});
  return end ? end->output : "";
}

inline sockaddr_in SocketAddress(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  return result;
}

// Echoes what comes by TCP or UDP until it is destroyed. Runs in the namespace of its maker's
// thread.
class EchoServer {
 public:
  // With a `reply`, a stream gets that, once something has come, and its end.
  EchoServer(int type, std::uint16_t port, std::string reply = "")
      : type_(type), reply_(std::move(reply)) {
    socket_ = os::UniqueFd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Answers come from the address that was asked.
    ::setsockopt(socket_.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    const sockaddr_in address = SocketAddress("0.0.0.0", port);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    if (type == SOCK_STREAM) ::listen(socket_.get(), 64);
    thread_ = std::thread([this] { type_ == SOCK_STREAM ? ServeStreams() : ServeDatagrams(); });
  }
  ~EchoServer() {
    stop_ = true;
    thread_.join();
  }
  int datagrams() const { return datagrams_; }
  int streams() const { return accepted_; }

 private:
  void ServeStreams() {
    std::list<os::UniqueFd> streams;
    std::array<char, 65536> buffer;
    while (!stop_) {
      std::vector<pollfd> events = {{socket_.get(), POLLIN, 0}};
      for (const auto& stream : streams) events.push_back({stream.get(), POLLIN, 0});
      ::poll(events.data(), events.size(), 20);
      if (events[0].revents != 0) {
        streams.emplace_back(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ++accepted_;
      }
      std::size_t at = 1;
      for (auto it = streams.begin(); it != streams.end() && at < events.size(); ++at) {
        if (events[at].revents == 0) {
          ++it;
          continue;
        }
        const ssize_t got = ::recv(it->get(), buffer.data(), buffer.size(), 0);
        if (got > 0 && reply_.empty()) {
          ::send(it->get(), buffer.data(), static_cast<std::size_t>(got),
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        } else if (got > 0) {
          ::send(it->get(), reply_.data(), reply_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
          ::shutdown(it->get(), SHUT_WR);
        }
        it = got > 0 ? std::next(it) : streams.erase(it);
      }
    }
  }
  void ServeDatagrams() {
    std::array<char, 2048> buffer;
    while (!stop_) {
      pollfd event{socket_.get(), POLLIN, 0};
      if (::poll(&event, 1, 20) <= 0) continue;
      sockaddr_in from{};
      iovec part{buffer.data(), buffer.size()};
      std::array<char, 256> control;
      msghdr message{&from, sizeof(from), &part, 1, control.data(), control.size(), 0};
      const ssize_t got = ::recvmsg(socket_.get(), &message, 0);
      if (got < 0) continue;
      ++datagrams_;
      part.iov_len = static_cast<std::size_t>(got);
      for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
           each = CMSG_NXTHDR(&message, each)) {
        auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(each));
        info->ipi_spec_dst = info->ipi_addr;
        info->ipi_ifindex = 0;
      }
      ::sendmsg(socket_.get(), &message, 0);
    }
  }

  int type_;
  std::string reply_;
  os::UniqueFd socket_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> datagrams_ = 0;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

inline constexpr int kPatienceMilliseconds = 2000;

// Sends `text` and waits for the same: "open", or how it failed: "refused", "prohibited",
// "nothing".
inline std::string Exchange(int fd, std::string_view text, int patience = kPatienceMilliseconds) {
  const auto failure = [] {
    if (errno == ECONNREFUSED || errno == ECONNRESET || errno == EPIPE) return "refused";
    if (errno == EHOSTUNREACH || errno == ENETUNREACH || errno == EACCES) return "prohibited";
    return "nothing";
  };
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) return failure();
  std::string got;
  while (got.size() < text.size()) {
    pollfd event{fd, POLLIN, 0};
    if (::poll(&event, 1, patience) <= 0) return "nothing";
    std::array<char, 65536> buffer;
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (count <= 0) return count == 0 ? "closed" : failure();
    got.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return got == text ? "open" : "other";
}

inline os::UniqueFd Connected(int type, const std::string& address, std::uint16_t port,
                              std::string& how, const std::string& source = "") {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!source.empty()) {
    const sockaddr_in from = SocketAddress(source, 0);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  }
  const sockaddr_in to = SocketAddress(address, port);
  int error =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd event{fd.get(), POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (::poll(&event, 1, kPatienceMilliseconds) > 0)
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  ::fcntl(fd.get(), F_SETFL, 0);
  // One that was accepted may have been reset before this looks at it.
  const bool refused = error == ECONNREFUSED || error == ECONNRESET;
  how = error == 0 ? "open" : refused ? "refused" : error == ETIMEDOUT ? "nothing" : "prohibited";
  if (error == EINVAL) how = "invalid";
  return fd;
}

class World {
 public:
  // kNames: the ports of names and TLS are left to NamedServers (egress/test_names.h), 80 and 8080
  // answer by HTTP; and the internet has IPv6, too.
  enum class Servers : std::uint8_t { kEcho, kNames };

  // Moves this process into namespaces of its own: what it sees is the world's host.
  explicit World(Servers servers = Servers::kEcho) {
    EXPECT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
    EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    std::string pattern = ::testing::TempDir() + "caisson-network-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    internet_ =
        os::MakeNetworkNamespace(directory_ + "/internet", [] { return Result<void>(); }).value();
    Shell(
        "ip link set lo up && sysctl -qw net.ipv4.ip_forward=0");  // taken over from the real host
    Links links = Links::Open().value();
    EXPECT_TRUE(links.MakePair({"wan0", {2, 0, 0, 0, 0, 1}}, {"net0", {2, 0, 0, 0, 0, 2}},
                               internet_.get()));
    Shell(
        "ip addr add 198.51.100.1/24 dev wan0 && ip link set wan0 up && ip route add default via "
        "198.51.100.53");
    InInternet([] {
      std::string line = "ip link set net0 up && ip addr add 198.51.100.53/24 dev net0";
      for (const char* address : kServed)
        line += std::string(" && ip addr add ") + address + "/32 dev net0";
      Shell(line + " && ip route add default via 198.51.100.1");
      return true;
    });
    for (const std::uint16_t port : {443, 9000}) Serve(SOCK_DGRAM, port);
    if (servers == Servers::kNames) {
      Shell(
          "ip addr add 2001:db8:5::1/64 dev wan0 nodad && ip -6 route add default via "
          "2001:db8:5::53");
      InInternet([] {
        Shell(
            "ip addr add 2001:db8:5::53/64 dev net0 nodad && ip addr add 2001:db8::10/128 dev net0 "
            "nodad && ip -6 route add default via 2001:db8:5::1");
        return true;
      });
    }
    if (servers == Servers::kEcho) {
      for (const std::uint16_t port : {53, 80, 443, 8080}) Serve(SOCK_STREAM, port);
      Serve(SOCK_DGRAM, 53);
    } else {
      const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
      for (const std::uint16_t port : {80, 8080}) Serve(SOCK_STREAM, port, ok);
    }
    host_server_.emplace_back(SOCK_STREAM, 8080);
  }
  ~World() {
    servers_.clear();
    host_server_.clear();
    std::error_code error;
    std::vector<std::string> kept;  // also what a gateway has left that failed to open
    for (std::filesystem::recursive_directory_iterator it(directory_, error), end;
         !error && it != end; it.increment(error)) {
      if (os::OpenNetworkNamespace(it->path().string())) kept.push_back(it->path().string());
    }
    for (const std::string& path : kept) EXPECT_TRUE(os::DropNetworkNamespace(path));
    std::filesystem::remove_all(directory_, error);
    EXPECT_FALSE(error) << error.message();
  }

  static constexpr std::array kServed = {"203.0.113.10", "203.0.113.20",    "203.0.113.77",
                                         "10.9.9.9",     "172.16.5.5",      "192.168.7.7",
                                         "100.64.9.9",   "169.254.169.254", "168.63.129.16",
                                         "192.0.0.192",  "198.18.1.1",      "240.0.0.7"};

  GatewayOptions Options() const {
    GatewayOptions options;
    options.directory = directory_ + "/network";
    options.resolvers = {{*ParseAddress("198.51.100.53")}};
    return options;
  }
  const std::string& directory() const { return directory_; }
  EchoServer& Server(int type, std::uint16_t port) {
    for (Served& each : servers_) {
      if (each.type == type && each.port == port) return *each.server;
    }
    std::abort();
  }
  template <typename Work>
  auto InInternet(Work work) -> decltype(work()) {
    return In(internet_.get(), work);
  }

  template <typename Work>
  static auto In(int fd, Work work) -> decltype(work()) {
    decltype(work()) result{};
    EXPECT_TRUE(os::InNetworkNamespace(fd, [&]() -> Result<void> {
      result = work();
      return {};
    }));
    return result;
  }

 private:
  struct Served {
    int type;
    std::uint16_t port;
    std::unique_ptr<EchoServer> server;
  };
  void Serve(int type, std::uint16_t port, const std::string& reply = "") {
    InInternet([&] {
      servers_.push_back({type, port, std::make_unique<EchoServer>(type, port, reply)});
      return true;
    });
  }

  std::string directory_;
  os::UniqueFd internet_;
  std::list<Served> servers_;
  std::list<EchoServer> host_server_;
};

// One machine's view.
class Guest {
 public:
  explicit Guest(Network network)
      : network_(std::move(network)),
        fd_(os::OpenNetworkNamespace(network_.namespace_path).value()) {}

  std::uint32_t index() const { return network_.index; }
  const std::string& address() const { return network_.address; }
  template <typename Work>
  auto Do(Work work) const -> decltype(work()) {
    return World::In(fd_.get(), work);
  }

  std::string Tcp(const std::string& address, std::uint16_t port) const {
    return Probe(SOCK_STREAM, address, port);
  }
  std::string Udp(const std::string& address, std::uint16_t port) const {
    return Probe(SOCK_DGRAM, address, port);
  }
  os::UniqueFd Connect(const std::string& address, std::uint16_t port) const {
    return Do([&] {
      std::string how;
      return Connected(SOCK_STREAM, address, port, how);
    });
  }
  // An echo request: "open", or how it failed.
  std::string Ping(const std::string& address) const {
    return Do([&] {
      const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP));
      const sockaddr_in to = SocketAddress(address, 0);
      EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
      const std::array<unsigned char, 8> request = {8, 0, 0, 0, 0, 0, 0, 1};
      ::send(fd.get(), request.data(), request.size(), 0);
      pollfd event{fd.get(), POLLIN, 0};
      if (::poll(&event, 1, kPatienceMilliseconds) <= 0) return std::string("nothing");
      std::array<unsigned char, 64> answer;
      return std::string(::recv(fd.get(), answer.data(), answer.size(), 0) > 0 && answer[0] == 0
                             ? "open"
                             : "prohibited");
    });
  }

 private:
  std::string Probe(int type, const std::string& address, std::uint16_t port) const {
    return Do([&] {
      std::string how;
      const os::UniqueFd fd = Connected(type, address, port, how);
      return how == "open" ? Exchange(fd.get(), "hello") : how;
    });
  }

  Network network_;
  os::UniqueFd fd_;
};

}  // namespace caisson::egress
