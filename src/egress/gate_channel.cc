// SPDX-License-Identifier: Apache-2.0
#include "egress/gate_channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "errors/egress.h"
#include "os/fd_passing.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxDescriptors = 8;
constexpr std::size_t kReadAtOnce = 64u << 10;

std::unexpected<Status> Violation(const char* what) {
  return Fail(errors::kEgressGateFailed,
              std::string("Helper and egress gate do not speak the same protocol: ") + what +
                  ". They must be of one version.");
}

std::uint32_t LengthAt(std::string_view bytes) {
  std::uint32_t length = 0;
  for (unsigned i = 0; i < 4; ++i) {
    length |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return length;
}

}  // namespace

Result<bool> GateChannel::Receive() {
  for (;;) {
    std::array<char, kReadAtOnce> bytes;
    os::FdSpace<kMaxDescriptors> space;
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    space.Await(message);
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got < 0 && errno == ECONNRESET) return false;
    if (got < 0) return os::SyscallError("receive from the egress gate's channel");
    os::TakeFds(message, [this](int fd) { descriptors_.emplace_back(fd); });
    if ((message.msg_flags & MSG_CTRUNC) != 0 || descriptors_.size() > kMaxDescriptors) {
      return Violation("too many descriptors came");
    }
    if (got == 0) return false;
    in_.append(bytes.data(), static_cast<std::size_t>(got));
    if (in_.size() - taken_ >= kMaxGateFrame + 4) return true;  // one message is there for sure
  }
}

Result<std::optional<GateMessage>> GateChannel::Next() {
  const std::string_view rest = std::string_view(in_).substr(taken_);
  if (rest.size() >= 4) {
    const std::uint32_t length = LengthAt(rest);
    if (length == 0 || length > kMaxGateFrame) return Violation("a frame has no valid length");
    if (rest.size() - 4 >= length) {
      auto message = DecodeGateMessage(rest.substr(4, length));
      if (!message) return Violation("a frame is malformed");
      taken_ += 4 + length;
      return message;
    }
  }
  in_.erase(0, taken_);
  taken_ = 0;
  return std::optional<GateMessage>();
}

void GateChannel::Queue(const GateMessage& message, std::vector<os::UniqueFd> descriptors) {
  if (!descriptors.empty()) {
    descriptors_at_ = out_.size();
    outgoing_ = std::move(descriptors);
  }
  out_ += EncodeGateMessage(message);
}

Result<void> GateChannel::Send() {
  while (sent_ < out_.size()) {
    const bool with_descriptors = !outgoing_.empty() && sent_ == descriptors_at_;
    const std::size_t end =
        !outgoing_.empty() && sent_ < descriptors_at_ ? descriptors_at_ : out_.size();
    iovec part{out_.data() + sent_, end - sent_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    os::FdSpace<kMaxDescriptors> space;
    std::vector<int> fds;
    if (with_descriptors) {
      for (const os::UniqueFd& each : outgoing_) fds.push_back(each.get());
    }
    space.Attach(message, fds);
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (sent < 0) return os::SyscallError("send on the egress gate's channel");
    if (with_descriptors) outgoing_.clear();
    sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  descriptors_at_ = 0;
  return {};
}

}  // namespace caisson::egress
