// SPDX-License-Identifier: Apache-2.0
// The gate's resolver with real sockets: a helper, name servers that lie, stall or break, and
// machines that ask in every way.
#include "egress/gate/resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "egress/gate/test_gate.h"

namespace caisson::egress::gate {
namespace {

constexpr std::uint32_t kGood = 0xcb00710a;   // 203.0.113.10
constexpr std::uint32_t kOther = 0xcb007114;  // 203.0.113.20

std::string QuestionFor(const std::string& name, unsigned type = kTypeA, std::uint16_t id = 7) {
  std::string bytes = EncodeQuestion(id, WireName(name), false);
  bytes[bytes.size() - 3] = static_cast<char>(type);
  return bytes;
}
// "NOERROR 203.0.113.10", "NXDOMAIN"; "-" when nothing came.
std::string Said(const std::string& message, const std::string& name, std::uint16_t id = 7) {
  if (message.empty()) return "-";
  static constexpr const char* kCodes[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                           "NXDOMAIN", "NOTIMP",  "REFUSED"};
  const auto answer = DecodeAnswer(message, id, WireName(name));
  const auto code = static_cast<std::size_t>(message[3] & 0xf);
  std::string said = code < std::size(kCodes) ? kCodes[code] : "?";
  if (!answer) return said;
  for (const std::uint32_t each : answer->addresses) said += " " + FormatAddress(each);
  return said;
}

// An answer to `question` with these records behind it.
std::string Reply(const std::string& question, Rcode rcode,
                  const std::vector<std::uint32_t>& addresses, std::uint32_t ttl = 60) {
  const auto decoded = DecodeQuery(question);
  return EncodeAnswer(decoded->query, rcode, addresses, ttl, kMaxTcpMessage);
}
FakeServer::Answer Always(std::vector<std::uint32_t> addresses, std::uint32_t ttl = 60) {
  return [addresses, ttl](const std::string& question, bool) {
    return std::vector{Reply(question, Rcode::kNoError, addresses, ttl)};
  };
}

class ResolverTest : public ::testing::Test {
 protected:
  void Start(FakeServer::Answer answer, TestGate::Options options = {}) {
    server_.emplace(std::move(answer));
    options.resolvers.insert(options.resolvers.begin(), server_->address());
    gate_.emplace(std::move(options));
    gate_->SetMachine(kMachine, 1, {RuleFor("good.test", {}, 3), RuleFor("*.wild.test", {}, 4)});
  }
  std::string Ask(const std::string& name, unsigned type = kTypeA, std::uint32_t from = kMachine) {
    return Said(gate_->Ask(QuestionFor(name, type), from), name);
  }

  std::optional<FakeServer> server_;
  std::optional<TestGate> gate_;
};

TEST_F(ResolverTest, answers_an_allowed_name_once_it_is_pinned) {
  std::atomic<bool> pinned = false;
  Start(Always({kGood, kOther}), {.pin = [&](const GatePin&) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          pinned = true;
          return std::vector{kGood, kOther};
        }});
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10 203.0.113.20");
  EXPECT_TRUE(pinned);
  const auto pins = gate_->pins();
  ASSERT_EQ(pins.size(), 1u);
  EXPECT_EQ(pins[0].machine, kMachine);
  EXPECT_EQ(pins[0].generation, 1u);
  EXPECT_EQ(pins[0].name, "good.test");
  EXPECT_EQ(pins[0].seconds, 60u);
  EXPECT_EQ(pins[0].addresses, (std::vector<std::uint32_t>{kGood, kOther}));
  EXPECT_TRUE(gate_->denials().empty());
  gate_->AwaitCounters([](const auto& counted) { return counted.answers == 1; });
}

TEST_F(ResolverTest, gives_lifetimes_that_end_before_the_pin_does) {
  Start([](const std::string& question, bool) {
    const auto ttl = static_cast<std::uint32_t>(
        std::stoul(DecodeQuery(question)->query.name.substr(1)));  // "t60.wild.test"
    return std::vector{Reply(question, Rcode::kNoError, {kGood}, ttl)};
  });
  gate_->SetMachine(kMachine, 1, {RuleFor("*.wild.test")});
  const std::pair<std::uint32_t, std::uint32_t> cases[] = {{0, 5}, {60, 60}, {86400, 300}};
  for (const auto& [given, expected] : cases) {
    const std::string name = "t" + std::to_string(given) + ".wild.test";
    const auto answer = DecodeAnswer(gate_->Ask(QuestionFor(name)), 7, WireName(name));
    ASSERT_TRUE(answer);
    EXPECT_EQ(gate_->pins().back().seconds, expected);
    EXPECT_LT(answer->ttl_seconds, expected);
    EXPECT_GE(answer->ttl_seconds + 3, expected);
  }
}

TEST_F(ResolverTest, denies_other_names_without_asking_anybody) {
  Start(Always({kGood}));
  for (const char* name : {"evil.test", "wild.test", "good.test.evil.test", "test", "xgood.test",
                           "secret-data.good.test", "10.113.0.203"}) {
    EXPECT_EQ(Ask(name), "NXDOMAIN") << name;
  }
  EXPECT_EQ(gate_->Denial(1), "name evil.test");
  EXPECT_EQ(gate_->Denial(2), "name wild.test");
  EXPECT_EQ(gate_->denials()[0].machine, kMachine);
  EXPECT_FALSE(gate_->denials()[0].rule);
  for (const unsigned type : {16u, 28u, 65u, 255u}) EXPECT_EQ(Ask("evil.test", type), "NXDOMAIN");
  EXPECT_TRUE(server_->questions().empty());
  EXPECT_TRUE(gate_->pins().empty());
}

TEST_F(ResolverTest, has_no_other_records_than_addresses) {
  Start(Always({kGood}));
  for (const unsigned type : {28u, 64u, 65u}) EXPECT_EQ(Ask("good.test", type), "NOERROR");
  for (const unsigned type : {2u, 5u, 6u, 15u, 16u, 33u, 252u, 255u}) {
    EXPECT_EQ(Ask("good.test", type), "REFUSED") << type;
  }
  EXPECT_EQ(gate_->Denial(1), "question good.test");
  EXPECT_EQ(gate_->denials()[0].rule, 3);
  std::string chaos = QuestionFor("good.test");
  chaos.back() = 3;
  EXPECT_EQ(Said(gate_->Ask(chaos), "x"), "REFUSED");
  EXPECT_TRUE(server_->questions().empty());
}

TEST_F(ResolverTest, counts_questions_for_the_names_of_addresses_but_does_not_tell_them) {
  Start(Always({kGood}));
  EXPECT_EQ(Ask("10.113.0.203.in-addr.arpa", kTypePtr), "NXDOMAIN");
  gate_->AwaitCounters([](const auto& counted) { return counted.denials == 1; });
  EXPECT_TRUE(gate_->denials().empty());
}

TEST_F(ResolverTest, knows_each_machine_by_its_address) {
  Start(Always({kGood}));
  gate_->SetMachine(kOtherMachine, 1, {});
  EXPECT_EQ(Ask("good.test", kTypeA, kOtherMachine), "NXDOMAIN") << "it has no rules";
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(gate_->Ask(QuestionFor("good.test"), 0x7f000109, 200), "") << "a machine of nobody";
  gate_->Forget(kMachine);
  EXPECT_EQ(gate_->Ask(QuestionFor("good.test"), kMachine, 200), "");
}

TEST_F(ResolverTest, removes_closed_addresses) {
  Start([](const std::string& question, bool) {
    const bool some = DecodeQuery(question)->query.name.starts_with("a.");
    return std::vector{
        Reply(question, Rcode::kNoError,
              some ? std::vector<std::uint32_t>{0xa9fea9fe, kGood, 0x0a000001, 0x7f000001}
                   : std::vector<std::uint32_t>{0xa9fea9fe, 0x0a000001})};
  });
  EXPECT_EQ(Ask("a.wild.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(gate_->pins().back().addresses, std::vector<std::uint32_t>{kGood});
  EXPECT_EQ(gate_->Denial(1), "rebinding a.wild.test") << "what was left out is told";
  EXPECT_EQ(Ask("b.wild.test"), "NXDOMAIN");
  EXPECT_EQ(gate_->Denial(2), "rebinding b.wild.test");
  EXPECT_EQ(gate_->denials().size(), 2u) << "one for each answer";
  for (const GateDenial& denial : gate_->denials()) {
    EXPECT_EQ(denial.address, 0xa9fea9fe);
    EXPECT_EQ(denial.rule, 4);
  }
  EXPECT_EQ(gate_->pins().size(), 1u);
}

TEST_F(ResolverTest, answers_with_what_the_helper_has_opened) {
  Start(Always({kGood, kOther}), {.pin = [](const GatePin&) { return std::vector{kOther}; }});
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.20");
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.20") << "also from what it remembers";
  EXPECT_EQ(server_->questions().size(), 1u);
}

TEST_F(ResolverTest, answers_again_from_what_is_pinned_until_the_rules_change) {
  Start(Always({kGood}));
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(Ask("GOOD.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(server_->questions().size(), 1u);
  gate_->SetMachine(kOtherMachine, 1, {RuleFor("good.test")});
  EXPECT_EQ(Ask("good.test", kTypeA, kOtherMachine), "NOERROR 203.0.113.10");
  EXPECT_EQ(server_->questions().size(), 2u) << "what one machine asks another cannot see";
  gate_->SetMachine(kMachine, 2, {RuleFor("good.test"), RuleFor("more.test")});
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(server_->questions().size(), 3u);
  EXPECT_EQ(gate_->pins().back().generation, 2u);
  gate_->SetMachine(kMachine, 3, {RuleFor("more.test")});
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN");
}

TEST_F(ResolverTest, tells_that_a_name_is_not_there) {
  Start([](const std::string& question, bool) {
    return std::vector{Reply(question, Rcode::kNoName, {})};
  });
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN");
  EXPECT_TRUE(gate_->denials().empty()) << "nothing was denied";
}

TEST_F(ResolverTest, asks_with_random_ids_and_letters) {
  Start(Always({kGood}));
  std::set<std::string> ids, names;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Ask("abcdefghijklmnop" + std::to_string(i) + ".wild.test").substr(0, 7), "NOERROR");
  }
  for (const std::string& question : server_->questions()) {
    ids.insert(question.substr(0, 2));
    names.insert(question.substr(13, 16));
  }
  EXPECT_GE(ids.size(), 6u);
  EXPECT_GE(names.size(), 6u);
}

TEST_F(ResolverTest, passes_over_what_is_no_answer_to_its_question) {
  Start([](const std::string& question, bool) {
    std::string id = Reply(question, Rcode::kNoError, {kOther});
    id[0] = static_cast<char>(id[0] + 1);
    std::string letters = Reply(question, Rcode::kNoError, {kOther});
    for (std::size_t i = 13; i < 17; ++i) letters[i] = static_cast<char>(letters[i] ^ 0x20);
    const std::string cut = Reply(question, Rcode::kNoError, {kOther}).substr(0, 40);
    return std::vector<std::string>{
        "", "x", id, letters, cut, question, Reply(question, Rcode::kNoError, {kGood})};
  });
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
}

TEST_F(ResolverTest, leaves_a_server_that_is_silent_or_fails_for_the_next) {
  FakeServer good(Always({kGood}));
  for (const bool silent : {true, false}) {
    TestGate::Options options;
    options.resolvers = {good.address()};
    Start(
        [silent](const std::string& question, bool) -> std::vector<std::string> {
          if (silent) return {};
          return {Reply(question, Rcode::kServerFailure, {})};
        },
        options);
    EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10") << silent;
    gate_.reset();
  }
}

TEST_F(ResolverTest, fails_when_no_server_answers_and_does_not_hang) {
  Start([](const std::string&, bool) { return std::vector<std::string>{"nonsense"}; });
  EXPECT_EQ(Ask("good.test"), "SERVFAIL");
  EXPECT_EQ(gate_->Denial(1), "resolver good.test");
  EXPECT_EQ(server_->questions().size(), std::size(Upstream::kAttempts));
  EXPECT_LT(Upstream::kPatience, std::chrono::seconds(3));

  TestGate nobody({.resolvers = {}});
  nobody.SetMachine(kMachine, 1, {RuleFor("good.test")});
  EXPECT_EQ(Said(nobody.Ask(QuestionFor("good.test")), "good.test"), "SERVFAIL");
  TestGate refused({.resolvers = {{kLoopback, 1}}});
  refused.SetMachine(kMachine, 1, {RuleFor("good.test")});
  EXPECT_EQ(Said(refused.Ask(QuestionFor("good.test")), "good.test"), "SERVFAIL");
}

TEST_F(ResolverTest, fails_at_once_when_every_attempt_was_refused) {
  Start([](const std::string& question, bool) {
    return std::vector{Reply(question, Rcode::kRefused, {})};
  });
  EXPECT_EQ(Ask("good.test"), "SERVFAIL");
}

TEST_F(ResolverTest, asks_by_tcp_when_an_answer_was_cut) {
  Start([](const std::string& question, bool by_tcp) {
    std::string reply = Reply(question, Rcode::kNoError, {by_tcp ? kGood : kOther});
    if (!by_tcp) reply[2] = static_cast<char>(reply[2] | 0x02);
    return std::vector{reply};
  });
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
}

TEST_F(ResolverTest, answers_under_the_name_that_was_asked_whatever_its_aliases) {
  Start([](const std::string& question, bool) {
    const auto query = DecodeQuery(question)->query;
    if (query.name == "b.cdn.example") {
      return std::vector{Reply(question, Rcode::kNoError, {kGood})};
    }
    // An alias alone, as a server that does not follow it says it.
    std::string reply = Reply(question, Rcode::kNoError, {}).substr(0, 12 + query.question.size());
    reply[7] = 1;
    reply[11] = 0;
    const std::string target = WireName("b.cdn.example");
    reply += std::string("\xc0\x0c\0\5\0\1\0\0\0\x3c\0", 11);
    reply += static_cast<char>(target.size());
    return std::vector{reply + target};
  });
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
  EXPECT_EQ(gate_->pins().back().name, "good.test");
  EXPECT_EQ(Ask("b.cdn.example"), "NXDOMAIN") << "the alias itself is not allowed";
}

TEST_F(ResolverTest, answers_nothing_that_could_not_be_pinned) {
  Start(Always({kGood}), {.pin = [](const GatePin& pin) {
          return pin.name == "good.test" ? Resolver::Opened(std::in_place) : std::nullopt;
        }});
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN");
  EXPECT_EQ(Ask("good.test"), "NXDOMAIN") << "nor the next time";
  EXPECT_EQ(Ask("a.wild.test"), "SERVFAIL") << "the helper does not answer";
}

TEST_F(ResolverTest, asks_once_for_what_many_ask_at_the_same_time) {
  std::atomic<bool> go = false;
  Start([&](const std::string& question, bool) {
    while (!go) std::this_thread::yield();
    return std::vector{Reply(question, Rcode::kNoError, {kGood})};
  });
  std::vector<os::UniqueFd> asked;
  for (int i = 0; i < 5; ++i) asked.push_back(gate_->AskLater(QuestionFor("good.test")));
  EXPECT_EQ(Ask("evil.test"), "NXDOMAIN") << "others need not wait";
  go = true;
  for (const auto& fd : asked) {
    EXPECT_EQ(Said(TestGate::Answer(fd), "good.test"), "NOERROR 203.0.113.10");
  }
  EXPECT_EQ(server_->questions().size(), 1u);
}

TEST_F(ResolverTest, lets_no_machine_hold_all_look_ups) {
  // The server is silent.
  Start([](const std::string&, bool) { return std::vector<std::string>(); },
        {.names = {.max_lookups = 4}});
  gate_->SetMachine(kOtherMachine, 1, {RuleFor("*.other.test")});
  std::vector<os::UniqueFd> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(gate_->AskLater(QuestionFor("n" + std::to_string(i) + ".wild.test")));
  }
  while (server_->questions().size() < 4) std::this_thread::yield();
  const auto begun = std::chrono::steady_clock::now();
  const auto first = gate_->AskLater(QuestionFor("a.other.test"), kOtherMachine);
  EXPECT_EQ(Said(TestGate::Answer(asked[0]), "n0.wild.test"), "SERVFAIL") << "it made room";
  EXPECT_LT(std::chrono::steady_clock::now() - begun, Upstream::kPatience);
  EXPECT_EQ(gate_->Denial(1), "limit n0.wild.test");
  EXPECT_EQ(gate_->denials()[0].machine, kMachine);
  const auto second = gate_->AskLater(QuestionFor("b.other.test"), kOtherMachine);
  EXPECT_EQ(Said(TestGate::Answer(asked[1]), "n1.wild.test"), "SERVFAIL");
  // Both have two now: whoever wants more pays for it.
  const auto third = gate_->AskLater(QuestionFor("c.other.test"), kOtherMachine);
  EXPECT_EQ(Said(TestGate::Answer(first), "a.other.test"), "SERVFAIL");
  EXPECT_EQ(gate_->Denial(3), "limit a.other.test");
  EXPECT_EQ(TestGate::Answer(asked[3], 0), "") << "what made no room still waits";
}

TEST_F(ResolverTest, lets_no_machine_hold_all_connections_for_questions) {
  Start(Always({kGood}), {.names = {.max_connections = 4}});
  gate_->SetMachine(kOtherMachine, 1, {RuleFor("good.test")});
  std::vector<os::UniqueFd> held;
  for (int i = 0; i < 4; ++i) held.push_back(gate_->ConnectToNames());
  const os::UniqueFd other = gate_->ConnectToNames(kOtherMachine);
  const std::string question = QuestionFor("good.test");
  const std::string frame = std::string{'\0', static_cast<char>(question.size())} + question;
  EXPECT_EQ(::send(other.get(), frame.data(), frame.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(frame.size()));
  EXPECT_EQ(Said(TestGate::Answer(other).substr(2), "good.test"), "NOERROR 203.0.113.10");
  char byte = 0;
  EXPECT_TRUE(AwaitReadable(held[0].get()));
  EXPECT_LE(::recv(held[0].get(), &byte, 1, 0), 0) << "the one that was idle longest";
  EXPECT_FALSE(AwaitReadable(held[1].get(), 50));
}

TEST_F(ResolverTest, closes_a_connection_that_asks_too_much) {
  Start(Always({kGood}));
  const os::UniqueFd fd = gate_->ConnectToNames();
  const std::string question = QuestionFor("good.test");
  const std::string frame = std::string{'\0', static_cast<char>(question.size())} + question;
  std::string flood;
  for (int i = 0; i < 2000; ++i) flood += frame;
  (void)!::send(fd.get(), flood.data(), flood.size(), MSG_NOSIGNAL);
  std::size_t answered = 0;
  while (AwaitReadable(fd.get())) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    answered += static_cast<std::size_t>(got);
  }
  EXPECT_LT(answered, flood.size());
  EXPECT_EQ(gate_->Denial(1), "limit good.test");
}

TEST_F(ResolverTest, answers_by_tcp) {
  Start(Always({kGood}));
  const os::UniqueFd fd = gate_->ConnectToNames();
  const auto frame = [](const std::string& message) {
    return std::string{static_cast<char>(message.size() >> 8), static_cast<char>(message.size())} +
           message;
  };
  // Two at once, in pieces, and no more after them.
  const std::string sent =
      frame(QuestionFor("good.test", kTypeA, 1)) + frame(QuestionFor("evil.test", kTypeA, 2));
  for (const char c : sent) ASSERT_EQ(::send(fd.get(), &c, 1, MSG_NOSIGNAL), 1);
  ::shutdown(fd.get(), SHUT_WR);
  std::map<int, std::string> answers;
  std::string in;
  while (AwaitReadable(fd.get())) {
    std::array<char, 512> bytes;
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    in.append(bytes.data(), static_cast<std::size_t>(got));
  }
  while (in.size() > 2) {
    const std::size_t size = static_cast<unsigned char>(in[1]);
    answers[in[3]] = in.substr(2, size);
    in.erase(0, size + 2);
  }
  EXPECT_EQ(Said(answers[1], "good.test", 1), "NOERROR 203.0.113.10");
  EXPECT_EQ(Said(answers[2], "evil.test", 2), "NXDOMAIN");
}

TEST_F(ResolverTest, closes_what_asks_by_tcp_without_rules_or_sense) {
  Start(Always({kGood}));
  const auto is_closed = [](const os::UniqueFd& fd) {
    char byte = 0;
    return AwaitReadable(fd.get()) && ::recv(fd.get(), &byte, 1, 0) <= 0;
  };
  EXPECT_TRUE(is_closed(gate_->ConnectToNames(0x7f000109))) << "a machine of nobody";
  const os::UniqueFd fd = gate_->ConnectToNames();
  EXPECT_EQ(::send(fd.get(), "\xff\xff", 2, MSG_NOSIGNAL), 2);
  EXPECT_TRUE(is_closed(fd)) << "a question of 64 KiB";
  std::vector<os::UniqueFd> many;
  for (std::size_t i = 0; i < NameStreams::kMaxOfMachine; ++i) {
    many.push_back(gate_->ConnectToNames());
  }
  EXPECT_TRUE(is_closed(gate_->ConnectToNames()));
  EXPECT_EQ(gate_->Denial(1), "limit ");
}

TEST_F(ResolverTest, does_not_answer_a_flood) {
  Start(Always({kGood}));
  const os::UniqueFd fd = gate_->AskLater(QuestionFor("good.test"));
  const auto is_limited = [&] {
    return std::ranges::any_of(gate_->denials(), [](const GateDenial& denial) {
      return denial.kind == GateDenialKind::kLimit;
    });
  };
  int sent = 1;
  const std::string question = QuestionFor("good.test");
  for (; sent < 100'000 && !is_limited(); ++sent)
    ::send(fd.get(), question.data(), question.size(), 0);
  EXPECT_TRUE(is_limited());
  for (int i = 0; i < 300; ++i, ++sent) ::send(fd.get(), question.data(), question.size(), 0);
  int answers = 0;
  for (std::string answer; !(answer = TestGate::Answer(fd, 100)).empty(); ++answers)
    EXPECT_NE(Said(answer, "good.test"), "REFUSED");
  EXPECT_LT(answers, sent);
  EXPECT_LT(gate_->denials().size(), 100u) << "most of them are counted only";
}

TEST_F(ResolverTest, bears_malformed_questions) {
  Start(Always({kGood}));
  const std::string good = QuestionFor("good.test");
  EXPECT_EQ(Said(gate_->Ask(good.substr(0, 20)), "x"), "FORMERR");
  EXPECT_EQ(gate_->Ask(good.substr(0, 11), kMachine, 100), "");
  std::string update = good;
  update[2] = 0x28;
  EXPECT_EQ(Said(gate_->Ask(update), "x"), "NOTIMP");
  EXPECT_EQ(Ask("good.test"), "NOERROR 203.0.113.10");
}

}  // namespace
}  // namespace caisson::egress::gate
