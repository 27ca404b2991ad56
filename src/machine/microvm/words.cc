// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/words.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace caisson::machine::microvm {
namespace {

constexpr std::size_t kKept = 4096;

}  // namespace

void Words::Watch(agent::guest::Loop& loop, os::UniqueFd pipe) {
  ::fcntl(pipe.get(), F_SETFL, ::fcntl(pipe.get(), F_GETFL) | O_NONBLOCK);
  source_ =
      std::make_unique<agent::guest::EventSource>(loop, std::move(pipe), [this](std::uint32_t) {
        if (!ReadOnce()) source_->Want(0);
      });
  source_->Want(EPOLLIN);
}

// False at the end.
bool Words::ReadOnce() {
  std::array<char, 1024> piece{};
  const ssize_t n = ::read(source_->fd(), piece.data(), piece.size());
  if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
  text_.append(piece.data(), static_cast<std::size_t>(n));
  if (text_.size() > kKept) text_.erase(0, text_.size() - kKept);
  return true;
}

std::string Words::Last() {
  if (source_ == nullptr) return text_;
  for (std::size_t before = text_.size() + 1; before != text_.size();) {
    before = text_.size();
    if (!ReadOnce() || before == kKept) break;
  }
  return text_;
}

}  // namespace caisson::machine::microvm
