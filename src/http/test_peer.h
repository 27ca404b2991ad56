// SPDX-License-Identifier: Apache-2.0
// For tests: a server on the loopback that reads one request head, says bytes that the test chose,
// whatever they are, and waits for its client to go.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "os/fd.h"

namespace caisson::http {

class TestPeer {
 public:
  TestPeer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), 64) != 0) std::abort();
    getsockname(listener_.get(), generic, &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
  }
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;
  ~TestPeer() {
    acceptor_.request_stop();
    acceptor_.join();
    talkers_.clear();
  }

  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }
  // What every request from now on is answered.
  void Answer(std::string bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(bytes);
  }
  // From now on a byte every 10 ms follows.
  void DripForever() { drips_ = true; }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }
  std::string Url(const std::string& answer) const {
    const_cast<TestPeer*>(this)->Answer(answer);
    return Url();
  }
  // With as much of its body as came along.
  std::string last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  void Accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waits{listener_.get(), POLLIN, 0};
      if (poll(&waits, 1, 20) != 1) continue;
      os::UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ++connections_;
      talkers_.emplace_back([this, connection = std::move(connection)](
                                const std::stop_token& ends) { Talk(connection.get(), ends); });
    }
  }

  void Talk(int socket, const std::stop_token& stop) {
    std::string request;
    bool drips = false;
    while (!stop.stop_requested()) {
      pollfd waits{socket, POLLIN, 0};
      if (poll(&waits, 1, 10) == 1) {
        char bytes[4096];
        const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
        if (count <= 0) return;
        request.append(bytes, static_cast<std::size_t>(count));
        const std::lock_guard lock(mutex_);
        last_request_ = request;
        if (request.find("\r\n\r\n") == std::string::npos) continue;
        send(socket, answer_.data(), answer_.size(), MSG_NOSIGNAL);
        request.clear();
        drips = drips_;
      } else if (drips && send(socket, "x", 1, MSG_NOSIGNAL) != 1) {
        return;
      }
    }
  }

  os::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> drips_{false};
  mutable std::mutex mutex_;
  std::string answer_;
  std::string last_request_;
  std::vector<std::jthread> talkers_;
  std::jthread acceptor_;
};

}  // namespace caisson::http
