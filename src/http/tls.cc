// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>

#include "errors/http.h"

namespace caisson::http {
namespace {

std::string LastError() {
  char text[256] = "unknown";
  if (const unsigned long code = ERR_peek_last_error())
    ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return text;
}

int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr std::string_view kHttp11 = "http/1.1";
  std::string_view rest(reinterpret_cast<const char*>(offered), offered_size);
  while (!rest.empty()) {
    const auto length = static_cast<unsigned char>(rest.front());
    if (rest.substr(1, length) == kHttp11) {
      *chosen = reinterpret_cast<const unsigned char*>(kHttp11.data());
      *size = static_cast<unsigned char>(kHttp11.size());
      return SSL_TLSEXT_ERR_OK;
    }
    if (rest.size() <= length) break;
    rest.remove_prefix(1u + length);
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

Result<SharedTls> LoadTls(const TlsFiles& files) {
  ERR_clear_error();
  SharedTls context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return Fail(errors::kHttpTls, "no TLS context: " + LastError());
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return Fail(errors::kHttpTls, fmt::format("the certificate {} cannot be used: {}",
                                              files.certificate, LastError()));
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return Fail(errors::kHttpTls,
                fmt::format("the key {} cannot be used with the certificate {}: {}", files.key,
                            files.certificate, LastError()));
  }
  return context;
}

UniqueSsl NewTls(const SharedTls& context) {
  UniqueSsl ssl(SSL_new(context.get()));
  if (ssl) SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace caisson::http
