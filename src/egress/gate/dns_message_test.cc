// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/dns_message.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "egress/gate_protocol.h"

namespace caisson::egress::gate {
namespace {

std::string Short(unsigned number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
}
std::string Long(std::uint32_t number) { return Short(number >> 16) + Short(number & 0xffff); }
std::string Header(unsigned id, unsigned flags, unsigned questions, unsigned answers,
                   unsigned authorities = 0, unsigned additionals = 0) {
  return Short(id) + Short(flags) + Short(questions) + Short(answers) + Short(authorities) +
         Short(additionals);
}
std::string Record(const std::string& owner, unsigned type, std::uint32_t ttl,
                   const std::string& data) {
  return owner + Short(type) + Short(1) + Long(ttl) + Short(static_cast<unsigned>(data.size())) +
         data;
}
// "\7Example\3com\0": letters as they are.
std::string Wire(std::string_view name) {
  std::string wire;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    wire += static_cast<char>(dot);
    wire += name.substr(0, dot);
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return wire + '\0';
}
std::string Question(std::string_view name, unsigned type = kTypeA) {
  return Wire(name) + Short(type) + Short(1);
}
const std::string kPointer = "\xc0\x0c";  // to the name of the question
const std::string kEdns = std::string(1, '\0') + Short(41) + Short(4096) + Long(0x8000) + Short(0);

TEST(DnsQuery, reads_a_plain_question) {
  const auto decoded = DecodeQuery(Header(0x1234, 0x0120, 1, 0) + Question("WWW.Example.com", 28));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->rcode, Rcode::kNoError);
  const Query& query = decoded->query;
  EXPECT_EQ(query.id, 0x1234);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_EQ(query.name, "www.example.com");
  EXPECT_TRUE(query.is_plain);
  EXPECT_EQ(query.type, 28);
  EXPECT_EQ(query.record_class, 1);
  EXPECT_FALSE(query.udp_size);
  EXPECT_EQ(query.question, Question("WWW.Example.com", 28));
  EXPECT_EQ(RoomFor(query), 512u);
}

TEST(DnsQuery, reads_edns_and_bounds_its_size) {
  auto decoded = DecodeQuery(Header(1, 0x100, 1, 0, 0, 1) + Question("a.b") + kEdns);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->rcode, Rcode::kNoError);
  EXPECT_EQ(decoded->query.udp_size, 1232u);
  std::string other = kEdns;
  other[6] = 1;  // version
  decoded = DecodeQuery(Header(1, 0x100, 1, 0, 0, 1) + Question("a.b") + other);
  EXPECT_EQ(decoded->rcode, Rcode::kBadVersion);
}

TEST(DnsQuery, answers_nothing_to_what_is_no_question) {
  EXPECT_FALSE(DecodeQuery(""));
  EXPECT_FALSE(DecodeQuery(std::string(11, '\0')));
  EXPECT_FALSE(DecodeQuery(Header(1, 0x8180, 1, 0) + Question("a.b"))) << "an answer";
}

TEST(DnsQuery, refuses_every_other_form) {
  const std::string good = Question("example.com");
  const auto rcode = [](const std::string& message) {
    const auto decoded = DecodeQuery(message);
    return decoded ? decoded->rcode : Rcode::kNoError;
  };
  EXPECT_EQ(rcode(Header(1, 0x2100, 1, 0) + good), Rcode::kNotImplemented) << "a notify";
  EXPECT_EQ(rcode(Header(1, 0x2900, 1, 0) + good), Rcode::kNotImplemented) << "an update";
  EXPECT_EQ(rcode(Header(1, 0x0300, 1, 0) + good), Rcode::kFormat) << "truncated";
  EXPECT_EQ(rcode(Header(1, 0x0100, 0, 0)), Rcode::kFormat);
  EXPECT_EQ(rcode(Header(1, 0x0100, 2, 0) + good + good), Rcode::kFormat);
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 1) + good + Record(kPointer, 1, 1, "abcd")), Rcode::kFormat);
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0, 1) + good), Rcode::kFormat);
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0, 0, 2) + good + kEdns + kEdns), Rcode::kFormat);
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0, 0, 1) + good + Record(std::string(1, '\0'), 250, 0, "")),
            Rcode::kFormat)
      << "a signature";
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0) + good + "x"), Rcode::kFormat) << "bytes behind it";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0) + good.substr(0, size)), Rcode::kFormat) << size;
  }
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0) + kPointer + Short(1) + Short(1)), Rcode::kFormat)
      << "a pointer in a question";
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0) + "\x40" + std::string(64, 'a') + good), Rcode::kFormat);
  std::string longest;
  for (int i = 0; i < 128; ++i) longest += "a.";
  EXPECT_EQ(rcode(Header(1, 0x0100, 1, 0) + Question(longest)), Rcode::kFormat) << "257 bytes";
}

TEST(DnsQuery, tells_a_name_that_is_not_plain) {
  const auto name = [](const std::string& wire) {
    const auto decoded = DecodeQuery(Header(1, 0x100, 1, 0) + wire + Short(1) + Short(1));
    EXPECT_EQ(decoded->rcode, Rcode::kNoError);
    EXPECT_FALSE(decoded->query.is_plain) << decoded->query.name;
    return decoded->query.name;
  };
  EXPECT_EQ(name(std::string("\3a.b\3com\0", 9)), "a?b.com") << "a dot inside of a label";
  EXPECT_EQ(name(std::string("\3a\0b\3com\0", 9)), "a?b.com");
  EXPECT_EQ(name(std::string("\3\xc3\xbcx\3com\0", 9)), "??x.com");
  EXPECT_EQ(name(std::string("\1*\3com\0", 7)), "*.com");
  EXPECT_EQ(name(std::string(1, '\0')), "") << "the root";
}

Query QueryFor(std::string_view name, bool edns = false) {
  return DecodeQuery(Header(7, 0x100, 1, 0, 0, edns ? 1 : 0) + Question(name) + (edns ? kEdns : ""))
      ->query;
}

TEST(DnsAnswer, is_given_under_the_name_as_it_was_asked) {
  const std::string bytes =
      EncodeAnswer(QueryFor("WwW.example.com"), Rcode::kNoError, {0xcb00710a}, 59, 512);
  EXPECT_EQ(bytes, Header(7, 0x8180, 1, 1) + Question("WwW.example.com") +
                       Record(kPointer, 1, 59, Long(0xcb00710a)));
  const auto answer = DecodeAnswer(bytes, 7, Wire("WwW.example.com"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, std::vector<std::uint32_t>{0xcb00710a});
}

TEST(DnsAnswer, keeps_to_its_room) {
  const std::vector<std::uint32_t> many(kMaxPinned, 0xcb00710a);
  for (const bool edns : {false, true}) {
    std::string name = "a";
    while (name.size() < 240) name += ".abcdefghi";
    const Query query = QueryFor(name, edns);
    const std::string bytes = EncodeAnswer(query, Rcode::kNoError, many, 5, RoomFor(query));
    EXPECT_LE(bytes.size(), RoomFor(query));
    EXPECT_GT(bytes.size(), edns ? 700u : 480u);
  }
  const std::string version = EncodeAnswer(QueryFor("a.b", true), Rcode::kBadVersion, {}, 0, 512);
  EXPECT_EQ(version[3] & 0x0f, 0);
  EXPECT_EQ(version[version.size() - 6], 1) << "the upper part of the code";
}

std::optional<Answer> Decoded(const std::string& records, unsigned answers,
                              const std::string& name = "good.test", unsigned flags = 0x8180) {
  return DecodeAnswer(Header(9, flags, 1, answers) + Question(name) + records, 9, Wire(name));
}

TEST(ResolversAnswer, follows_the_chain_of_names_and_no_other) {
  const auto answer = Decoded(Record(Wire("evil.test"), 1, 60, Long(1)) +
                                  Record(kPointer, 5, 30, Wire("a.cdn.test")) +
                                  Record(Wire("b.cdn.test"), 1, 20, Long(0xcb00710a)) +
                                  Record(Wire("A.cdn.test"), 5, 40, Wire("b.CDN.test")) +
                                  Record(Wire("b.cdn.test"), 1, 50, Long(0xcb00710a)) +
                                  Record(Wire("b.cdn.test"), 46, 1, "a signature") +
                                  Record(Wire("b.cdn.test"), 1, 25, Long(0xcb007114)),
                              7);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, (std::vector<std::uint32_t>{0xcb00710a, 0xcb007114}));
  EXPECT_EQ(answer->ttl_seconds, 20u);
  EXPECT_EQ(answer->last_name, Wire("b.cdn.test"));
}

TEST(ResolversAnswer, says_where_a_chain_ends_that_has_no_address) {
  const auto answer = Decoded(Record(kPointer, 5, 30, Wire("a.cdn.test")), 1);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->addresses.empty());
  EXPECT_EQ(answer->last_name, Wire("a.cdn.test"));
  EXPECT_EQ(Decoded("", 0)->last_name, Wire("good.test"));
  EXPECT_EQ(Decoded("", 0, "good.test", 0x8183)->rcode, Rcode::kNoName);
  EXPECT_TRUE(Decoded("anything", 3, "good.test", 0x8380)->truncated);
}

TEST(ResolversAnswer, is_none_when_it_is_to_another_question) {
  const std::string body = Question("good.test") + Record(kPointer, 1, 60, Long(0xcb00710a));
  const std::string good = Header(9, 0x8180, 1, 1) + body;
  EXPECT_TRUE(DecodeAnswer(good, 9, Wire("good.test")));
  EXPECT_FALSE(DecodeAnswer(good, 8, Wire("good.test")));
  EXPECT_FALSE(DecodeAnswer(good, 9, Wire("Good.test"))) << "letters in another case";
  EXPECT_FALSE(DecodeAnswer(good, 9, Wire("good.tes")));
  EXPECT_FALSE(DecodeAnswer(good, 9, Wire("good.test.test")));
  EXPECT_FALSE(DecodeAnswer(Header(9, 0x0180, 1, 1) + body, 9, Wire("good.test"))) << "a question";
  EXPECT_FALSE(DecodeAnswer(Header(9, 0x8180, 2, 1) + body, 9, Wire("good.test")));
  EXPECT_FALSE(
      DecodeAnswer(Header(9, 0x8180, 1, 0) + Question("good.test", 28), 9, Wire("good.test")));
}

TEST(ResolversAnswer, is_none_when_it_is_malformed_anywhere) {
  const std::string record = Record(kPointer, 1, 60, Long(0xcb00710a));
  EXPECT_TRUE(Decoded(record, 1));
  EXPECT_FALSE(Decoded(record, 2));
  EXPECT_FALSE(Decoded(record + "x", 1));
  EXPECT_FALSE(Decoded(Record(kPointer, 1, 60, "abc"), 1));
  EXPECT_FALSE(Decoded(Record(kPointer, 1, 60, "abcde"), 1));
  EXPECT_FALSE(Decoded(Record(kPointer, 5, 60, Wire("a.b") + "x"), 1));
  EXPECT_FALSE(Decoded(Record(kPointer, 5, 60, "\xc0\xff"), 1)) << "a pointer beyond the end";
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(Decoded(record.substr(0, size), 1)) << size;
  }
  // Pointers to themselves, to what follows, and in a ring.
  const std::string header = Header(9, 0x8180, 1, 1) + Question("good.test");
  const auto at = static_cast<unsigned>(header.size());
  EXPECT_FALSE(Decoded(Record(Short(0xc000 | at), 1, 60, "abcd"), 1));
  EXPECT_FALSE(Decoded(Record(Short(0xc000 | (at + 2)), 1, 60, "abcd"), 1));
  EXPECT_FALSE(Decoded(Record("\1a" + Short(0xc000 | at), 1, 60, "abcd"), 1));
  EXPECT_FALSE(Decoded(Record(Short(0xc000), 1, 60, "abcd"), 1)) << "into the header";
  EXPECT_FALSE(Decoded(Record("\x80", 1, 60, "abcd"), 1));
  // A chain without an end.
  EXPECT_FALSE(Decoded(
      Record(kPointer, 5, 9, Wire("a.test")) + Record(Wire("a.test"), 5, 9, Wire("good.test")), 2));
  EXPECT_FALSE(DecodeAnswer(Header(9, 0x8180, 1, 600), 9, Wire("good.test")));
}

TEST(ResolversAnswer, takes_so_many_addresses_and_a_sane_lifetime) {
  std::string records;
  for (std::uint32_t i = 0; i < 100; ++i) records += Record(kPointer, 1, 60, Long(0xcb007100 + i));
  EXPECT_EQ(Decoded(records, 100)->addresses.size(), kMaxPinned);
  EXPECT_EQ(Decoded(Record(kPointer, 1, 0x80000000, Long(0xcb00710a)), 1)->ttl_seconds, 0u);
}

TEST(WireName, is_lower_case_and_bounded) {
  EXPECT_EQ(WireName("Good.TEST"), Wire("good.test"));
  for (const std::string& name : {std::string(), std::string("."), std::string("a..b"),
                                  std::string("a."), std::string(64, 'a')}) {
    EXPECT_EQ(WireName(name), "") << name;
  }
}

TEST(ResolversQuestion, is_read_as_it_was_meant) {
  for (const bool edns : {false, true}) {
    const auto decoded = DecodeQuery(EncodeQuestion(77, Wire("gOOd.test"), edns));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->rcode, Rcode::kNoError);
    EXPECT_EQ(decoded->query.id, 77);
    EXPECT_EQ(decoded->query.name, "good.test");
    EXPECT_TRUE(decoded->query.recursion_desired);
    EXPECT_EQ(decoded->query.udp_size.has_value(), edns);
  }
}

}  // namespace
}  // namespace caisson::egress::gate
