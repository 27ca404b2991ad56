// SPDX-License-Identifier: Apache-2.0
// Handshakes of OpenSSL as it makes them, and clients that say two names.
#include "egress/gate/tls_retry.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "egress/gate/test_hello.h"

namespace caisson::egress::gate {
namespace {

const std::string kSpec = std::string("\x14\x03\x03\x00\x01\x01", 6);
const std::string kWarning = std::string("\x15\x03\x03\x00\x02\x01\x70", 7);

const std::string kRetry = RetryRequest();
const std::string kOrdinary = ServerHelloWith(std::string(32, 's'));

// What passes of what a client and a server send one after the other ("c…", "s…"), the client's
// bytes in pieces of `step`; "|refused" when it is.
struct Seen {
  std::string passed;
  std::string held;
  bool refused = false;
  bool over = false;  // nothing is looked at any more
};
Seen Talk(TlsRetry& retry, const std::vector<std::pair<char, std::string>>& said,
          std::size_t step = std::string::npos) {
  Seen seen;
  const auto look = [&] {
    while (!seen.held.empty() && !seen.refused) {
      const Relay::Verdict verdict = retry.FromClient(seen.held);
      seen.refused = verdict.refused;
      seen.passed += seen.held.substr(0, verdict.size);
      seen.held.erase(0, verdict.size);
      seen.over |= verdict.ahead == Relay::kAll;
      if (verdict.size == 0) break;
    }
  };
  for (const auto& [who, bytes] : said) {
    for (std::size_t at = 0; at < bytes.size(); at += std::min(step, bytes.size() - at)) {
      const std::string piece = bytes.substr(at, step);
      if (who == 's') {
        EXPECT_EQ(retry.FromServer(piece).size, piece.size());
      } else {
        seen.held += piece;
      }
      look();
    }
  }
  return seen;
}
Seen Talk(const std::vector<std::pair<char, std::string>>& said,
          std::size_t step = std::string::npos) {
  TlsRetry retry("good.test", HelloFor("good.test").size());
  return Talk(retry, said, step);
}

TEST(TlsRetry, lets_all_pass_once_no_second_hello_is_asked_for) {
  for (const std::size_t step : {1u, 7u, 1000u}) {
    const std::string more = kSpec + Record("encrypted, of TLS 1.2") + DataRecord("x") + "anything";
    const Seen seen =
        Talk({{'c', HelloFor("good.test")}, {'s', kOrdinary}, {'c', more}, {'c', "at all"}}, step);
    EXPECT_FALSE(seen.refused) << step;
    EXPECT_TRUE(seen.over) << step;
    EXPECT_EQ(seen.passed, HelloFor("good.test") + more + "at all") << step;
  }
}

TEST(TlsRetry, lets_a_second_hello_of_the_same_name_pass) {
  for (const std::size_t step : {1u, 7u, 1000u}) {
    for (const std::string& before : {std::string(), kSpec, DataRecord("early") + kSpec}) {
      const std::string more = before + HelloFor("GOOD.test") + DataRecord("encrypted");
      const Seen seen =
          Talk({{'c', HelloFor("good.test")}, {'s', kRetry}, {'c', more}, {'c', "rest"}}, step);
      EXPECT_FALSE(seen.refused) << step;
      EXPECT_TRUE(seen.over) << step;
      EXPECT_EQ(seen.passed, HelloFor("good.test") + more + "rest") << step;
    }
  }
}

TEST(TlsRetry, refuses_a_second_hello_of_another_name) {
  for (const std::size_t step : {1u, 7u, 1000u}) {
    TlsRetry retry("good.test", HelloFor("good.test").size());
    const Seen seen = Talk(
        retry, {{'c', HelloFor("good.test")}, {'s', kRetry}, {'c', kSpec + HelloFor("evil.test")}},
        step);
    EXPECT_TRUE(seen.refused) << step;
    EXPECT_TRUE((HelloFor("good.test") + kSpec).starts_with(seen.passed)) << step;
    EXPECT_EQ(retry.other_name(), "evil.test") << step;
  }
  EXPECT_TRUE(Talk({{'c', HelloFor("good.test")}, {'s', kRetry}, {'c', Hello({})}}).refused)
      << "without a name";
  EXPECT_TRUE(Talk({{'c', HelloFor("good.test")}, {'s', kRetry}, {'c', Record("\x10")}}).refused)
      << "no hello";
  const std::string message = HelloMessage({{0, ServerName("evil.test")}});
  std::string records;
  for (const char c : message) records += Record(std::string(1, c));
  EXPECT_TRUE(Talk({{'c', HelloFor("good.test")}, {'s', kRetry}, {'c', records}}).refused);
}

TEST(TlsRetry, holds_a_hello_that_comes_before_it_is_asked_for) {
  const std::string early = HelloFor("good.test") + DataRecord("early data") + kSpec;
  const Seen seen = Talk({{'c', early + HelloFor("evil.test")}});
  EXPECT_EQ(seen.passed, early);
  EXPECT_EQ(seen.held, HelloFor("evil.test"));
  EXPECT_FALSE(seen.refused);
  EXPECT_TRUE(Talk({{'c', early + HelloFor("evil.test")}, {'s', kRetry}}).refused);
  EXPECT_EQ(Talk({{'c', early + HelloFor("good.test")}, {'s', kRetry}}).held, "");
}

TEST(TlsRetry, refuses_what_is_no_record_of_a_client_that_waits) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\0", 1),
        std::string("\x18\x03\x03\0\1x", 6), std::string("\x17\x03\x03\xff\xff", 5)}) {
    const Seen seen = Talk({{'c', HelloFor("good.test") + bytes}});
    EXPECT_TRUE(seen.refused) << bytes;
    EXPECT_TRUE(HelloFor("good.test").starts_with(seen.passed));
  }
}

TEST(TlsRetry, understands_a_server_in_whatever_pieces) {
  std::string records;
  for (const char c : kRetry.substr(5)) records += Record(std::string(1, c));
  for (const std::string& said : {kRetry, kWarning + kRetry, records, kWarning + records}) {
    for (const std::size_t step : {1u, 7u, 1000u}) {
      EXPECT_TRUE(
          Talk({{'c', HelloFor("good.test")}, {'s', said}, {'c', HelloFor("evil.test")}}, step)
              .refused)
          << step;
    }
  }
  for (const std::string& said : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), kSpec,
                                  Record(std::string("\0\0\0\0", 4)), Record("")}) {
    EXPECT_TRUE(Talk({{'c', HelloFor("good.test")}, {'s', said}, {'c', "x"}}).over);
  }
}

// ---- as OpenSSL does it

struct Free {
  void operator()(SSL_CTX* each) const { SSL_CTX_free(each); }
  void operator()(SSL* each) const { SSL_free(each); }
  void operator()(EVP_PKEY* each) const { EVP_PKEY_free(each); }
  void operator()(X509* each) const { X509_free(each); }
};

struct Side {
  std::unique_ptr<SSL_CTX, Free> context;
  std::unique_ptr<SSL, Free> ssl;
  std::string Said() const {
    BIO* out = SSL_get_wbio(ssl.get());
    std::string bytes(BIO_ctrl_pending(out), '\0');
    if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  void Hear(const std::string& bytes) const {
    if (!bytes.empty())
      BIO_write(SSL_get_rbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
};
Side MakeSide(const SSL_METHOD* method, int version, const char* groups) {
  Side side;
  side.context.reset(SSL_CTX_new(method));
  SSL_CTX_set_min_proto_version(side.context.get(), version);
  SSL_CTX_set_max_proto_version(side.context.get(), version);
  EXPECT_EQ(SSL_CTX_set1_groups_list(side.context.get(), groups), 1);
  return side;
}
void Open(Side& side) {
  side.ssl.reset(SSL_new(side.context.get()));
  SSL_set_bio(side.ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
}

// Shakes hands by way of a TlsRetry, as the gate stands between them. How many hellos there were.
int ShakeHands(int version, const char* groups_of_server) {
  Side client = MakeSide(TLS_client_method(), version, "X25519:P-384");
  Side server = MakeSide(TLS_server_method(), version, groups_of_server);
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_EC_gen("P-384"));
  const std::unique_ptr<X509, Free> certificate(X509_new());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  EXPECT_EQ(SSL_CTX_use_certificate(server.context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(server.context.get(), key.get()), 1);
  Open(client);
  Open(server);
  SSL_set_tlsext_host_name(client.ssl.get(), "good.test");

  std::optional<TlsRetry> retry;
  int hellos = 0;
  for (int i = 0; i < 10; ++i) {
    SSL_connect(client.ssl.get());
    const std::string said = client.Said();
    hellos += said.find(std::string("\0\x09good.test", 11)) == std::string::npos ? 0 : 1;
    if (!retry) {
      TlsHello first;
      EXPECT_EQ(first.Feed(said), TlsHello::State::kWhole);
      retry.emplace(first.name(), first.size());
    }
    if (!said.empty()) {
      const Relay::Verdict verdict = retry->FromClient(said);
      EXPECT_FALSE(verdict.refused);
      EXPECT_EQ(verdict.size, said.size());
    }
    server.Hear(said);
    SSL_accept(server.ssl.get());
    const std::string answer = server.Said();
    if (!answer.empty()) retry->FromServer(answer);
    client.Hear(answer);
  }
  EXPECT_TRUE(SSL_is_init_finished(client.ssl.get()));
  EXPECT_TRUE(SSL_is_init_finished(server.ssl.get()));
  return hellos;
}

TEST(TlsRetry, does_not_disturb_openssl) {
  EXPECT_EQ(ShakeHands(TLS1_3_VERSION, "X25519"), 1);
  EXPECT_EQ(ShakeHands(TLS1_3_VERSION, "P-384"), 2);
  EXPECT_EQ(ShakeHands(TLS1_2_VERSION, "P-384"), 1);
}

}  // namespace
}  // namespace caisson::egress::gate
