// SPDX-License-Identifier: Apache-2.0
#include "os/netlink.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::os {
namespace {

constexpr std::size_t kAnswerBytes = 64u
                                     << 10;  // the kernel's dumps come in pieces of at most 32 KiB
constexpr int kSendBytes = 8 << 20;          // of one transaction, with the kernel's own costs
constexpr timeval kPatience = {.tv_sec = 10, .tv_usec = 0};

std::size_t Aligned(std::size_t size) { return NLMSG_ALIGN(size); }

int ErrorIn(std::string_view body) {
  int error = 0;
  if (body.size() >= sizeof(error)) std::memcpy(&error, body.data(), sizeof(error));
  return error < 0 ? -error : 0;
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, std::uint16_t flags) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  AppendBytes(&header, sizeof(header));
}

NetlinkMessage& NetlinkMessage::AppendBytes(const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const char*>(bytes);
  bytes_.insert(bytes_.end(), begin, begin + size);
  bytes_.resize(Aligned(bytes_.size()));
  return *this;
}

NetlinkMessage& NetlinkMessage::PutBytes(std::uint16_t attribute, const void* bytes,
                                         std::size_t size) {
  const nlattr header{.nla_len = static_cast<std::uint16_t>(sizeof(nlattr) + size),
                      .nla_type = attribute};
  AppendBytes(&header, sizeof(header));
  return AppendBytes(bytes, size);
}

NetlinkMessage& NetlinkMessage::PutText(std::uint16_t attribute, const std::string& text) {
  return PutBytes(attribute, text.c_str(), text.size() + 1);
}

std::size_t NetlinkMessage::Begin(std::uint16_t attribute) {
  const std::size_t begun = bytes_.size();
  PutBytes(static_cast<std::uint16_t>(attribute | NLA_F_NESTED), nullptr, 0);
  return begun;
}

NetlinkMessage& NetlinkMessage::End(std::size_t begun) {
  const auto size = static_cast<std::uint16_t>(bytes_.size() - begun);
  std::memcpy(bytes_.data() + begun, &size, sizeof(size));
  return *this;
}

void NetlinkAttributes::ForEach(std::uint16_t attribute,
                                const std::function<void(std::string_view)>& take) const {
  for (std::string_view rest = bytes_; rest.size() >= sizeof(nlattr);) {
    nlattr header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (header.nla_len < sizeof(header) || header.nla_len > rest.size()) break;
    if ((header.nla_type & NLA_TYPE_MASK) == attribute)
      take(rest.substr(sizeof(header), header.nla_len - sizeof(header)));
    rest.remove_prefix(std::min(rest.size(), Aligned(header.nla_len)));
  }
}

std::string_view NetlinkAttributes::Find(std::uint16_t attribute) const {
  std::string_view found;
  ForEach(attribute, [&found](std::string_view value) { found = value; });
  return found;
}

std::string NetlinkAttributes::Text(std::uint16_t attribute) const {
  const std::string_view found = Find(attribute);
  return std::string(found.substr(0, found.find('\0')));
}

Result<NetlinkSocket> NetlinkSocket::Open(int protocol) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!fd.valid()) return SyscallError("open a netlink socket");
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience)) != 0) {
    return SyscallError("set a time limit on a netlink socket");
  }
  // Answers without the request in them, and room for long requests. Both are as good as can be
  // had.
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBytes, sizeof(kSendBytes));
  return NetlinkSocket(std::move(fd));
}

// Fills in what only the sender knows; returns the message's number.
std::uint32_t NetlinkSocket::Number(std::vector<char>& bytes, bool acknowledged) {
  nlmsghdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.nlmsg_len = static_cast<std::uint32_t>(bytes.size());
  header.nlmsg_seq = ++sequence_;
  if (!acknowledged) header.nlmsg_flags &= static_cast<std::uint16_t>(~NLM_F_ACK);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return sequence_;
}

int NetlinkSocket::Send(const std::vector<char>& bytes) {
  while (::send(fd_.get(), bytes.data(), bytes.size(), 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Calls `take` for every part of the next datagram until it returns true. 0, or an errno.
int NetlinkSocket::Receive(const std::function<bool(const nlmsghdr&, std::string_view)>& take) {
  std::vector<char> answer(kAnswerBytes);
  for (bool done = false; !done;) {
    const ssize_t got = ::recv(fd_.get(), answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? EPIPE : errno;
    std::string_view rest(answer.data(), static_cast<std::size_t>(got));
    while (rest.size() >= sizeof(nlmsghdr) && !done) {
      nlmsghdr part;
      std::memcpy(&part, rest.data(), sizeof(part));
      if (part.nlmsg_len < sizeof(part) || part.nlmsg_len > rest.size()) return EPROTO;
      done = take(part, rest.substr(sizeof(part), part.nlmsg_len - sizeof(part)));
      rest.remove_prefix(std::min(rest.size(), Aligned(part.nlmsg_len)));
    }
  }
  return 0;
}

int NetlinkSocket::Request(const NetlinkMessage& message,
                           const std::function<void(std::uint16_t, std::string_view)>& take) {
  std::vector<char> bytes = message.bytes_;
  const std::uint32_t number = Number(bytes, true);
  if (const int error = Send(bytes); error != 0) return error;
  int result = 0;
  const int error = Receive([&](const nlmsghdr& part, std::string_view body) {
    if (part.nlmsg_seq != number) return false;  // of an earlier request that ran out of time
    if (part.nlmsg_type == NLMSG_ERROR || part.nlmsg_type == NLMSG_DONE) {
      result = ErrorIn(body);
      return true;
    }
    if (take) take(part.nlmsg_type, body);
    return false;
  });
  return error != 0 ? error : result;
}

int NetlinkSocket::RequestAll(const NetlinkMessage& begin, std::span<const NetlinkMessage> messages,
                              const NetlinkMessage& end) {
  std::vector<char> all = begin.bytes_;
  const std::uint32_t first = Number(all, false);
  for (const NetlinkMessage& message : messages) {
    std::vector<char> bytes = message.bytes_;
    Number(bytes, true);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  const std::uint32_t last = sequence_;
  std::vector<char> bytes = end.bytes_;
  Number(bytes, false);
  all.insert(all.end(), bytes.begin(), bytes.end());
  if (const int error = Send(all); error != 0) return error;
  int result = 0;
  std::size_t answers = 0;
  const int error = Receive([&](const nlmsghdr& part, std::string_view body) {
    if (part.nlmsg_type != NLMSG_ERROR || part.nlmsg_seq < first || part.nlmsg_seq > last + 1) {
      return false;
    }
    const int refused = ErrorIn(body);
    if (result == 0) result = refused;
    // A refusal of the whole comes for a bracket, instead of all answers.
    return part.nlmsg_seq == first || part.nlmsg_seq > last || ++answers == last - first;
  });
  return error != 0 ? error : result;
}

int NetlinkSocket::TakeWaiting(const std::function<void(std::uint16_t, std::string_view)>& take) {
  std::vector<char> answer(kAnswerBytes);
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN ? 0 : errno;
    std::string_view rest(answer.data(), static_cast<std::size_t>(got));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr part;
      std::memcpy(&part, rest.data(), sizeof(part));
      if (part.nlmsg_len < sizeof(part) || part.nlmsg_len > rest.size()) return EPROTO;
      take(part.nlmsg_type, rest.substr(sizeof(part), part.nlmsg_len - sizeof(part)));
      rest.remove_prefix(std::min(rest.size(), Aligned(part.nlmsg_len)));
    }
  }
}

Result<void> NetlinkSocket::Do(const NetlinkMessage& message, std::string_view what) {
  const int error = Request(message);
  if (error != 0) return SyscallError(what, error);
  return {};
}

}  // namespace caisson::os
