// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/tls_hello.h"

#include <gtest/gtest.h>

#include "egress/gate/test_hello.h"

namespace caisson::egress::gate {
namespace {

using State = TlsHello::State;

// "good.test", "-" without a name, or why it is bad.
std::string Read(std::string_view bytes, std::size_t step = std::string_view::npos) {
  TlsHello hello;
  State state = State::kMore;
  while (!bytes.empty() && state == State::kMore) {
    state = hello.Feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  if (state == State::kMore) return "more";
  if (state == State::kBad) return hello.why_bad();
  return hello.name().empty() ? "-" : hello.name();
}

TEST(TlsHello, of_openssl_is_read_whole_and_in_pieces) {
  const std::string hello = HelloOfOpenSsl("good.test");
  for (const std::size_t step : {1, 2, 7, 100, 10000}) {
    EXPECT_EQ(Read(hello, step), "good.test") << step;
  }
  EXPECT_EQ(Read(HelloOfOpenSsl("")), "-");
  for (std::size_t size = 0; size < hello.size(); ++size) {
    EXPECT_EQ(Read(hello.substr(0, size)), "more") << size;
  }
}

TEST(TlsHello, may_come_in_any_records) {
  const std::string message = HelloMessage({{0x0a0a, ""}, {0, ServerName("good.test")}, {16, "x"}});
  for (const std::size_t size : {1, 2, 3, 4, 5, 50, 90}) {
    std::string records;
    for (std::size_t at = 0; at < message.size(); at += size) {
      records += Record(message.substr(at, size));
    }
    EXPECT_EQ(Read(records), "good.test") << size;
    EXPECT_EQ(Read(records, 1), "good.test") << size;
    EXPECT_EQ(Read(records + "\x17\x03\x03 early data"), "good.test") << size;
  }
}

TEST(TlsHello, bears_values_that_nobody_knows) {
  EXPECT_EQ(Read(Hello({{0xeaea, std::string(1, '\0')},
                        {0, ServerName("good.test")},
                        {0x1a1a, ""},
                        {0xff01, std::string(1, '\0')}})),
            "good.test");
}

TEST(TlsHello, says_the_outer_name_of_an_encrypted_one) {
  TlsHello hello;
  EXPECT_EQ(hello.Feed(Hello({{0xfe0d, "inner"}, {0, ServerName("outer.test")}})), State::kWhole);
  EXPECT_EQ(hello.name(), "outer.test");
  EXPECT_TRUE(hello.has_encrypted_hello());
}

TEST(TlsHello, gives_names_in_one_form) {
  EXPECT_EQ(Read(HelloFor("GOOD.Test")), "good.test");
  EXPECT_EQ(Read(HelloFor("good.test.")), "good.test");
  EXPECT_EQ(Read(HelloFor("xn--bcher-kva.test")), "xn--bcher-kva.test");
}

TEST(TlsHello, without_a_name_has_none) {
  EXPECT_EQ(Read(Hello({})), "-");
  EXPECT_EQ(Read(Hello({{16, "x"}})), "-");
  const std::string old = "\x03\x01" + std::string(32, 'r') + std::string(1, '\0') +
                          Vector(2, "\x13\x01") + Vector(1, std::string(1, '\0'));
  EXPECT_EQ(Read(Record("\x01" + Vector(3, old))), "-") << "no extensions at all";
}

TEST(TlsHello, is_bad_when_its_name_could_be_read_in_two_ways) {
  const std::string one = std::string(1, '\0') + Vector(2, "good.test");
  const std::string two = std::string(1, '\0') + Vector(2, "evil.test");
  const char* bad = "a server_name that holds not exactly one host name";
  EXPECT_EQ(Read(Hello({{0, Vector(2, one + two)}})), bad);
  EXPECT_EQ(Read(Hello({{0, Vector(2, one) + "x"}})), bad);
  EXPECT_EQ(Read(Hello({{0, Vector(2, one + "x")}})), bad);
  EXPECT_EQ(Read(Hello({{0, Vector(2, "\x01" + Vector(2, "good.test"))}})), bad);
  EXPECT_EQ(Read(Hello({{0, ""}})), bad);
  EXPECT_EQ(Read(Hello({{0, Vector(2, "")}})), bad);
  EXPECT_EQ(Read(Hello({{0, ServerName("good.test")}, {0, ServerName("evil.test")}})),
            "a TLS extension that comes twice");
}

TEST(TlsHello, is_bad_when_its_name_is_none) {
  const std::string nul("good.test\0.evil.test", 20);
  for (const std::string& name :
       {std::string("203.0.113.10"), std::string(""), std::string("."), std::string("a b.test"),
        std::string("good.test.."), std::string("*.test"), std::string("[::1]"), nul,
        std::string("b\xc3\xbc"
                    "cher.test"),
        std::string(300, 'a')}) {
    EXPECT_EQ(Read(HelloFor(name)), "a server_name that is no host name") << name;
  }
}

TEST(TlsHello, is_bad_when_it_is_none) {
  EXPECT_EQ(Read("GET / HTTP/1.1\r\n"), "no TLS record of a handshake");
  EXPECT_EQ(Read("\x16\x02\x01\x01\x01"), "no TLS record of a handshake");
  EXPECT_EQ(Read("\x15\x03\x01\x01\x01"), "no TLS record of a handshake");
  EXPECT_EQ(Read(std::string("\x16\x03\x01\0\0", 5)), "a TLS record of no valid length");
  EXPECT_EQ(Read("\x16\x03\x01\x40\x01"), "a TLS record of no valid length");
  EXPECT_EQ(Read(Record("\x02")), "a handshake that begins with no client hello");
  EXPECT_EQ(Read(Record(std::string("\x01\x00\x40\x01", 4))), "a TLS hello of more than 16 KiB");
  const std::string message = HelloMessage({{0, ServerName("good.test")}});
  EXPECT_EQ(Read(Record(message + "x")), "a record that holds more than the TLS hello");
  // A record of another kind between the fragments.
  EXPECT_EQ(Read(Record(message.substr(0, 20)) + "\x17\x03\x01" + Vector(2, message.substr(20))),
            "no TLS record of a handshake");
  std::string cut = message;
  cut.resize(cut.size() - 1);
  cut[3] = static_cast<char>(cut.size() - 4);
  EXPECT_EQ(Read(Record(cut)), "a malformed TLS hello");
}

TEST(TlsHello, ends_after_so_many_bytes) {
  std::string records;
  const std::string message =
      HelloMessage({{21, std::string(16000, '\0')}, {0, ServerName("good.test")}});
  for (const char c : message) records += Record(std::string(1, c));
  EXPECT_EQ(Read(records), "a TLS hello in too many records");
  EXPECT_EQ(Read(Record(message)), "good.test");
}

}  // namespace
}  // namespace caisson::egress::gate
