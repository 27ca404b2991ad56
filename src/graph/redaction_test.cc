// SPDX-License-Identifier: Apache-2.0
#include "graph/redaction.h"

#include <gtest/gtest.h>

#include "graph/run.h"
#include "graph/test_support.h"
#include "nodes/memory_stores.h"

namespace caisson::graph {
namespace {

constexpr std::string_view kCanary = "S3CR3T-canary";

struct Seen {
  RunResult result;
  std::string events;
  std::string log;
};

Seen RunWithVault(workflow::Graph graph) {
  StaticCredentials vault;
  vault.Add("token", std::string(kCanary));
  Recorder events;
  Seen seen;
  Services services;
  services.credentials = &vault;
  services.events = &events;
  services.log = [&](nodes::LogLevel, std::string_view message) { seen.log += message; };
  seen.result = RunIt(std::move(graph), "{}", {}, services);
  for (const json::Value& event : events.events) seen.events += Text(event);
  return seen;
}

void ExpectNoCanary(const Seen& seen) {
  EXPECT_EQ(Text(seen.result.state).find(kCanary), std::string::npos);
  EXPECT_EQ(seen.events.find(kCanary), std::string::npos) << seen.events;
  EXPECT_EQ(seen.log.find(kCanary), std::string::npos) << seen.log;
  if (seen.result.error) {
    EXPECT_EQ(seen.result.error->message.find(kCanary), std::string::npos);
  }
}

TEST(Redaction, PutsPlaceholdersBackIntoWhatANodeReturns) {
  const Seen seen =
      RunWithVault(MakeGraph({Set("a",
                                  "{'whole': '[[token]]', 'part': 'Bearer [[token]]', 'x': {'y': "
                                  "['[[token#secret]]']}}"),
                              Set("b", "{'copy': '{{a.whole}}', 'other': 1}")},
                             {"a>b"}));
  ASSERT_TRUE(seen.result.ok());
  EXPECT_EQ(Text(*seen.result.state.Find("node_results")->Find("a")),
            R"({"whole":"[[token]]","part":"Bearer [[token]]","x":{"y":["[[token]]"]}})");
  EXPECT_EQ(Text(*seen.result.state.Find("node_results")->Find("b")),
            R"({"copy":"[[token]]","other":1})");
  ExpectNoCanary(seen);
}

TEST(Redaction, HoldsForLogsErrorsAndSteps) {
  ExpectNoCanary(RunWithVault(MakeGraph({Native("a", "DebugNode", "{'message': '[[token]]'}")})));
  const Seen failed = RunWithVault(
      MakeGraph({Native("a", "JsonProcessingNode",
                        "{'operation': 'extract', 'path': 'a', 'input_data': '[[token]] {'}")}));
  EXPECT_FALSE(failed.result.ok());
  ExpectNoCanary(failed);
  const Seen steps = RunWithVault(MakeGraph({Native(
      "a", "SubWorkflowNode",
      "{'steps': [{'type': 'SetVariableNode', 'name': 'q', 'variables': {'v': '[[token]]'}}]}")}));
  EXPECT_TRUE(steps.result.ok());
  ExpectNoCanary(steps);
}

TEST(Redaction, HoldsForTheFormsThatNodesGiveToText) {
  StaticCredentials vault;
  vault.Add("token", "S3CR3T-\"canary\"\\é");
  Services services;
  services.credentials = &vault;
  for (const char* config : {"{'operation': 'stringify', 'input_data': {'a': '[[token]]'}}",
                             "{'operation': 'stringify', 'ensure_ascii': true, 'input_data': "
                             "{'a': '[[token]]'}}"}) {
    const RunResult result =
        RunIt(MakeGraph({Native("a", "JsonProcessingNode", config)}), "{}", {}, services);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(Text(*result.state.Find("node_results")),
              R"({"a":{"result":"{\n  \"a\": \"[[token]]\"\n}"}})");
  }
  const RunResult html = RunIt(MakeGraph({Native("a", "HtmlTextTransformNode",
                                                 "{'input_data': '[[token]]', 'operations': "
                                                 "['escape']}")}),
                               "{}", {}, services);
  EXPECT_EQ(Text(*html.state.Find("node_results")), R"({"a":{"result":"[[token]]"}})");
}

TEST(Redaction, HoldsForWhatIsKeptBeyondTheRun) {
  StaticCredentials vault;
  vault.Add("token", std::string(kCanary));
  nodes::MemoryBlobs blobs;
  nodes::MemoryItems items;
  Services services;
  services.credentials = &vault;
  services.blobs = &blobs;
  services.items = &items;
  const RunResult result = RunIt(
      MakeGraph(
          {Native("a", "FileUploadNode", "{'content': 'x [[token]]', 'filename': '[[token]]'}"),
           Native("b", "GraphStoreAppendMessageNode", "{'key': 'k', 'content': 'my [[token]]'}")},
          {"a>b"}),
      "{}", {}, services);
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(Text(items.All()).find(kCanary), std::string::npos);
  EXPECT_NE(Text(items.All()).find("my [[token]]"), std::string::npos) << Text(items.All());
  ASSERT_EQ(blobs.all().size(), 1u);
  EXPECT_EQ(blobs.all().front().content, "x [[token]]");
  EXPECT_EQ(blobs.all().front().name, "[[token]]");
}

}  // namespace
}  // namespace caisson::graph
