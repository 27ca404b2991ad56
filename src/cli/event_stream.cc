// SPDX-License-Identifier: Apache-2.0
#include "cli/event_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "errors/cli.h"
#include "json/writer.h"

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
  auto text = json::Write(event.ToJson());
  if (!text) {  // a value without JSON form in the state: the event goes without its data
    graph::Event bare = event;
    bare.data = nullptr;
    text = json::Write(bare.ToJson());
    if (!text) return;
  }
  *text += '\n';
  std::string_view rest = *text;
  while (!rest.empty()) {
    const ssize_t count = write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error_ = errno;
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

Result<void> EventStream::Finish() const {
  if (error_ == 0) return {};
  return Fail(errors::kCliFileUnwritable,
              "events cannot be written to " + name_ + ": " + std::strerror(error_));
}

}  // namespace caisson::cli
