// SPDX-License-Identifier: Apache-2.0
#include "host/way_out.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/foreign_text.h"
#include "egress/address.h"
#include "egress/explain.h"
#include "os/syscall_error.h"

namespace caisson::host {
namespace {

constexpr std::size_t kBufferBytes = 64u << 10;
constexpr int kConnectMilliseconds = 10'000;
constexpr int kRequestMilliseconds = 10'000;
constexpr std::size_t kShown = 200;
constexpr std::string_view kOpened = "HTTP/1.1 200 Connection established\r\n\r\n";

std::string Answer(const char* status, const std::string& text) {
  return std::string("HTTP/1.1 ") + status +
         "\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
         std::to_string(text.size()) + "\r\n\r\n" + text;
}

bool IsClosed(std::uint32_t address) {
  return std::ranges::any_of(egress::ClosedRanges(), [&](const egress::ClosedRange& closed) {
    return closed.range.first <= address && address <= closed.range.last;
  });
}

std::vector<std::uint32_t> ResolveHere(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::uint32_t> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    sockaddr_in address{};
    std::copy_n(reinterpret_cast<const char*>(each->ai_addr), sizeof address,
                reinterpret_cast<char*>(&address));
    addresses.push_back(ntohl(address.sin_addr.s_addr));
  }
  ::freeaddrinfo(found);
  return addresses;
}

os::UniqueFd ConnectHere(std::uint32_t address, std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(address);
  if (!fd.valid()) return {};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return fd;
  pollfd event{fd.get(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  if (errno != EINPROGRESS || ::poll(&event, 1, kConnectMilliseconds) != 1 ||
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return {};
  }
  return fd;
}

bool AwaitReady(int fd, short events, int milliseconds) {
  pollfd event{fd, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&event, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (errno == EAGAIN && !AwaitReady(fd, POLLOUT, -1)) return false;
  }
  return true;
}

// The head of a request up to its empty line, and what came behind it; empty when there is none.
std::string ReadHead(int fd) {
  std::string head;
  std::array<char, 1024> buffer;
  while (head.find("\r\n\r\n") == std::string::npos) {
    if (head.size() > kMaxRequestBytes || !AwaitReady(fd, POLLIN, kRequestMilliseconds)) return {};
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (count <= 0) return {};
    head.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return head;
}

// HOST:PORT of "CONNECT HOST:PORT HTTP/1.1"; empty when the line is another.
std::string_view TargetOf(std::string_view head) {
  constexpr std::string_view kMethod = "CONNECT ";
  std::string_view line = head.substr(0, head.find("\r\n"));
  if (!line.starts_with(kMethod)) return {};
  line.remove_prefix(kMethod.size());
  const std::size_t space = line.find(' ');
  return space == std::string_view::npos || !line.substr(space).starts_with(" HTTP/1.")
             ? std::string_view{}
             : line.substr(0, space);
}

// Until one end has nothing more to say; the other is told.
void Pass(int from, int to) {
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    const ssize_t count = ::recv(from, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (AwaitReady(from, POLLIN, -1)) continue;
    }
    if (count <= 0 || !SendAll(to, {buffer.data(), static_cast<std::size_t>(count)})) break;
  }
  ::shutdown(to, SHUT_WR);
  ::shutdown(from, SHUT_RD);
}

// False when there is no thread to be had.
bool PassBoth(int inside, int outside) {
  std::thread back;
  try {
    back = std::thread([=] { Pass(outside, inside); });
  } catch (const std::system_error&) {
    return false;
  }
  Pass(inside, outside);
  back.join();
  return true;
}

}  // namespace

Result<std::unique_ptr<WayOut>> WayOut::Serve(os::UniqueFd listener, WayOutOptions options) {
  if (!options.resolve) options.resolve = ResolveHere;
  if (!options.connect) options.connect = ConnectHere;
  std::unique_ptr<WayOut> way(new WayOut(std::move(options)));
  way->listener_ = std::move(listener);
  CAISSON_ASSIGN(way->wake_, os::MakeEventFd());
  try {
    way->thread_ = std::thread([self = way.get()] { self->Accept(); });
  } catch (const std::system_error& error) {
    return os::SyscallError("start a thread for the way out of a node host", error.code().value());
  }
  return way;
}

WayOut::~WayOut() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (Flow& flow : flows_) {
      ::shutdown(flow.inside.get(), SHUT_RDWR);
      if (flow.outside.valid()) ::shutdown(flow.outside.get(), SHUT_RDWR);
    }
  }
  const std::uint64_t one = 1;
  if (wake_.valid()) (void)!::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  for (Flow& flow : flows_) flow.thread.join();
}

void WayOut::Accept() {
  for (;;) {
    std::array<pollfd, 2> events = {{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) return;
    if (events[1].revents != 0) return;
    if (events[0].revents == 0) continue;
    os::UniqueFd inside(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (inside.valid()) Admit(std::move(inside));
  }
}

void WayOut::Admit(os::UniqueFd inside) {
  const std::lock_guard lock(mutex_);
  for (auto flow = flows_.begin(); flow != flows_.end();) {
    if (!flow->has_ended) {
      ++flow;
      continue;
    }
    flow->thread.join();
    flow = flows_.erase(flow);
  }
  if (stop_) return;
  if (flows_.size() >= kMaxConnections) {
    (void)SendAll(inside.get(), Answer("503 Service Unavailable", "too many connections\n"));
    return;
  }
  Flow& flow = flows_.emplace_back();
  flow.inside = std::move(inside);
  try {
    flow.thread = std::thread([this, &flow] { RunFlow(flow); });
  } catch (const std::system_error&) {
    flows_.pop_back();  // closed: the client sees that there is no way
  }
}

void WayOut::RunFlow(Flow& flow) {
  const int inside = flow.inside.get();
  const std::string head = ReadHead(inside);
  const std::string_view target = TargetOf(head);
  const std::string answer =
      target.empty() ? Answer("405 Method Not Allowed", "this proxy knows CONNECT alone\n")
                     : Open(flow, target);
  if (answer.empty()) {
    const int outside = flow.outside.get();
    const std::string_view rest = std::string_view(head).substr(head.find("\r\n\r\n") + 4);
    (void)(SendAll(inside, kOpened) && SendAll(outside, rest) && PassBoth(inside, outside));
  } else if (!head.empty()) {
    (void)SendAll(inside, answer);
  }
  const std::lock_guard lock(mutex_);
  flow.inside.Reset();
  flow.outside.Reset();
  flow.has_ended = true;
}

std::string WayOut::Refuse(std::string_view target, const std::string& because) {
  const std::string said = "no connection to " + ShowForeignLine(target, kShown) + ": " + because;
  if (options_.log) {
    const std::lock_guard lock(log_mutex_);
    options_.log(said);
  }
  return Answer("403 Forbidden", said + "\n");
}

bool WayOut::Keep(Flow& flow, os::UniqueFd outside) {
  const std::lock_guard lock(mutex_);
  if (stop_) return false;
  flow.outside = std::move(outside);
  return true;
}

std::string WayOut::Open(Flow& flow, std::string_view target) {
  const auto destination = egress::ParseDestination(std::string(target));
  if (!destination) return Refuse(target, destination.error().message);
  if (!destination->port) return Refuse(target, "it names no port");
  const json::Value verdict = egress::Explain(options_.policy, *destination);
  const json::Value* open = verdict.Find("open");
  if (open == nullptr || *open != json::Value(true)) {
    const json::Value* because = verdict.Find("because");
    return Refuse(target, because != nullptr && because->is_string() ? because->as_string()
                                                                     : "the policy closes it");
  }
  std::vector<std::uint32_t> addresses;
  if (const auto address = egress::ParseAddress(destination->host)) {
    addresses.push_back(*address);
  } else {
    addresses = options_.resolve(destination->host);
    if (addresses.empty()) return Answer("502 Bad Gateway", "the name cannot be resolved\n");
    std::erase_if(addresses, IsClosed);
    if (addresses.empty()) {
      return Refuse(target, "the name leads to addresses that are closed to everybody");
    }
  }
  for (const std::uint32_t address : addresses) {
    os::UniqueFd outside = options_.connect(address, *destination->port);
    if (!outside.valid()) continue;
    return Keep(flow, std::move(outside)) ? "" : Answer("503 Service Unavailable", "at its end\n");
  }
  return Answer("502 Bad Gateway", "none of its addresses can be reached\n");
}

}  // namespace caisson::host
