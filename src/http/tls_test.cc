// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <csignal>
#include <cstdio>

#include "http/client.h"
#include "http/outbound.h"
#include "http/test_server.h"

namespace caisson::http {
namespace {

using Answered = std::pair<int, std::string>;

// Writes a certificate for 127.0.0.1 and localhost that signs itself, and its key.
TlsFiles MakeCertificate(const std::string& name) {
  const std::string base = testing::TempDir() + "/caisson-tls-" + name;
  TlsFiles files{base + ".pem", base + ".key"};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  for (const auto& [id, value] : {std::pair{NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"},
                                  std::pair{NID_basic_constraints, "critical,CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* file = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

struct TlsServer : TestServer {
  explicit TlsServer(const TlsFiles& files, Limits limits = {})
      : TestServer(limits, {{"127.0.0.1:0", files}}) {}
  Client ClientWith(const std::string& ca_file) const {
    return std::move(*Client::Make(
        {.base_url = fmt::format("https://127.0.0.1:{}", port()), .ca_file = ca_file}));
  }
};

// A TLS connection of OpenSSL's own client.
class TlsPeer {
 public:
  TlsPeer(std::uint16_t port, std::string_view alpn, int most_version = TLS1_3_VERSION)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method())) {
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that the server has closed
    SSL_CTX_set_max_proto_version(context_, most_version);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_security_level(context_, 0);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, raw_.fd());
    if (!alpn.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
    }
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsPeer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  bool connected() const { return connected_; }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  void Send(std::string_view bytes) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  }
  void EndSending() { SSL_shutdown(ssl_); }
  std::string Read(std::size_t least) {
    std::string got;
    char block[16384];
    while (got.size() < least) {
      const int size = SSL_read(ssl_, block, sizeof(block));
      if (size <= 0) break;
      got.append(block, static_cast<std::size_t>(size));
    }
    return got;
  }
  // True when the server ended the stream by the rules.
  bool EndedCleanly() {
    char byte;
    return SSL_read(ssl_, &byte, 1) <= 0 && SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN;
  }
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_ = false;
};

TEST(Tls, serves_a_client_that_verifies) {
  const TlsFiles files = MakeCertificate("one");
  TlsServer test(files);
  Client client = test.ClientWith(files.certificate);
  for (int i = 0; i < 10; ++i) {
    const auto answer = client.Send({.path = i % 2 ? "/small" : "/pooled"});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
  }
  EXPECT_EQ(test.server->counts().connections, 1u);
  std::size_t got = 0;
  const auto large = client.Send(
      {.path = "/stream?bytes=20000000", .download = [&](std::string_view piece) -> Result<void> {
         got += piece.size();
         return {};
       }});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(got, 20'000'000u);
  const std::string body(3 << 20, 'b');
  const auto echoed = client.Send({.method = "POST", .path = "/echo", .body = body});
  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_EQ(echoed->body, body);
}

TEST(Tls, is_not_trusted_without_its_authority) {
  TlsServer test(MakeCertificate("two"));
  const auto answer = test.ClientWith("").Send({.path = "/small"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code.name, "http.untrusted");
}

TEST(Tls, offers_http_1_1_only) {
  TlsServer test(MakeCertificate("three"));
  TlsPeer both(test.port(), "\x02h2\x08http/1.1");
  ASSERT_TRUE(both.connected());
  EXPECT_EQ(both.protocol(), "http/1.1");
  TlsPeer none(test.port(), "");
  EXPECT_TRUE(none.connected());
  TlsPeer two(test.port(), std::string_view("\x02h2"));
  EXPECT_FALSE(two.connected());
  TlsPeer preface(test.port(), "");
  preface.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_TRUE(preface.Read(12).starts_with("HTTP/1.1 505"));
}

TEST(Tls, refuses_old_versions) {
  TlsServer test(MakeCertificate("four"));
  EXPECT_FALSE(TlsPeer(test.port(), "", TLS1_1_VERSION).connected());
  EXPECT_TRUE(TlsPeer(test.port(), "", TLS1_2_VERSION).connected());
}

TEST(Tls, reloads_its_certificate) {
  const TlsFiles files = MakeCertificate("five");
  TlsServer test(files);
  const std::string old = files.certificate + ".old";
  ASSERT_EQ(std::rename(files.certificate.c_str(), old.c_str()), 0);
  ASSERT_FALSE(test.server->ReloadTls());
  EXPECT_EQ(test.ClientWith(old).Send({.path = "/small"})->status, 200);  // the old one stays
  MakeCertificate("five");
  ASSERT_TRUE(test.server->ReloadTls());
  EXPECT_FALSE(test.ClientWith(old).Send({.path = "/small"}));
  EXPECT_EQ(test.ClientWith(files.certificate).Send({.path = "/small"})->status, 200);
}

TEST(Tls, refuses_files_that_do_not_belong_together) {
  const TlsFiles one = MakeCertificate("six"), other = MakeCertificate("seven");
  const auto server = Server::Start(
      {.listeners = {{"127.0.0.1:0", TlsFiles{one.certificate, other.key}}}}, Router());
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code.name, "http.tls");
  EXPECT_NE(server.error().message.find(other.key), std::string::npos);
}

TEST(Tls, answers_and_streams_end_cleanly) {
  TlsServer test(MakeCertificate("eight"));
  TlsPeer once(test.port(), "");
  once.Send("GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  while (!once.Read(1).empty()) {
  }
  EXPECT_TRUE(once.EndedCleanly());
  TlsPeer cut(test.port(), "");
  cut.Send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n");
  while (!cut.Read(1).empty()) {
  }
  EXPECT_FALSE(cut.EndedCleanly());
}

TEST(Tls, tunnels_keep_half_closes) {
  TlsServer test(MakeCertificate("nine"));
  TlsPeer peer(test.port(), "");
  peer.Send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp-tunnel\r\n\r\n");
  EXPECT_TRUE(peer.Read(12).starts_with("HTTP/1.1 101"));
  peer.Send("ping");
  EXPECT_EQ(peer.Read(4), "ping");
  peer.EndSending();
  EXPECT_EQ(peer.Read(3), "bye");
  EXPECT_TRUE(peer.EndedCleanly());
}

TEST(Tls, tells_the_handler_when_the_client_goes) {
  TlsServer test(MakeCertificate("ten"));
  {
    TlsPeer peer(test.port(), "");
    peer.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(Eventually([&] { return test.seen.begun == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return test.seen.gone == 1; }));
}

TEST(Tls, slow_and_broken_handshakes_are_ended) {
  Limits limits;
  limits.header_timeout = milliseconds(200);
  TlsServer test(MakeCertificate("eleven"), limits);
  RawClient silent(test.port());
  RawClient plain(test.port());
  plain.Send("GET /small HTTP/1.1\r\nHost: x\r\n\r\n");
  plain.All();
  EXPECT_TRUE(plain.ended || plain.reset);
  EXPECT_EQ(plain.received.find("HTTP/1.1 200"), std::string::npos);
  silent.All();
  EXPECT_TRUE(silent.ended || silent.reset);
  EXPECT_TRUE(Eventually([&] { return test.server->counts().connections == 0; }));
}

TEST(Outbound, requests_of_nodes_trust_no_stranger_and_no_other_name) {
  const TlsFiles files = MakeCertificate("outbound");
  const TlsServer server(files);
  const auto send = [&](const std::string& host, const std::string& ca_file, bool verify) {
    const std::string target = fmt::format("{}:{}", host, server.port());
    const auto outbound = MakeOutbound({.loopback = {{target}}, .ca_file = ca_file});
    const auto sent =
        outbound->Send({.url = "https://" + target + "/small", .verify_tls = verify}, nullptr, {});
    return sent ? sent->body : std::string(sent.error().code.name);
  };
  EXPECT_EQ(send("127.0.0.1", files.certificate, true), "small\n");
  EXPECT_EQ(send("127.0.0.1", "", true), "outbound.untrusted");
  EXPECT_EQ(send("127.0.0.1", "", false), "small\n");
  EXPECT_EQ(send("127.0.0.2", files.certificate, true), "outbound.unreachable");
}

}  // namespace
}  // namespace caisson::http
