// SPDX-License-Identifier: Apache-2.0
#include "graph/stream.h"

#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace caisson::graph {
namespace {

std::vector<json::Value> Lines(std::set<StreamMode> modes) {
  std::vector<json::Value> lines;
  RunConfig config;
  config.run_id = "r";
  Stream stream(std::move(modes), Progress(InitialState(J("{'n': 1}"), config, "r")),
                [&](const json::Value& line) { lines.push_back(line); });
  Services services;
  services.events = &stream;
  RunIt(MakeGraph({Set("a", "{'x': '{{inputs.n}}'}"), Sub("s", MakeGraph({Set("in", "{'y': 2}")})),
                   Set("z", "{'x': 3}"), Set("end", "{'sum': '{{in.y}}{{z.x}}'}")},
                  {"a>z", "a>s", "s>end", "z>end"}),
        "{'n': 1}", config, services);
  return lines;
}

TEST(Stream, of_updates_tells_what_each_node_of_the_workflow_writes) {
  std::string text;
  for (const json::Value& line : Lines({StreamMode::kUpdates})) {
    EXPECT_EQ(*line.Find("stream"), json::Value("updates"));
    text += Text(*line.Find("step")) + " " + line.Find("node")->as_string() + " " +
            Text(*line.Find("data")->Find("node_results")) + "\n";
  }
  EXPECT_EQ(text,
            "1 a {\"a\":{\"x\":1}}\n2 s {\"in\":{\"y\":2}}\n2 z {\"z\":{\"x\":3}}\n"
            "3 end {\"end\":{\"sum\":\"23\"}}\n");
}

TEST(Stream, of_values_tells_the_state_at_the_start_and_after_each_step) {
  std::string text;
  for (const json::Value& line : Lines({StreamMode::kValues})) {
    text += Text(*line.Find("step")) + " " + Text(*line.Find("data")->Find("node_results")) + "\n";
  }
  EXPECT_EQ(text,
            "0 {}\n1 {\"a\":{\"x\":1}}\n"
            "2 {\"a\":{\"x\":1},\"in\":{\"y\":2},\"z\":{\"x\":3}}\n"
            "3 {\"a\":{\"x\":1},\"in\":{\"y\":2},\"z\":{\"x\":3},\"end\":{\"sum\":\"23\"}}\n");
}

TEST(Stream, of_everything_tells_each_event) {
  std::uint64_t last = 0;
  for (const json::Value& line : Lines({StreamMode::kDebug})) {
    EXPECT_EQ(*line.Find("event")->Find("sequence"), json::Value(++last));
  }
  EXPECT_GT(last, 10u);
}

TEST(Stream, has_the_modes_that_one_asks_for) {
  std::set<std::string> seen;
  for (const json::Value& line : Lines({StreamMode::kUpdates, StreamMode::kValues})) {
    seen.insert(line.Find("stream")->as_string());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"updates", "values"}));
}

TEST(StreamMode, goes_by_its_name) {
  EXPECT_EQ(FindStreamMode("messages"), StreamMode::kMessages);
  EXPECT_EQ(FindStreamMode("custom"), std::nullopt);
}

}  // namespace
}  // namespace caisson::graph
