// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cerrno>
#include <latch>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "errors/http.h"
#include "http/address.h"
#include "http/http1.h"
#include "http/io_thread.h"
#include "http/service.h"
#include "http/tls.h"
#include "os/fd.h"

namespace caisson::http {
namespace {

constexpr std::chrono::milliseconds kSlowestTick{500};
constexpr std::chrono::milliseconds kFastestTick{5};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptBatch = 64;
constexpr int kMostUnsent = 512 << 10;  // bytes of a connection that wait in the kernel

std::chrono::milliseconds TickOf(const Limits& limits) {
  const auto shortest = std::min(
      {limits.header_timeout, limits.idle_timeout, limits.body_timeout, limits.write_timeout});
  return std::clamp(shortest / 8, kFastestTick, kSlowestTick);
}

void SetOption(int socket, int level, int name, int value) {
  setsockopt(socket, level, name, &value, sizeof(value));
}

void SetUp(int socket) {
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // Clients that take nothing shall not fill megabytes of the kernel's memory each.
  SetOption(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMostUnsent);
  // A client whose machine or network vanished sends nothing that would tell: two minutes.
  SetOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 120'000);
}

class TheServer;

// One listening socket, on the first I/O thread.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(TheServer& server, IoThread& thread, Listening listening, SharedTls tls,
           std::optional<TlsFiles> files)
      : server_(server),
        port_(listening.port),
        unix_path_(std::move(listening.unix_path)),
        descriptor_(thread.context(), listening.socket.Release()),
        pause_(thread.context()),
        tls_(std::move(tls)),
        files_(std::move(files)) {}

  std::uint16_t port() const { return port_; }
  const std::optional<TlsFiles>& files() const { return files_; }
  void SetTls(SharedTls tls) { tls_ = std::move(tls); }  // on the I/O thread
  void Wait();
  void Close();

 private:
  void Accept();
  void Take(os::UniqueFd socket, const sockaddr_storage& peer);

  TheServer& server_;
  const std::uint16_t port_;
  const std::string unix_path_;
  boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> descriptor_;
  boost::asio::steady_timer pause_;
  SharedTls tls_;
  const std::optional<TlsFiles> files_;
};

class TheServer final : public Server {
 public:
  TheServer(Options options, Router router)
      : service_(std::make_shared<Service>(std::move(options), std::move(router))) {}
  ~TheServer() override;

  Result<void> Listen();
  std::uint16_t port(std::size_t listener) const override {
    return listener < acceptors_.size() ? acceptors_[listener]->port() : 0;
  }
  Result<void> ReloadTls() override;
  bool Drain(std::chrono::milliseconds patience) override;
  Counts counts() const override;

  bool is_full() const;
  void Adopt(os::UniqueFd socket, UniqueSsl ssl, std::string peer);

 private:
  IoThread& first() { return *threads_.front(); }
  void OnEveryThread(const std::function<void(IoThread&)>& work);
  bool AllGone() const;
  bool WaitUntilGone(std::chrono::milliseconds patience) const;

  const std::shared_ptr<Service> service_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  std::atomic<std::size_t> next_thread_{0};
  std::mutex drain_mutex_;
};

void Acceptor::Wait() {
  descriptor_.async_wait(decltype(descriptor_)::wait_read,
                         [self = shared_from_this(), this](boost::system::error_code error) {
                           if (!error) Accept();
                         });
}

void Acceptor::Accept() {
  for (int i = 0; i < kAcceptBatch && descriptor_.is_open(); ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    os::UniqueFd socket(accept4(descriptor_.native_handle(), reinterpret_cast<sockaddr*>(&peer),
                                &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      Take(std::move(socket), peer);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
    // Out of descriptors or memory: trying at once would only burn time.
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this(), this](boost::system::error_code error) {
      if (!error) Accept();
    });
    return;
  }
  if (descriptor_.is_open()) Wait();
}

void Acceptor::Take(os::UniqueFd socket, const sockaddr_storage& peer) {
  if (server_.is_full()) {
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";
    if (!tls_) (void)send(socket.get(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  UniqueSsl ssl;
  if (tls_ && !(ssl = NewTls(tls_))) return;
  if (peer.ss_family != AF_UNIX) SetUp(socket.get());
  server_.Adopt(std::move(socket), std::move(ssl), PeerText(peer));
}

void Acceptor::Close() {
  if (!descriptor_.is_open()) return;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  pause_.cancel();
  if (!unix_path_.empty()) unlink(unix_path_.c_str());
}

Result<void> TheServer::Listen() {
  const Options& options = service_->options;
  struct Ready {
    Listening listening;
    SharedTls tls;
  };
  std::vector<Ready> ready;
  for (const Listener& listener : options.listeners) {
    ready.emplace_back();
    if (!listener.tls) continue;
    CAISSON_ASSIGN(ready.back().tls, LoadTls(*listener.tls));
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Listener& listener = options.listeners[i];
    auto listening = http::Listen(listener.address, listener.unix_mode);
    if (!listening) {
      for (const Ready& made : ready) unlink(made.listening.unix_path.c_str());
      return Fail(std::move(listening).error());
    }
    ready[i].listening = std::move(*listening);
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(1, options.io_threads); ++i) {
    threads_.push_back(std::make_unique<IoThread>(TickOf(options.limits)));
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    acceptors_.push_back(std::make_shared<Acceptor>(*this, first(), std::move(ready[i].listening),
                                                    std::move(ready[i].tls),
                                                    options.listeners[i].tls));
    first().Post([acceptor = acceptors_.back()] { acceptor->Wait(); });
  }
  return {};
}

Result<void> TheServer::ReloadTls() {
  std::vector<std::pair<std::shared_ptr<Acceptor>, SharedTls>> loaded;
  for (const auto& acceptor : acceptors_) {
    if (!acceptor->files()) continue;
    CAISSON_ASSIGN(SharedTls tls, LoadTls(*acceptor->files()));
    loaded.emplace_back(acceptor, std::move(tls));
  }
  std::latch done(1);
  first().Post([&] {
    for (auto& [acceptor, tls] : loaded) acceptor->SetTls(std::move(tls));
    done.count_down();
  });
  done.wait();
  return {};
}

bool TheServer::is_full() const {
  return counts().connections >= service_->options.limits.connections;
}

void TheServer::Adopt(os::UniqueFd socket, UniqueSsl ssl, std::string peer) {
  IoThread& thread = *threads_[next_thread_++ % threads_.size()];
  const auto begin = [&thread, service = service_](os::UniqueFd taken, UniqueSsl tls,
                                                   std::string who) {
    if (service->draining) return;
    auto connection =
        MakeHttp1(service, thread, Transport(thread.context(), std::move(taken), std::move(tls)),
                  std::move(who));
    thread.Add(connection);
    connection->Start();
  };
  if (&thread == &first()) return begin(std::move(socket), std::move(ssl), std::move(peer));
  thread.Post(
      [begin, taken = std::move(socket), tls = std::move(ssl), who = std::move(peer)]() mutable {
        begin(std::move(taken), std::move(tls), std::move(who));
      });
}

Counts TheServer::counts() const {
  Counts counts{0, service_->exchanges, service_->pool.busy()};
  for (const auto& thread : threads_) counts.connections += thread->connections();
  return counts;
}

void TheServer::OnEveryThread(const std::function<void(IoThread&)>& work) {
  std::latch done(static_cast<std::ptrdiff_t>(threads_.size()));
  for (const auto& thread : threads_) {
    thread->Post([&, own = thread.get()] {
      work(*own);
      done.count_down();
    });
  }
  done.wait();
}

bool TheServer::AllGone() const {
  const Counts now = counts();
  return now.connections == 0 && now.exchanges == 0;
}

bool TheServer::WaitUntilGone(std::chrono::milliseconds patience) const {
  const auto until = Clock::now() + patience;
  while (!AllGone()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool TheServer::Drain(std::chrono::milliseconds patience) {
  if (threads_.empty()) return true;
  const std::lock_guard lock(drain_mutex_);
  service_->draining = true;
  OnEveryThread([this](IoThread& thread) {
    if (&thread == &first()) {
      for (const auto& acceptor : acceptors_) acceptor->Close();
    }
    thread.ForEach([](Connection& connection) { connection.Drain(); });
  });
  const bool all = WaitUntilGone(patience);
  OnEveryThread(
      [](IoThread& thread) { thread.ForEach([](Connection& connection) { connection.Break(); }); });
  return all;
}

TheServer::~TheServer() {
  Drain(std::chrono::milliseconds(0));
  service_->pool.Stop();
  while (!AllGone()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto& thread : threads_) thread->Stop();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(Options options, Router router) {
  CAISSON_TRY(router.Check());
  options.limits.buffer = std::max(options.limits.buffer, options.limits.inline_body);
  if (options.limits.header_bytes > IoThread::kInputBuffer / 2 || options.limits.body_rate == 0) {
    return Fail(errors::kHttpMisuse, "limits of the server are out of range");
  }
  const SignalsBlocked blocked;
  auto server = std::make_unique<TheServer>(std::move(options), std::move(router));
  CAISSON_TRY(server->Listen());
  return server;
}

}  // namespace caisson::http
