// SPDX-License-Identifier: Apache-2.0
// TLS client hellos for tests: one by OpenSSL, as programs send it, and ones made by hand.
#pragma once

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::egress::gate {

inline std::string HelloOfOpenSsl(const std::string& name) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
  if (!name.empty()) SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  EXPECT_LT(SSL_connect(ssl.get()), 0);
  std::string hello(BIO_ctrl_pending(out), '\0');
  BIO_read(out, hello.data(), static_cast<int>(hello.size()));
  return hello;
}

inline std::string Number(std::size_t bytes, std::size_t value) {
  std::string text;
  for (std::size_t i = bytes; i > 0; --i) {
    text += static_cast<char>(value >> (8 * (i - 1)) & 0xff);
  }
  return text;
}
inline std::string Vector(std::size_t length_bytes, std::string_view body) {
  return Number(length_bytes, body.size()) + std::string(body);
}

using Extensions = std::vector<std::pair<unsigned, std::string>>;

inline std::string ServerName(std::string_view name) {
  return Vector(2, std::string(1, '\0') + Vector(2, name));
}
// The handshake message, with its header.
inline std::string HelloMessage(const Extensions& extensions) {
  std::string block;
  for (const auto& [type, body] : extensions) block += Number(2, type) + Vector(2, body);
  return "\x01" + Vector(3, "\x03\x03" + std::string(32, 'r') + Vector(1, "session") +
                                Vector(2, "\x13\x01\x13\x02") + Vector(1, std::string(1, '\0')) +
                                Vector(2, block));
}
inline std::string Record(std::string_view fragment) {
  return "\x16\x03\x01" + Vector(2, fragment);
}
// A record of early or application data.
inline std::string DataRecord(std::string_view bytes) { return "\x17\x03\x03" + Vector(2, bytes); }
inline std::string Hello(const Extensions& extensions) { return Record(HelloMessage(extensions)); }
inline std::string HelloFor(std::string_view name) { return Hello({{0, ServerName(name)}}); }

// What servers answer.
inline std::string ServerHelloWith(const std::string& random) {
  const std::string body =
      "\x03\x03" + random + Vector(1, "session") + std::string("\x13\x01\0", 3);
  return Record("\x02" + Vector(3, body));
}
inline std::string RetryRequest() {
  return ServerHelloWith(
      "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
      "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c");
}

}  // namespace caisson::egress::gate
