// SPDX-License-Identifier: Apache-2.0
// For tests of rules by name: a world (egress/test_world.h) in which names mean something. Its
// resolver answers from a table, and lies or keeps silent when it is told to; HTTP and TLS answer
// on every address. Guests ask by curl(1).
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "egress/test_world.h"

namespace caisson::egress {

// Answers questions by UDP and TCP in the namespace of its maker's thread.
class TableResolver {
 public:
  enum class Mood : std::uint8_t {
    kHonest,
    kSilent,
    kBroken,        // an answer that ends in the middle
    kOtherQuestion  // an answer to what nobody asked
  };
  struct Entry {
    std::vector<std::string> addresses;
    std::uint32_t seconds = 30;
    std::string alias;  // CNAME to this name, whose entry gives the addresses
    std::vector<std::string> addresses6 = {};
  };

  TableResolver() {
    const auto open = [](int type) {
      os::UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
      const int on = 1;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      const sockaddr_in address = SocketAddress("198.51.100.53", 53);
      EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
                0);
      return socket;
    };
    datagrams_ = open(SOCK_DGRAM);
    streams_ = open(SOCK_STREAM);
    ::listen(streams_.get(), 16);
    thread_ = std::thread([this] { Serve(); });
  }
  ~TableResolver() {
    stop_ = true;
    thread_.join();
  }

  void Set(const std::string& name, Entry entry) {
    const std::lock_guard lock(mutex_);
    table_[name] = std::move(entry);
  }
  void Be(Mood mood) { mood_ = mood; }
  // Every name that it was asked for, with repetitions.
  std::vector<std::string> Asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void Serve() {
    std::array<char, 2048> buffer;
    while (!stop_) {
      std::array<pollfd, 2> events = {{{datagrams_.get(), POLLIN, 0}, {streams_.get(), POLLIN, 0}}};
      if (::poll(events.data(), events.size(), 20) <= 0) continue;
      if (events[0].revents != 0) {
        sockaddr_in from{};
        socklen_t size = sizeof(from);
        const ssize_t got = ::recvfrom(datagrams_.get(), buffer.data(), buffer.size(), 0,
                                       reinterpret_cast<sockaddr*>(&from), &size);
        if (got < 12) continue;
        const std::string answer =
            Answer(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
        if (!answer.empty())
          ::sendto(datagrams_.get(), answer.data(), answer.size(), 0,
                   reinterpret_cast<const sockaddr*>(&from), size);
      }
      if (events[1].revents != 0) ServeStream();
    }
  }
  void ServeStream() {
    const os::UniqueFd stream(::accept4(streams_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(stream.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    std::array<char, 2048> buffer;
    const ssize_t got = ::recv(stream.get(), buffer.data(), buffer.size(), 0);
    if (got < 14) return;
    const std::string answer =
        Answer(std::string_view(buffer.data() + 2, static_cast<std::size_t>(got - 2)));
    const std::string framed = Two(answer.size()) + answer;
    ::send(stream.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
  }

  static std::string Two(std::size_t number) {
    return {static_cast<char>(number >> 8), static_cast<char>(number)};
  }
  static std::string Labels(const std::string& name) {
    std::string labels;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t dot = std::min(name.find('.', at), name.size());
      labels += static_cast<char>(dot - at);
      labels.append(name, at, dot - at);
      at = dot + 1;
    }
    return labels + '\0';
  }
  static std::string Record(const std::string& name, std::uint16_t type, std::uint32_t seconds,
                            const std::string& data) {
    return Labels(name) + Two(type) + Two(1) + Two(seconds >> 16) + Two(seconds & 0xffff) +
           Two(data.size()) + data;
  }

  std::string Answer(std::string_view query) {
    std::string name;
    std::size_t at = 12;
    while (at < query.size() && query[at] != 0) {
      const std::size_t length = static_cast<unsigned char>(query[at]);
      name += (name.empty() ? "" : ".") + std::string(query.substr(at + 1, length));
      at += 1 + length;
    }
    if (at + 5 > query.size()) return "";
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_address = query[at + 2] == 1;
    const bool is_address6 = query[at + 2] == 28;
    const std::string question(query.substr(12, at + 5 - 12));
    const std::lock_guard lock(mutex_);
    asked_.push_back(name);
    if (mood_ == Mood::kSilent) return "";
    std::vector<std::string> records;
    auto found = table_.find(name);
    const bool known = found != table_.end();
    std::string owner = name;
    if (known && is_address) {
      if (!found->second.alias.empty()) {
        records.push_back(Record(owner, 5, found->second.seconds, Labels(found->second.alias)));
        owner = found->second.alias;
        found = table_.find(owner);
      }
      for (const std::string& address : found->second.addresses) {
        in_addr number{};
        ::inet_pton(AF_INET, address.c_str(), &number);
        records.push_back(Record(owner, 1, found->second.seconds,
                                 std::string(reinterpret_cast<const char*>(&number), 4)));
      }
    }
    if (known && is_address6) {
      for (const std::string& address : found->second.addresses6) {
        in6_addr number{};
        ::inet_pton(AF_INET6, address.c_str(), &number);
        records.push_back(Record(owner, 28, found->second.seconds,
                                 std::string(reinterpret_cast<const char*>(&number), 16)));
      }
    }
    std::string asked = question;
    if (mood_ == Mood::kOtherQuestion) asked = Labels("other.test") + Two(1) + Two(1);
    std::string answer = std::string(query.substr(0, 2)) + (known ? "\x81\x80" : "\x81\x83") +
                         Two(1) + Two(records.size()) + Two(0) + Two(0) + asked;
    for (const std::string& record : records) answer += record;
    return mood_ == Mood::kBroken ? answer.substr(0, answer.size() - 2) : answer;
  }

  os::UniqueFd datagrams_, streams_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> table_;
  std::vector<std::string> asked_;
  std::atomic<Mood> mood_ = Mood::kHonest;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Servers that programs run, in the namespace of the maker's thread, until this object goes.
class ServerProgram {
 public:
  explicit ServerProgram(const std::string& line) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;
  ~ServerProgram() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

inline bool HasNameTools() {
  return !os::FindProgram("curl").empty() && !os::FindProgram("openssl").empty() &&
         !os::FindProgram("python3").empty();
}

// Shakes hands in the thread of the connection: a client that is slow holds up nobody.
inline constexpr const char* kTlsServer = R"(
import http.server, socket, socketserver, ssl, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('c.pem', 'k.pem')
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socketserver.TCPServer.server_bind(self)  # without asking for its own name
    request_queue_size = 64
    def finish_request(self, request, address):
        try:
            super().finish_request(context.wrap_socket(request, server_side=True), address)
        except OSError:
            pass
class Server6(Server):
    address_family = socket.AF_INET6
threading.Thread(target=Server6(('::', 443), Handler).serve_forever, daemon=True).start()
Server(('0.0.0.0', 443), Handler).serve_forever()
)";

// In a world with World::Servers::kNames.
class NamedServers {
 public:
  // `name_server`: of whoever reads /etc/resolv.conf of this world: guests that share its files, or
  // a helper.
  explicit NamedServers(World& world, const std::string& name_server = "10.231.0.1")
      : directory_(world.directory() + "/www") {
    std::filesystem::create_directories(directory_);
    Shell("cd " + directory_ +
          " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
          "k.pem -out c.pem -days 2 -subj /CN=good.test 2>/dev/null");
    // /etc/resolv.conf of this world alone.
    std::ofstream(directory_ + "/resolv.conf")
        << "nameserver " << name_server << "\noptions attempts:1\n";
    Shell("mount --bind " + directory_ + "/resolv.conf /etc/resolv.conf");
    std::ofstream(directory_ + "/tls.py") << kTlsServer;
    world.InInternet([&] {
      resolver_ = std::make_unique<TableResolver>();
      tls_ = std::make_unique<ServerProgram>("cd " + directory_ +
                                             " && exec python3 tls.py >/dev/null 2>&1");
      std::string how;
      for (int i = 0; i < 500 && how != "open"; ++i) {
        (void)Connected(SOCK_STREAM, "203.0.113.10", 443, how);
        if (how != "open") ::usleep(20'000);
      }
      EXPECT_EQ(how, "open");
      return true;
    });
    for (const auto& [name, entry] : std::map<std::string, TableResolver::Entry>{
             {"good.test", {.addresses = {"203.0.113.10"}}},
             {"evil.test", {.addresses = {"203.0.113.20"}}},
             {"shared.test", {.addresses = {"203.0.113.10"}}},
             {"rebind.test", {.addresses = {"169.254.169.254"}}},
             {"mixed.test", {.addresses = {"203.0.113.10", "10.9.9.9"}}},
             {"alias.good.test", {.alias = "evil.test"}},
             {"short.good.test", {.addresses = {"203.0.113.77"}, .seconds = 2}},
             {"sub.good.test", {.addresses = {"203.0.113.77"}}},
             {"six.good.test", {.addresses = {}, .addresses6 = {"2001:db8::10"}}}}) {
      resolver_->Set(name, entry);
    }
  }
  ~NamedServers() { Shell("umount /etc/resolv.conf"); }
  TableResolver& resolver() { return *resolver_; }

 private:
  std::string directory_;
  std::unique_ptr<TableResolver> resolver_;
  std::unique_ptr<ServerProgram> tls_;
};

// What curl(1) says of a request: the status, or "dns" (no such name), "refused" (at once),
// "closed" (taken and then reset), "hangs", or its number.
inline std::string Curl(const std::string& arguments) {
  const std::string said =
      ShellOutput("curl -sk --http1.1 -m 8 -o /dev/null -w '%{http_code} %{time_total}' " +
                  arguments + "; echo \" $?\"");
  const std::string exit = said.substr(said.rfind(' ') + 1);
  const int code = std::atoi(exit.c_str());
  switch (code) {
    case 0:
      return said.substr(0, 3);
    case 6:
      return "dns";
    case 7:
      return "refused";
    case 28:
      return "hangs";
    case 35:  // while it shook hands
    case 52:  // an empty answer
    case 56:  // reset while it read
      return "closed";
    default:
      return "curl " + std::to_string(code);
  }
}

}  // namespace caisson::egress
