// SPDX-License-Identifier: Apache-2.0
// Netlink sockets and messages: requests that the kernel acknowledges, and dumps. A socket works in
// the network namespace in which it was opened, whoever uses it later. Not thread-safe per object.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::os {

// One request: a header, the structure of its family, attributes.
class NetlinkMessage {
 public:
  // NLM_F_REQUEST and NLM_F_ACK are added.
  NetlinkMessage(std::uint16_t type, std::uint16_t flags);

  template <typename Struct>
  NetlinkMessage& Append(const Struct& value) {
    return AppendBytes(&value, sizeof(value));
  }
  template <typename Number>
  NetlinkMessage& Put(std::uint16_t attribute, const Number& value) {
    return PutBytes(attribute, &value, sizeof(value));
  }
  NetlinkMessage& PutText(std::uint16_t attribute, const std::string& text);  // with its NUL
  NetlinkMessage& PutBytes(std::uint16_t attribute, const void* bytes, std::size_t size);
  // Attributes inside an attribute, between the two calls.
  std::size_t Begin(std::uint16_t attribute);
  NetlinkMessage& End(std::size_t begun);

 private:
  friend class NetlinkSocket;
  NetlinkMessage& AppendBytes(const void* bytes, std::size_t size);

  std::vector<char> bytes_;
};

// Attributes of an answer, by type; the last of a type counts. They point into the answer.
class NetlinkAttributes {
 public:
  explicit NetlinkAttributes(std::string_view bytes) : bytes_(bytes) {}
  // Empty when it is not there; without padding.
  std::string_view Find(std::uint16_t attribute) const;
  template <typename Number>
  bool Read(std::uint16_t attribute, Number& value) const {
    const std::string_view found = Find(attribute);
    if (found.size() < sizeof(value)) return false;
    found.copy(reinterpret_cast<char*>(&value), sizeof(value));
    return true;
  }
  std::string Text(std::uint16_t attribute) const;  // up to its NUL
  // Each of a list, in their order.
  void ForEach(std::uint16_t attribute,
               const std::function<void(std::string_view value)>& take) const;

 private:
  std::string_view bytes_;
};

class NetlinkSocket {
 public:
  // In the network namespace of the calling thread. `protocol`: NETLINK_ROUTE, NETLINK_NETFILTER.
  static Result<NetlinkSocket> Open(int protocol);

  // Sends and waits for what the kernel says: 0, or the errno of its refusal (of the socket's own
  // failure, too). Parts of an answer go to `take` without their netlink header.
  int Request(const NetlinkMessage& message,
              const std::function<void(std::uint16_t type, std::string_view body)>& take = {});
  // Messages between the two brackets of a transaction. 0 when the kernel took each of them, else
  // the first errno; whether it took effect is for the caller to find out.
  int RequestAll(const NetlinkMessage& begin, std::span<const NetlinkMessage> messages,
                 const NetlinkMessage& end);
  // Hands on what has come without a request, and does not wait: 0, or an errno (ENOBUFS: some of
  // it was lost).
  int TakeWaiting(const std::function<void(std::uint16_t type, std::string_view body)>& take);
  int fd() const { return fd_.get(); }  // for poll(2)

  // The same as a Status, os.syscall: `what` says what was tried.
  Result<void> Do(const NetlinkMessage& message, std::string_view what);

 private:
  explicit NetlinkSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  std::uint32_t Number(std::vector<char>& bytes, bool acknowledged);
  int Send(const std::vector<char>& bytes);
  int Receive(const std::function<bool(const nlmsghdr&, std::string_view)>& take);

  UniqueFd fd_;
  std::uint32_t sequence_ = 0;
};

}  // namespace caisson::os
