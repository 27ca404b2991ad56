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
  // No other line comes between the pieces of this one.
  std::unique_lock<std::mutex> held;
  if (descriptor_ == STDERR_FILENO) held = console_.Hold();
  if (WriteLine(event.ToJson())) return;
  // A value without JSON form in the state: the event goes without its data.
  graph::Event bare = event;
  bare.data = nullptr;
  (void)WriteLine(bare.ToJson());
}

void EventStream::OnDelta(const graph::Delta& delta) {
  if (error_ != 0) return;
  std::unique_lock<std::mutex> held;
  if (descriptor_ == STDERR_FILENO) held = console_.Hold();
  (void)WriteLine(delta.ToJson());
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
