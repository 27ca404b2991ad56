// SPDX-License-Identifier: Apache-2.0
#include "http/io_thread.h"

#include <fmt/chrono.h>

#include <ctime>

namespace caisson::http {
namespace {

constexpr std::size_t kKeptBuffers = 64;

}  // namespace

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

IoThread::IoThread(std::chrono::milliseconds tick)
    : work_(context_.get_executor()), timer_(context_), tick_(tick) {
  ScheduleTick();
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { context_.run(); });
}

IoThread::~IoThread() { Stop(); }

void IoThread::Stop() {
  if (!thread_.joinable()) return;
  Post([this] {
    timer_.cancel();
    work_.reset();
    context_.stop();
  });
  thread_.join();
}

void IoThread::ScheduleTick() {
  timer_.expires_after(tick_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    Refresh();
    ForEach([&](Connection& connection) { connection.Tick(now_); });
    ScheduleTick();
  });
}

void IoThread::Add(const std::shared_ptr<Connection>& connection) {
  connections_.emplace(connection.get(), connection);
  count_.store(connections_.size(), std::memory_order_relaxed);
}

void IoThread::Remove(Connection& connection) {
  connections_.erase(&connection);
  count_.store(connections_.size(), std::memory_order_relaxed);
}

void IoThread::ForEach(const std::function<void(Connection&)>& visit) {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const std::shared_ptr<Connection> held = next->second;  // a visit may remove it
    ++next;
    visit(*held);
  }
}

std::string_view IoThread::date() {
  if (now_ >= date_until_) {
    const std::time_t seconds = std::time(nullptr);
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(seconds));
    date_until_ = now_ + std::chrono::milliseconds(500);
  }
  return date_;
}

std::unique_ptr<char[]> IoThread::TakeBuffer() {
  if (buffers_.empty()) return std::make_unique_for_overwrite<char[]>(kInputBuffer);
  std::unique_ptr<char[]> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void IoThread::GiveBuffer(std::unique_ptr<char[]> buffer) {
  if (buffer && buffers_.size() < kKeptBuffers) buffers_.push_back(std::move(buffer));
}

}  // namespace caisson::http
