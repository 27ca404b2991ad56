// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/foreign.h"

#include <fmt/format.h>

#include <initializer_list>

namespace caisson::workflow::migrate {
namespace {

struct Entry {
  std::string_view prefix, what, hint;
};

// The first prefix that fits counts.
constexpr Entry kEntries[] = {
    {"re.", "uses a regular expression", "write the search with the methods of str"},
    {"datetime.", "reads the clock or counts in dates",
     "decide which time the run is for, and have the caller pass it in"},
    {"time.", "reads the clock or waits",
     "decide which time the run is for and have the caller pass it in; to wait, use DelayNode"},
    {"random.", "draws at random", "have the caller pass the draw in, or draw by a stated rule"},
    {"secrets.", "draws at random", "have the caller pass it in"},
    {"uuid.", "draws at random", "have the caller pass it in"},
    {"requests.", "calls a server", "use HttpRequestNode, or have the caller pass the answer in"},
    {"httpx.", "calls a server", "use HttpRequestNode, or have the caller pass the answer in"},
    {"urllib.", "calls a server or takes a URL apart",
     "use HttpRequestNode, or have the caller pass the answer in"},
    {"aiohttp.", "calls a server", "use HttpRequestNode, or have the caller pass the answer in"},
    {"smtplib.", "sends mail",
     "use a node that sends, and decide whether it may send again after a failure"},
    {"os.environ", "reads the environment",
     "use a [[credential]] placeholder in a built-in node, or an input"},
    {"os.getenv", "reads the environment",
     "use a [[credential]] placeholder in a built-in node, or an input"},
    {"os.", "reaches for the operating system",
     "a node has none: have the caller pass in what it needs"},
    {"pathlib.", "works with files",
     "a node has none: use a built-in node, or pass the content in"},
    {"logging.", "writes a log", "leave it out: each node's result is recorded"},
    {"json.", "reads or writes JSON",
     "use JsonProcessingNode; json.dumps(x, sort_keys=True) is migrated by rule"},
    {"math.", "calls a function of math that the guest lacks", "write the arithmetic out"},
    {"functools.", "keeps a cache or wraps a function",
     "leave it out, or keep what must last in a store"},
    {"langgraph.types.Command", "says where to go from inside a node",
     "return the update, and have a conditional edge read a key of it"},
    {"langgraph.types.Send", "starts one branch for each item",
     "handle all items in one node, or loop with ForLoopNode"},
    {"langgraph.types.interrupt", "waits for a person",
     "use HumanInputNode, and read its answer from node_results"},
    {"langgraph.prebuilt.", "uses a prebuilt part of LangGraph",
     "AgentNode calls tools itself: decide whether this is still needed"},
    {"langgraph.checkpoint.", "keeps checkpoints of its own",
     "leave it out: the engine keeps the state"},
    {"langchain", "calls a model or a tool", "use AgentNode, with its model and credential"},
    {"openai.", "calls a model", "use AgentNode, with its model and credential"},
    {"anthropic.", "calls a model", "use AgentNode, with its model and credential"},
};

}  // namespace

ForeignUse DescribeForeign(std::string_view dotted) {
  const std::string name = std::string(dotted) + ".";
  for (const Entry& entry : kEntries) {
    if (!name.starts_with(entry.prefix)) continue;
    return {fmt::format("'{}' {}, and code of a workflow may not import", dotted, entry.what),
            std::string(entry.hint)};
  }
  return {fmt::format("'{}' comes from a module, and code of a workflow may not import", dotted),
          "write out what it does, or use a built-in node"};
}

}  // namespace caisson::workflow::migrate
