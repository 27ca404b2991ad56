// SPDX-License-Identifier: Apache-2.0
// One I/O thread: an Asio context, the connections that live on it, a coarse clock for their
// timeouts. Everything but Post and the counters belongs to that thread.
#pragma once

#include <signal.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace caisson::http {

using Clock = std::chrono::steady_clock;

// While it lives, this thread (and those that it starts) takes no signals: they are for the program
// to handle, and a broken connection shall be an error and no SIGPIPE.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// What lives on an I/O thread until it closes itself.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;
  virtual void Start() = 0;
  virtual void Tick(Clock::time_point now) = 0;
  // Finishes what runs, takes nothing new, closes.
  virtual void Drain() = 0;
  // Closes at once; handlers that run are told.
  virtual void Break() = 0;
};

class IoThread {
 public:
  static constexpr std::size_t kInputBuffer = 64 << 10;

  explicit IoThread(std::chrono::milliseconds tick);
  ~IoThread();
  // Ends the thread once the connections are gone; waits for it.
  void Stop();

  boost::asio::io_context& context() { return context_; }
  template <typename Work>
  void Post(Work&& work) {
    boost::asio::post(context_, std::forward<Work>(work));
  }

  void Add(const std::shared_ptr<Connection>& connection);
  void Remove(Connection& connection);
  std::size_t connections() const { return count_.load(std::memory_order_relaxed); }
  void ForEach(const std::function<void(Connection&)>& visit);

  Clock::time_point now() const { return now_; }  // of the last tick or event; exact enough
  void Refresh() { now_ = Clock::now(); }
  std::string_view date();  // for the field Date, renewed every second

  // Input buffers are lent to connections that hold bytes; an idle one has none.
  std::unique_ptr<char[]> TakeBuffer();
  void GiveBuffer(std::unique_ptr<char[]> buffer);

 private:
  void ScheduleTick();

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  const std::chrono::milliseconds tick_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::atomic<std::size_t> count_{0};
  Clock::time_point now_ = Clock::now();
  std::string date_;
  Clock::time_point date_until_;
  std::vector<std::unique_ptr<char[]>> buffers_;
  std::thread thread_;
};

}  // namespace caisson::http
