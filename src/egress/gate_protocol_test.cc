// SPDX-License-Identifier: Apache-2.0
#include "egress/gate_protocol.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

std::vector<GateMessage> Examples() {
  return {
      GateReady{.walls = {{"seccomp", true, ""}, {"landlock", false, "ENOSYS"}}},
      GateFailed{.message = "the wall seccomp does not stand"},
      GateConfigure{.resolvers = {{0xc6336435, 53}, {0xc6336436, 5353}}},
      GateConfigure{},
      GateMachine{.address = 0x0ae70010,
                  .generation = 7,
                  .rules = {{.name = "example.com", .port = 8080, .index = 999},
                            {.name = "example.com", .wildcard = true, .index = 3}}},
      GateForget{.address = 0x0ae70010},
      GateApplied{.address = 0x0ae70010, .generation = 7},
      GatePin{.id = 1ull << 63,
              .machine = 0x0ae70010,
              .generation = 7,
              .name = "example.com",
              .seconds = 300,
              .addresses = {0xcb00710a, 0xcb007114}},
      GatePinned{.id = 1ull << 63, .addresses = {0xcb00710a}},
      GatePinned{.id = 1, .addresses = {}},
      GateDenial{.machine = 0x0ae70010,
                 .generation = 7,
                 .kind = GateDenialKind::kUnreachable,
                 .name = "What? A Name",
                 .address = 0xcb00710a,
                 .port = 443,
                 .rule = 3,
                 .suppressed = 12},
      GateCounters{.machine = 0x0ae70010, .generation = 7, .denials = 3, .entries = {{3, 4, 5}}},
  };
}

std::string BodyOf(const GateMessage& message) { return EncodeGateMessage(message).substr(4); }

TEST(GateProtocol, reads_what_it_writes) {
  for (const GateMessage& message : Examples()) {
    const std::string frame = EncodeGateMessage(message);
    ASSERT_GE(frame.size(), 5u);
    EXPECT_EQ(static_cast<unsigned char>(frame[0]), frame.size() - 4);
    const auto back = DecodeGateMessage(frame.substr(4));
    ASSERT_TRUE(back) << message.index();
    EXPECT_EQ(*back, message) << message.index();
  }
}

TEST(GateProtocol, takes_no_message_that_is_cut_or_has_more) {
  for (const GateMessage& message : Examples()) {
    const std::string body = BodyOf(message);
    for (std::size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(DecodeGateMessage(body.substr(0, size))) << message.index() << " " << size;
    }
    EXPECT_FALSE(DecodeGateMessage(body + '\0')) << message.index();
  }
  EXPECT_FALSE(DecodeGateMessage("\x0a"));
  EXPECT_FALSE(DecodeGateMessage("\xff"));
}

TEST(GateProtocol, takes_no_field_that_is_not_allowed) {
  const GateMachine machine{
      .address = 1, .generation = 1, .rules = {{.name = "example.com", .index = 0}}};
  EXPECT_TRUE(DecodeGateMessage(BodyOf(machine)));
  const auto with = [&](auto change) {
    GateMachine changed = machine;
    change(changed);
    return DecodeGateMessage(BodyOf(changed));
  };
  EXPECT_FALSE(with([](GateMachine& m) { m.generation = 0; }));
  EXPECT_FALSE(with([](GateMachine& m) { m.rules[0].name = "Example.com"; }));
  EXPECT_FALSE(with([](GateMachine& m) { m.rules[0].name = ""; }));
  EXPECT_FALSE(with([](GateMachine& m) { m.rules[0].index = 1000; }));
  EXPECT_FALSE(with([](GateMachine& m) { m.rules[0].port = 0; }));
  EXPECT_FALSE(with([](GateMachine& m) { m.rules.resize(1001, m.rules[0]); }));

  const GatePin pin{.id = 1,
                    .machine = 2,
                    .generation = 3,
                    .name = "example.com",
                    .seconds = 5,
                    .addresses = {0xcb00710a}};
  EXPECT_TRUE(DecodeGateMessage(BodyOf(pin)));
  const auto pinned = [&](auto change) {
    GatePin changed = pin;
    change(changed);
    return DecodeGateMessage(BodyOf(changed));
  };
  EXPECT_FALSE(pinned([](GatePin& p) { p.seconds = 4; }));
  EXPECT_FALSE(pinned([](GatePin& p) { p.seconds = 301; }));
  EXPECT_FALSE(pinned([](GatePin& p) { p.addresses.clear(); }));
  EXPECT_FALSE(pinned([](GatePin& p) { p.addresses.resize(33); }));
  EXPECT_FALSE(pinned([](GatePin& p) { p.name = "*.example.com"; }));
  EXPECT_FALSE(DecodeGateMessage(
      BodyOf(GatePinned{.id = 1, .addresses = std::vector<std::uint32_t>(33, 0xcb00710a)})));
  EXPECT_FALSE(DecodeGateMessage(BodyOf(GateDenial{.name = "a\nb"})));
  EXPECT_FALSE(DecodeGateMessage(BodyOf(GateConfigure{.resolvers = {4, {1, 53}}})));
}

TEST(GateProtocol, has_room_for_the_longest_list_of_rules) {
  GateMachine machine{.address = 1, .generation = 1, .rules = {}};
  std::string name;
  while (name.size() < 250) name += "abcdefghi.";
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    machine.rules.push_back({.name = name + "abc", .wildcard = true, .port = 65535, .index = i});
  }
  EXPECT_LE(EncodeGateMessage(machine).size(), kMaxGateFrame);
  EXPECT_TRUE(DecodeGateMessage(BodyOf(machine)));
}

TEST(GateProtocol, knows_a_name) {
  for (const char* name : {"a", "example.com", "xn--bcher-kva.example", "_dmarc.a-b.c", "1.a2"}) {
    EXPECT_TRUE(IsGateName(name)) << name;
  }
  const std::string label(64, 'a');
  std::string longest(253, 'a');
  for (std::size_t i = 60; i < 250; i += 60) longest[i] = '.';
  EXPECT_TRUE(IsGateName(longest));
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("a..b"),
        std::string("A.b"), std::string("-a.b"), std::string("a-.b"), std::string("203.0.113.7"),
        std::string("a.0x7f"), std::string("a b.c"), std::string("a\0b.c", 5), std::string("*.a"),
        std::string("a:80"), label + ".a", longest + "a"}) {
    EXPECT_FALSE(IsGateName(name)) << name;
  }
}

}  // namespace
}  // namespace caisson::egress
