// SPDX-License-Identifier: Apache-2.0
#include "capi/options.h"

#include <gtest/gtest.h>

#include "errors/json.h"
#include "errors/library.h"

namespace caisson::capi {
namespace {

TEST(Options, EmptyTextGivesDefaults) {
  const auto engine = ReadEngineOptions("");
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->isolation.limits, isolate::Limits());
  EXPECT_FALSE(engine->isolation.allow_unjailed);
  EXPECT_FALSE(engine->store);
  EXPECT_TRUE(ReadCompileOptions("{}")->enforce_node_policy);
}

TEST(Options, RunTakesWhatTheHeaderNames) {
  const auto run = ReadRunOptions(
      R"({"config":{"tags":["a"]},"policy":"raise","limits":{"fuel":5,"wall_clock_ms":7},
          "timeout_ms":9,"state_bytes":11,"runtime":"cpython","node_runtimes":{"n":"micropython"},
          "credentials":{"k":"s"},"allow_endpoints":["127.0.0.1:80","http://localhost:81"],
          "run_id":"r","name":"w","enforce_node_policy":false})",
      {});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->policy, graph::Policy::kRaise);
  EXPECT_EQ(run->limits.fuel, 5u);
  EXPECT_EQ(run->limits.wall_clock.count(), 7);
  EXPECT_EQ(run->timeout->count(), 9);
  EXPECT_EQ(run->state_bytes, 11u);
  EXPECT_EQ(run->runtimes.all, workflow::CodeRuntime::kCPython);
  EXPECT_EQ(run->runtimes.Of("n"), workflow::CodeRuntime::kMicroPython);
  EXPECT_EQ(run->carry.credentials.front().second, "s");
  EXPECT_EQ(run->carry.endpoints, (std::vector<std::string>{"127.0.0.1:80", "localhost:81"}));
  EXPECT_FALSE(run->carry.enforce_node_policy);
}

TEST(Options, LimitsMayNotExceedWhatWorkersWereMadeFor) {
  const isolate::Limits most{.memory_bytes = 1000};
  EXPECT_TRUE(ReadCallOptions(R"({"limits":{"memory_bytes":1000}})", most));
  EXPECT_EQ(ReadCallOptions(R"({"limits":{"memory_bytes":1001}})", most).error().code,
            errors::kLibraryOptions);
  EXPECT_EQ(ReadCallOptions(R"({"limits":{"heap_bytes":5}})", most).error().code,
            errors::kLibraryOptions);
}

TEST(Options, NamesWhatIsWrong) {
  const auto refuse = [](std::string_view text) { return ReadRunOptions(text, {}).error(); };
  EXPECT_EQ(refuse("{").code, errors::kJsonSyntax);
  EXPECT_EQ(refuse(R"({"name":"a","name":"b"})").code, errors::kJsonDuplicateKey);
  EXPECT_NE(refuse(R"({"limit":{}})").message.find("'limit'"), std::string::npos);
  EXPECT_NE(refuse(R"({"limits":{"cpu":1}})").message.find("'limits.cpu'"), std::string::npos);
  EXPECT_NE(refuse(R"({"limits":{"fuel":-1}})").message.find("'limits.fuel'"), std::string::npos);
  EXPECT_NE(refuse(R"({"credentials":{"k":1}})").message.find("'credentials.k'"),
            std::string::npos);
  EXPECT_NE(refuse(R"({"name":"a\u0000b"})").message.find("NUL"), std::string::npos);
  for (const auto* endpoint : {R"("example.com:80")", R"("http://10.0.0.1:80")", "7", R"("")"}) {
    const std::string text = std::string(R"({"allow_endpoints":[)") + endpoint + "]}";
    EXPECT_EQ(refuse(text).code, errors::kLibraryOptions) << endpoint;
  }
}

}  // namespace
}  // namespace caisson::capi
