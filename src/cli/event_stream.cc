// SPDX-License-Identifier: Apache-2.0
#include "cli/event_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/foreign_text.h"
#include "errors/cli.h"
#include "json/writer.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

// Lines up to about that length are made as a whole, and so much is held back at most.
constexpr std::size_t kWholeLine = 64u << 10;

}  // namespace

Result<void> EventStream::Open(const std::string& path) {
  name_ = path;
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) error_ = errno;
  return Finish();
}

EventStream::~EventStream() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

void EventStream::OnEvent(const graph::Event& event) {
  if (error_ != 0) return;
  if (event.AppendText(lines_, kWholeLine)) {
    lines_ += '\n';
    if (lines_.size() > kWholeLine) Flush();
    return;
  }
  // No other line comes between the pieces of this one.
  const auto held = Hold();
  FlushHeld();
  if (WriteLine(event.ToJson())) return;
  // A value without JSON form in the state: the event goes without its data.
  graph::Event bare = event;
  bare.data = nullptr;
  (void)WriteLine(bare.ToJson());
}

std::unique_lock<std::mutex> EventStream::Hold() {
  return descriptor_ == STDERR_FILENO ? console_.Hold() : std::unique_lock<std::mutex>();
}

void EventStream::Flush() {
  if (lines_.empty()) return;
  const auto held = Hold();
  FlushHeld();
}

void EventStream::FlushHeld() {
  if (lines_.empty()) return;
  WriteAll(IsSafeJson(lines_) ? lines_ : SafeJson(lines_));
  lines_.clear();
}

void EventStream::OnDelta(const graph::Delta& delta) { Write(delta.ToJson()); }

void EventStream::Write(const json::Value& document) {
  if (error_ != 0) return;
  const auto held = Hold();
  FlushHeld();
  (void)WriteLine(document);
}

bool EventStream::WriteLine(const json::Value& document) {
  std::string rest;  // so that a line of usual length is one write
  const auto take = [&](std::string_view piece) {
    WriteAll(std::exchange(rest, SafeJson(piece)));
    return error_ == 0;
  };
  if (!json::WritePieces(document, take)) return false;
  WriteAll(rest + "\n");
  return true;
}

void EventStream::WriteAll(std::string_view text) {
  if (error_ == 0) error_ = os::WriteAll(descriptor_, text);
}

Result<void> EventStream::Finish() const {
  if (error_ == 0) return {};
  return Fail(errors::kCliFileUnwritable,
              "events cannot be written to " + name_ + ": " + std::strerror(error_));
}

}  // namespace caisson::cli
