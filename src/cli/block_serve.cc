// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "block/run_queue.h"
#include "block/service.h"
#include "cli/block.h"
#include "cli/block_policy.h"
#include "cli/block_runtimes.h"
#include "cli/block_socket.h"
#include "cli/interrupt.h"
#include "errors/cli.h"

namespace caisson::cli {
namespace {

// More wait in the socket's own line until one of these has gone.
constexpr std::size_t kMaxConnections = 256;

std::size_t RunsOf(const BlockServeArguments& arguments) {
  if (arguments.runs != 0) return arguments.runs;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 64);
}

void WaitFor(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any changed;
  changed.wait(lock, stop, [] { return false; });
}

class Connections {
 public:
  Connections(block::Service& service, std::stop_token stop, Console& console)
      : service_(service), stop_(std::move(stop)), console_(console) {}
  ~Connections() {
    for (Connection& connection : all_) connection.thread.join();
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  bool full() {
    all_.remove_if([](Connection& connection) {
      if (!connection.over) return false;
      connection.thread.join();
      return true;
    });
    return all_.size() >= kMaxConnections;
  }

  void Start(os::UniqueFd fd) {
    Connection& connection = all_.emplace_back();
    connection.thread = std::thread([this, &connection, fd = std::move(fd)] {
      // A client that closes early is no error of the service.
      auto served = service_.Serve(fd.get(), fd.get(), stop_);
      if (!served) console_.Complain(served.error());
      connection.over = true;
    });
  }

 private:
  struct Connection {
    std::thread thread;
    std::atomic<bool> over = false;
  };
  block::Service& service_;
  const std::stop_token stop_;
  Console& console_;
  std::list<Connection> all_;
};

// Takes connections until it is asked to stop.
Result<void> ServeSocket(const ListeningSocket& socket, block::Service& service,
                         const std::stop_token& stop, Console& console) {
  CAISSON_ASSIGN(const os::UniqueFd wake, os::MakeEventFd());
  const std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    (void)!write(wake.get(), &one, sizeof one);
  });
  Connections connections(service, stop, console);
  while (!stop.stop_requested()) {
    const bool full = connections.full();
    std::array<pollfd, 2> watched = {
        {{wake.get(), POLLIN, 0}, {full ? -1 : socket.fd(), POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), full ? 100 : -1) < 0) continue;
    if (watched[1].revents == 0) continue;
    auto connection = socket.Accept();
    if (connection) {
      connections.Start(*std::move(connection));
      continue;
    }
    console.Complain(connection.error());  // of descriptors there may be more later
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return {};
}

Result<void> ServeStreams(block::Service& service, const std::stop_token& stop) {
  CAISSON_ASSIGN(const int error, service.Serve(STDIN_FILENO, STDOUT_FILENO, stop));
  if (error == 0) return {};
  return Fail(errors::kCliFileUnwritable,
              std::string("standard output cannot be written, so answers are lost: ") +
                  std::strerror(error));
}

Result<void> Serve(const BlockServeArguments& arguments, Console& console) {
  CAISSON_ASSIGN(const block::Environment environment, ReadBlockEnvironment());
  const RuntimeWish wish = ChooseBlockRuntime(arguments.runtime.runtime, environment);
  block::ServiceOptions options{.max_line_bytes = arguments.max_line_bytes,
                                .version = CAISSON_VERSION};
  CAISSON_ASSIGN(options.limits, ChooseBlockPolicy(arguments, environment, wish));
  std::optional<ListeningSocket> socket;
  if (arguments.socket) {
    CAISSON_ASSIGN(ListeningSocket opened, ListeningSocket::Open(*arguments.socket));
    socket.emplace(std::move(opened));
  }
  // Before any other thread; see cli/interrupt.h.
  const Interrupt interrupt(console);
  const std::size_t runs = RunsOf(arguments);
  const BlockRuntimes::Need need{
      .wish = wish, .runs = runs, .memory_bytes = options.limits.maximum.memory_bytes, .all = true};
  CAISSON_ASSIGN(const auto runtimes, BlockRuntimes::Open(arguments.runtime, need, console));
  if (arguments.allow_auto) runtimes->AllowAuto();
  block::RunQueue queue({.runs = runs, .waiting = arguments.waiting});
  block::Service service(runtimes->set(), options, queue);
  // Interpreters that it has started end with it, so that it stays.
  std::jthread warming([&](const std::stop_token& stop) {
    runtimes->Warm(stop);
    WaitFor(stop);
  });
  const std::stop_callback stop_warming(interrupt.token(), [&] { warming.request_stop(); });
  if (!socket) return ServeStreams(service, interrupt.token());
  console.Info("listening on " + *arguments.socket);
  return ServeSocket(*socket, service, interrupt.token(), console);
}

}  // namespace

ExitCode BlockServe(const BlockServeArguments& arguments, Console& console) {
  auto served = Serve(arguments, console);
  return served ? ExitCode::kOk : console.Complain(served.error());
}

}  // namespace caisson::cli
