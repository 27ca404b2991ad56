// SPDX-License-Identifier: Apache-2.0
#include "http/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace caisson::http {

void SslDeleter::operator()(SSL* ssl) const { SSL_free(ssl); }

Transport::Transport(boost::asio::io_context& context, os::UniqueFd socket, UniqueSsl ssl)
    : descriptor_(context, socket.Release()), ssl_(std::move(ssl)) {
  if (ssl_) SSL_set_fd(ssl_.get(), descriptor_.native_handle());
}

Transport::State Transport::TlsState(int result, bool reading) {
  wants_write_to_read_ = wants_read_to_write_ = false;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_read_to_write_ = !reading;
      return State::kBlocked;
    case SSL_ERROR_WANT_WRITE:
      wants_write_to_read_ = reading;
      return State::kBlocked;
    case SSL_ERROR_ZERO_RETURN:
      return State::kEnd;
    default:
      return State::kBroken;
  }
}

Transport::State Transport::Handshake() {
  if (!ssl_) return State::kDone;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? State::kDone : TlsState(result, true);
}

Transport::Progress Transport::Read(std::span<char> into) {
  if (ssl_) {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
    if (result == 1) return {State::kDone, got};
    return {TlsState(result, true)};
  }
  while (true) {
    const ssize_t got = recv(descriptor_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return {State::kDone, static_cast<std::size_t>(got)};
    if (got == 0) return {State::kEnd};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::kBlocked};
    if (errno != EINTR) return {State::kBroken};
  }
}

Transport::Progress Transport::Write(std::span<const iovec> pieces) {
  if (ssl_) {
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), pieces[0].iov_base, pieces[0].iov_len, &written);
    if (result == 1) return {State::kDone, written};
    return {TlsState(result, false)};
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg does not write to it
  message.msg_iovlen = pieces.size();
  while (true) {
    const ssize_t sent =
        sendmsg(descriptor_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {State::kDone, static_cast<std::size_t>(sent)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::kBlocked};
    if (errno != EINTR) return {State::kBroken};
  }
}

void Transport::ShutdownWrite() {
  if (!is_open()) return;
  if (ssl_ && SSL_is_init_finished(ssl_.get())) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }
  shutdown(descriptor_.native_handle(), SHUT_WR);
}

void Transport::ResetOnClose() {
  const linger now{1, 0};
  setsockopt(descriptor_.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

bool Transport::PeerEnded() {
  pollfd watched{descriptor_.native_handle(), POLLRDHUP, 0};
  return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace caisson::http
