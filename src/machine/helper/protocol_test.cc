// SPDX-License-Identifier: Apache-2.0
#include "machine/helper/protocol.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "errors/egress.h"
#include "errors/machine.h"
#include "json/writer.h"

namespace caisson::machine::helper {
namespace {

MachineSpec Spec() {
  return {.id = "a-1",
          .host_name = "host",
          .image = std::string(64, 'a'),
          .cpus = 1.5,
          .memory_bytes = 1ull << 30,
          .disk_bytes = 1ull << 31,
          .pids = 99,
          .network = *egress::Policy::Parse({"192.0.2.1:443", "198.51.100.0/24"}),
          .shared_networks = {"net-1"},
          .sent_cap = 1ull << 40};
}

TEST(HelperProtocol, RequestsComeOutAsTheyWentIn) {
  const std::vector<Request> requests = {
      {.driver = "jail", .operation = Operation::kCapabilities},
      {.driver = "jail", .operation = Operation::kCreate, .spec = Spec()},
      {.driver = "jail", .operation = Operation::kDestroy, .id = "a"},
      {.driver = "jail", .operation = Operation::kPause, .id = "a", .level = Level::kDisk},
      {.driver = "jail", .operation = Operation::kResume, .id = "a"},
      {.driver = "jail", .operation = Operation::kFork, .id = "a", .spec = Spec()},
      {.driver = "jail",
       .operation = Operation::kTakeSnapshot,
       .id = "a",
       .snapshot = "s",
       .extent = Extent::kFilesystem},
      {.driver = "jail", .operation = Operation::kRestore, .snapshot = "s", .spec = Spec()},
      {.driver = "jail", .operation = Operation::kRemoveSnapshot, .snapshot = "s"},
      {.driver = "jail", .operation = Operation::kListSnapshots},
      {.driver = "jail", .operation = Operation::kResize, .id = "a", .disk_bytes = 1ull << 40},
      {.driver = "jail",
       .operation = Operation::kSetNetwork,
       .id = "a",
       .network = egress::Policy::PublicOnly(),
       .sent_cap = 0},
      {.driver = "jail",
       .operation = Operation::kSetNetwork,
       .id = "a",
       .network = *egress::Policy::Parse({"*.host.test"}, egress::HostNames::kEnforced)},
      {.driver = "jail",
       .operation = Operation::kSetSharedNetworks,
       .id = "a",
       .networks = {"net-1", "net-2"}},
      {.driver = "jail", .operation = Operation::kReadNetworkLog, .id = "a", .after = 7},
      {.driver = "jail", .operation = Operation::kReadStats, .id = "a"},
      {.driver = "jail", .operation = Operation::kList},
      {.driver = "jail", .operation = Operation::kConnect, .id = "a"},
  };
  for (const Request& request : requests) {
    const auto text = Encode(request);
    ASSERT_TRUE(text);
    const auto back = DecodeRequest(*text);
    ASSERT_TRUE(back) << *text << ": " << back.error().message;
    EXPECT_EQ(back->driver, request.driver);
    EXPECT_EQ(back->operation, request.operation);
    EXPECT_EQ(back->id, request.id);
    EXPECT_EQ(back->snapshot, request.snapshot);
    EXPECT_EQ(back->level, request.level);
    EXPECT_EQ(back->disk_bytes, request.disk_bytes);
    EXPECT_EQ(back->networks, request.networks);
    EXPECT_EQ(back->after, request.after);
    EXPECT_EQ(back->network.has_value(), request.network.has_value());
    EXPECT_EQ(back->sent_cap, request.sent_cap);
    ASSERT_EQ(back->spec.has_value(), request.spec.has_value());
    if (request.spec) {
      EXPECT_EQ(back->spec->image, request.spec->image);
      EXPECT_EQ(back->spec->cpus, request.spec->cpus);
      EXPECT_EQ(back->spec->network, request.spec->network);
      EXPECT_EQ(back->spec->shared_networks, request.spec->shared_networks);
      EXPECT_EQ(back->spec->sent_cap, request.spec->sent_cap);
    }
    EXPECT_EQ(*Encode(*back), *text);
  }
}

TEST(HelperProtocol, RefusesWhatIsNoRequest) {
  for (const char* text :
       {"", "{}", "[]", "null", "\"create\"", "{\"driver\":\"jail\",\"operation\":\"explode\"}",
        "{\"driver\":\"jail\",\"operation\":1}", "{\"operation\":\"list\"}",
        "{\"driver\":1,\"operation\":\"list\"}", "{\"driver\":\"jail\",\"operation\":\"destroy\"}",
        "{\"driver\":\"jail\",\"operation\":\"destroy\",\"id\":1}",
        "{\"driver\":\"jail\",\"operation\":\"destroy\",\"id\":\"a\",\"more\":1}",
        "{\"driver\":\"jail\",\"operation\":\"destroy\",\"id\":\"a\",\"id\":\"b\"}",
        "{\"driver\":\"jail\",\"operation\":\"list\",\"id\":\"a\"}",
        "{\"driver\":\"jail\",\"operation\":\"pause\",\"id\":\"a\",\"level\":\"deep\"}",
        "{\"driver\":\"jail\",\"operation\":\"resize\",\"id\":\"a\",\"disk_bytes\":-1}",
        "{\"driver\":\"jail\",\"operation\":\"resize\",\"id\":\"a\",\"disk_bytes\":1.5}",
        "{\"driver\":\"jail\",\"operation\":\"resize\",\"id\":\"a\",\"disk_bytes\":"
        "99999999999999999999}"}) {
    const auto request = DecodeRequest(text);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, errors::kMachineProtocol) << text;
  }
}

TEST(HelperProtocol, RefusesIdsThatCouldBePaths) {
  for (const char* id : {"", "..", "../x", "a/b", "A", "a b", "a\\u0000b"}) {
    const auto request = DecodeRequest(
        std::string("{\"driver\":\"jail\",\"operation\":\"destroy\",\"id\":\"") + id + "\"}");
    ASSERT_FALSE(request) << id;
    EXPECT_EQ(request.error().code, errors::kMachineInvalid) << id;
  }
}

TEST(HelperProtocol, TakesTheLargestPolicyAndRefusesMoreValuesThanAnyRequestHas) {
  std::vector<std::string> rules;
  for (std::size_t i = 0; i < egress::kMaxRules; ++i) {
    rules.push_back("192.0.2." + std::to_string(i % 256) + ":" + std::to_string(i + 1));
  }
  Request request{.driver = "jail", .operation = Operation::kSetNetwork, .id = "a"};
  request.network = *egress::Policy::Parse(rules);
  EXPECT_TRUE(DecodeRequest(*Encode(request)));
  std::string many = "0";
  for (std::size_t i = 0; i < kMaxRequestValues; ++i) many += ",0";
  const auto refused = DecodeRequest("[" + many + "]");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errors::kMachineProtocol);
  EXPECT_NE(refused.error().message.find("more than 4096 values"), std::string::npos);
}

TEST(HelperProtocol, RefusesCapsOfAnotherForm) {
  const std::string before =
      R"({"driver":"jail","operation":"set_network","id":"a","network":[],"sent_cap":)";
  EXPECT_TRUE(DecodeRequest(before + "null}"));
  EXPECT_TRUE(DecodeRequest(before + "0}"));
  for (const char* cap : {"-1", "1.5", "\"1\"", "[]", "99999999999999999999"}) {
    const auto request = DecodeRequest(before + cap + "}");
    ASSERT_FALSE(request) << cap;
    EXPECT_EQ(request.error().code, errors::kMachineInvalid) << cap;
  }
}

TEST(HelperProtocol, TakesSpecsOfBeforeMachinesSharedNetworks) {
  std::string text = *Encode({.driver = "jail", .operation = Operation::kCreate, .spec = Spec()});
  const std::string added = ",\"shared_networks\":[\"net-1\"],\"sent_cap\":1099511627776";
  ASSERT_NE(text.find(added), std::string::npos) << text;
  text.erase(text.find(added), added.size());
  const auto request = DecodeRequest(text);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->spec->shared_networks.empty());
  EXPECT_FALSE(request->spec->sent_cap);
}

TEST(HelperProtocol, RefusesNetworksOfAnotherForm) {
  for (const char* list : {"1", "[1]", "[\"\"]", "[\"a/b\"]", "[\"A\"]", "null"}) {
    const auto request = DecodeRequest(
        std::string("{\"driver\":\"jail\",\"operation\":\"set_shared_networks\",\"id\":\"a\","
                    "\"networks\":") +
        list + "}");
    ASSERT_FALSE(request) << list;
    EXPECT_EQ(request.error().code, errors::kMachineInvalid) << list;
  }
}

TEST(HelperProtocol, LogsComeOutAsTheyWentIn) {
  const egress::NetworkLog log{.denials = {{.number = 1'790'000'000'000'001,
                                            .time = 1'790'000'000'000,
                                            .kind = "foreign_name",
                                            .protocol = "tcp",
                                            .address = "203.0.113.10",
                                            .port = 443,
                                            .name = "evil.test",
                                            .rule = "*.test",
                                            .why = "because",
                                            .count = 3}},
                               .last = 9,
                               .lost = 2,
                               .refused_packets = 5,
                               .refused_by_gate = 4,
                               .rules = {{.rule = "*.test", .answers = 1, .connections = 2}}};
  const auto back = NetworkLogFromJson(ToJson(log));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*json::Write(ToJson(*back)), *json::Write(ToJson(log)));
  EXPECT_EQ(back->denials.at(0).why, "because");
  EXPECT_FALSE(NetworkLogFromJson(json::Object{{"denials", 1}}));
}

TEST(HelperProtocol, RefusesPoliciesOfAnotherForm) {
  auto text = *Encode({.driver = "jail",
                       .operation = Operation::kSetNetwork,
                       .id = "a",
                       .network = *egress::Policy::Parse({"192.0.2.1"})});
  text.replace(text.find("192.0.2.1"), 9, "192.0.2.1!");
  const auto request = DecodeRequest(text);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, errors::kEgressBadRule);
}

TEST(HelperProtocol, FailuresComeOutAsTheyWentIn) {
  const auto text = EncodeFailure(
      {.code = errors::kMachineFull, .message = "no \"room\" \xff", .details = "line\n"});
  ASSERT_TRUE(text);
  const auto reply = DecodeReply(*text);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, errors::kMachineFull);
  EXPECT_EQ(reply.error().message, "no \"room\" \xef\xbf\xbd");
  EXPECT_EQ(reply.error().details, "line\n");
}

TEST(HelperProtocol, RefusesRepliesOfAnotherForm) {
  for (const char* text : {"", "{}", "[1]", "{\"code\":\"machine.full\"}"}) {
    const auto reply = DecodeReply(text);
    ASSERT_FALSE(reply) << text;
    EXPECT_EQ(reply.error().code, errors::kMachineProtocol);
  }
  EXPECT_FALSE(MachineFromJson(json::Object{{"id", "a"}}));
  EXPECT_FALSE(StatsFromJson(json::Value()));
  EXPECT_FALSE(CapabilitiesFromJson(json::Value("x")));
}

TEST(HelperProtocol, RepliesComeOutAsTheyWentIn) {
  const Machine machine{
      .id = "a", .state = State::kPausedOnDisk, .ip = "10.0.0.1", .image = "b", .disk_bytes = 7};
  const auto back = MachineFromJson(ToJson(machine));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->state, machine.state);
  EXPECT_EQ(back->ip, machine.ip);
  const Capabilities capabilities{.driver = "jail",
                                  .isolation = "x",
                                  .isolation_class = "hardware-virtualized",
                                  .emulated = true,
                                  .pause = Level::kDisk,
                                  .snapshot = Extent::kFilesystem,
                                  .fork = Extent::kFull,
                                  .resize_disk = true};
  EXPECT_EQ(CapabilitiesFromJson(ToJson(capabilities)).value_or(Capabilities{}), capabilities);
}

class Frames : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
  }
  os::UniqueFd ours_, theirs_;
};

TEST_F(Frames, CarryTextOfAnySizeAndADescriptor) {
  const std::string large(3u << 20, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(SendFrame(ours_.get(), "first", ours_.get()));
    EXPECT_TRUE(SendFrame(ours_.get(), large));
    EXPECT_TRUE(SendFrame(ours_.get(), ""));
    ours_.Reset();
  });
  auto first = ReceiveFrame(theirs_.get(), 100);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->text, "first");
  ASSERT_TRUE((*first)->fd.valid());
  EXPECT_NE(::fcntl((*first)->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  (*first)->fd.Reset();
  const auto second = ReceiveFrame(theirs_.get(), kMaxReplyBytes);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->text, large);
  EXPECT_FALSE((*second)->fd.valid());
  const auto third = ReceiveFrame(theirs_.get(), 100);
  ASSERT_TRUE(third && *third);
  EXPECT_EQ((*third)->text, "");
  const auto end = ReceiveFrame(theirs_.get(), 100);
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
  sender.join();
}

TEST_F(Frames, RefuseWhatIsTooLargeOrCutOff) {
  ASSERT_EQ(::write(ours_.get(), "\xff\xff\xff\xff", 4), 4);
  EXPECT_FALSE(ReceiveFrame(theirs_.get(), kMaxRequestBytes));
  ASSERT_EQ(::write(ours_.get(), "\x05\0\0\0ab", 6), 6);
  ours_.Reset();
  EXPECT_FALSE(ReceiveFrame(theirs_.get(), kMaxRequestBytes));
}

}  // namespace
}  // namespace caisson::machine::helper
