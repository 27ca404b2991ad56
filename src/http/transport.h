// SPDX-License-Identifier: Apache-2.0
// A connected stream socket, with TLS or without: reads and writes that never block, and waits for
// readiness. Belongs to one I/O thread.
#pragma once

#include <openssl/types.h>
#include <sys/uio.h>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "os/fd.h"

namespace caisson::http {

struct SslDeleter {
  void operator()(SSL* ssl) const;
};
using UniqueSsl = std::unique_ptr<SSL, SslDeleter>;

class Transport {
 public:
  enum class State { kDone, kBlocked, kEnd, kBroken };
  struct Progress {
    State state;
    std::size_t bytes = 0;
  };

  // `socket` does not block. `ssl`, if any, is set up to accept.
  Transport(boost::asio::io_context& context, os::UniqueFd socket, UniqueSsl ssl);

  State Handshake();  // kDone at once without TLS
  Progress Read(std::span<char> into);
  Progress Write(std::span<const iovec> pieces);
  // A read that filled less than its space has left nothing behind, so that the next read needs not
  // be tried before the socket is readable.
  bool tells_emptiness() const { return ssl_ == nullptr; }
  // Sends the end of the stream; reading goes on.
  void ShutdownWrite();
  // Close will then tell the other side that something went wrong.
  void ResetOnClose();
  void Close() { descriptor_.close(ignored_); }
  bool is_open() const { return descriptor_.is_open(); }
  // The other side has ended its stream, even if there are bytes that were not read.
  bool PeerEnded();
  bool has_tls() const { return ssl_ != nullptr; }

  // Calls `then` once there may be something to read (or write), or not at all when closed before.
  template <typename Then>
  void WaitReadable(Then then) {
    Wait(wants_write_to_read_ ? Descriptor::wait_write : Descriptor::wait_read, std::move(then));
  }
  template <typename Then>
  void WaitWritable(Then then) {
    Wait(wants_read_to_write_ ? Descriptor::wait_read : Descriptor::wait_write, std::move(then));
  }

 private:
  using Descriptor =
      boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  template <typename Then>
  void Wait(Descriptor::wait_type what, Then then) {
    descriptor_.async_wait(what, [then = std::move(then)](boost::system::error_code error) mutable {
      if (error != boost::asio::error::operation_aborted) then();
    });
  }
  State TlsState(int result, bool reading);

  Descriptor descriptor_;
  UniqueSsl ssl_;
  bool wants_write_to_read_ = false;
  bool wants_read_to_write_ = false;
  boost::system::error_code ignored_;
};

}  // namespace caisson::http
