// SPDX-License-Identifier: Apache-2.0
// Agents against an endpoint that answers by a script.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "errors/outbound.h"
#include "graph/test_support.h"
#include "graph/tool_plan.h"
#include "graph/tool_visit.h"
#include "json/reader.h"
#include "json/writer.h"
#include "nodes/memory_stores.h"
#include "workflow/ir.h"

namespace caisson::graph {
namespace {

// Answers each request with the next of its documents.
class Endpoint final : public http::Outbound {
 public:
  Endpoint(std::initializer_list<std::string> answers) {
    for (const std::string& answer : answers) answers_.push_back(J(answer));
  }

  Result<http::OutboundResponse> Send(const http::OutboundRequest& request,
                                      const http::BodySink& sink, std::stop_token) override {
    const std::lock_guard lock(mutex_);
    requests.push_back(*json::Read(*request.body));
    if (const std::string* key = request.headers.Find("Authorization")) keys.push_back(*key);
    if (answers_.empty()) return Fail(errors::kOutboundUnreachable, "the script is over");
    const json::Value answer = answers_.front();
    if (answers_.size() > 1 || !repeat_last) answers_.pop_front();
    http::OutboundResponse response;
    response.status = 200;
    response.headers.Set("Content-Type", "application/json");
    json::Value completion = json::Object{
        {"model", "m"},
        {"choices", json::Array{json::Object{{"message", answer}, {"finish_reason", "stop"}}}},
        {"usage",
         json::Object{{"prompt_tokens", 3}, {"completion_tokens", 2}, {"total_tokens", 5}}}};
    if (!tells_usage) completion.mutable_object().Erase("usage");
    CAISSON_TRY(sink(*json::Write(completion)));
    return response;
  }
  Result<http::MailOutcome> SendMail(const http::MailRequest&, std::stop_token) override {
    return Fail(errors::kOutboundRefused, "no mail");
  }

  bool repeat_last = false;
  bool tells_usage = true;
  std::vector<json::Value> requests;
  std::vector<std::string> keys;

 private:
  std::mutex mutex_;
  std::deque<json::Value> answers_;
};

json::Value ToolMarker(const std::string& name, const workflow::Graph& graph, json::Object more) {
  json::Object marker{{std::string(workflow::kKindMarker), "workflow_tool"},
                      {"name", name},
                      {"description", "does " + name},
                      {"graph", workflow::ToJson(graph)},
                      {"output_path", nullptr},
                      {"return_direct", false}};
  for (const auto& [key, value] : more) marker.Set(key, value);
  return marker;
}

workflow::Node AgentOf(json::Array tools, std::string more = "{}", std::string type = "AgentNode") {
  json::Object config = J(std::move(more)).as_object();
  if (!config.Contains("ai_model")) config.Set("ai_model", "openai:m");
  config.Set("workflow_tools", std::move(tools));
  return workflow::BuiltinNode{"agent", std::move(type), std::move(config)};
}

// A tool whose graph gives back what it was given as `text`.
json::Value Echo(const std::string& name, bool direct = false) {
  return ToolMarker(name, MakeGraph({Set("echo", "{'text': '{{inputs.text}}'}")}),
                    {{"output_path", "node_results.echo.text"},
                     {"return_direct", direct},
                     {"args_schema", J("{'type': 'object', 'properties': {'text': {'type': "
                                       "'string', 'minLength': 1}}, 'required': ['text']}")}});
}

std::string CallOf(const std::string& id, const std::string& name, const std::string& arguments) {
  return "{'id': '" + id + "', 'function': {'name': '" + name +
         "', 'arguments': " + json::Quote(arguments) + "}}";
}
std::string Calls(const std::vector<std::string>& calls) {
  std::string all;
  for (const std::string& call : calls) all += (all.empty() ? "" : ", ") + call;
  return "{'content': null, 'tool_calls': [" + all + "]}";
}
std::string Echoes(const std::string& id, const std::string& text, const std::string& name = "e") {
  std::string arguments = R"({\"text\": \")" + text + R"(\"})";
  return "{'id': '" + id + "', 'function': {'name': '" + name + "', 'arguments': '" + arguments +
         "'}}";
}

RunResult Ask(Endpoint& endpoint, workflow::Node agent, const RunConfig& config = {},
              Services services = {}) {
  services.network = &endpoint;
  return RunIt(MakeGraph({std::move(agent)}), "{'message': 'hi'}", config, services);
}

// "human:hi ai: tool:x" of the final state.
std::string Said(const RunResult& result) {
  std::string text;
  for (const json::Value& message : result.state.Find("messages")->as_array()) {
    text += (text.empty() ? "" : " ") + message.Find("type")->as_string() + ":" +
            message.Find("content")->as_string();
  }
  return text;
}

std::string CodeOf(const RunResult& result) {
  return result.error ? std::string(result.error->code.name) : "none";
}

TEST(Agent, answers_and_leaves_no_entry_of_its_own) {
  Endpoint endpoint{"{'content': 'Hello'}"};
  const RunResult result = Ask(endpoint, AgentOf({}, "{'system_prompt': 'Be good'}"));
  EXPECT_EQ(CodeOf(result), "none");
  EXPECT_EQ(Said(result), "human:hi ai:Hello");
  EXPECT_EQ(Entry(result, "agent"), "");
  EXPECT_EQ(result.tokens, 5);
  EXPECT_EQ(Text(*endpoint.requests[0].Find("messages")),
            R"([{"content":"Be good","role":"system"},{"content":"hi","role":"user"}])");
}

TEST(Agent, tells_the_model_what_its_tools_gave_in_the_order_of_its_calls) {
  Endpoint endpoint{Calls({Echoes("1", "a"), Echoes("2", "b"), Echoes("3", "c")}),
                    "{'content': 'done'}"};
  const RunResult result = Ask(endpoint, AgentOf({Echo("e")}));
  EXPECT_EQ(Said(result), "human:hi ai: tool:a tool:b tool:c ai:done");
  EXPECT_EQ(result.node_visits, 4u);
  EXPECT_EQ(result.tokens, 10);
}

TEST(Agent, ends_with_the_output_when_all_its_calls_are_replies) {
  Endpoint one{Calls({Echoes("1", "a", "d")}), "{'content': 'done'}"};
  EXPECT_EQ(Said(Ask(one, AgentOf({Echo("e"), Echo("d", true)}))), "human:hi ai: tool:a");
  Endpoint mixed{Calls({Echoes("1", "a", "d"), Echoes("2", "b", "e")}), "{'content': 'done'}"};
  EXPECT_EQ(Said(Ask(mixed, AgentOf({Echo("e"), Echo("d", true)}))),
            "human:hi ai: tool:a tool:b ai:done");
}

TEST(Agent, runs_no_tool_whose_arguments_do_not_fit) {
  Endpoint endpoint{Calls({Echoes("1", ""), CallOf("2", "e", "{"), Echoes("3", "a", "none")}),
                    "{'content': 'sorry'}"};
  const RunResult result = Ask(endpoint, AgentOf({Echo("e")}));
  EXPECT_EQ(CodeOf(result), "none");
  EXPECT_EQ(result.node_visits, 1u) << "no tool ran";
  const std::string said = Said(result);
  EXPECT_NE(said.find("$.text: must have at least 1 character, not 0"), std::string::npos) << said;
  EXPECT_NE(said.find("must be one JSON object"), std::string::npos) << said;
  EXPECT_NE(said.find("none is not a valid tool, try one of [e]."), std::string::npos) << said;
  const json::Value& call = endpoint.requests[1].Find("messages")->as_array()[1];
  EXPECT_EQ(call.Find("tool_calls")->as_array().size(), 3u);
}

TEST(Agent, gives_up_on_a_model_that_goes_on_with_wrong_arguments) {
  Endpoint endpoint{Calls({Echoes("1", "")})};
  endpoint.repeat_last = true;
  const RunResult result = Ask(endpoint, AgentOf({Echo("e")}));
  EXPECT_EQ(CodeOf(result), "model.tool_arguments");
  EXPECT_EQ(endpoint.requests.size(), 4u);
  EXPECT_NE(result.error->message.find("must have at least 1 character"), std::string::npos);
}

TEST(Agent, gives_up_on_a_model_that_never_ends) {
  Endpoint endpoint{Calls({Echoes("1", "a")})};
  endpoint.repeat_last = true;
  const RunResult result = Ask(endpoint, AgentOf({Echo("e")}));
  EXPECT_EQ(CodeOf(result), "model.turns");
  EXPECT_EQ(endpoint.requests.size(), 100u);
}

TEST(Agent, stops_at_the_budget_of_tokens) {
  Endpoint endpoint{Calls({Echoes("1", "a")}), "{'content': 'done'}"};
  RunConfig config;
  config.budget.tokens = 9;
  const RunResult result = Ask(endpoint, AgentOf({Echo("e")}), config);
  EXPECT_EQ(CodeOf(result), "graph.budget");
  EXPECT_EQ(result.tokens, 10);
}

TEST(Agent, counts_the_tokens_of_an_endpoint_that_does_not) {
  Endpoint endpoint{"{'content': '" + std::string(400, 'a') + "'}"};
  endpoint.tells_usage = false;
  RunConfig config;
  config.budget.tokens = 99;
  const RunResult result = Ask(endpoint, AgentOf({}), config);
  EXPECT_EQ(CodeOf(result), "graph.budget");
  EXPECT_EQ(result.tokens, 101);
}

TEST(Agent, checks_an_answer_against_its_form) {
  const std::string form =
      "{'response_format': {'title': 'A', 'type': 'object', 'properties': {'n': {'type': "
      "'integer'}}, 'required': ['n'], 'additionalProperties': false}}";
  Endpoint good{"{'content': '{\\\"n\\\": 3}'}"};
  const RunResult result = Ask(good, AgentOf({}, form));
  EXPECT_EQ(Text(*result.state.Find("structured_response")), R"({"n":3})");
  EXPECT_EQ(Text(*good.requests[0].Find("response_format")->Find("json_schema")->Find("strict")),
            "true");
  for (const char* wrong :
       {"{'content': '{\\\"n\\\": 3.5}'}", "{'content': 'three'}", "{'content': null}"}) {
    Endpoint bad{wrong};
    EXPECT_EQ(CodeOf(Ask(bad, AgentOf({}, form))), "model.response_format") << wrong;
  }
}

TEST(Agent, asks_for_its_own_form_and_not_for_that_of_its_settings) {
  Endpoint endpoint{"{'content': '{}'}"};
  Ask(endpoint, AgentOf({},
                        "{'response_format': {'type': 'object'}, 'model_kwargs': {'extra_body': "
                        "{'response_format': {'type': 'text'}, 'other': 1}}}"));
  EXPECT_EQ(*endpoint.requests[0].Find("response_format")->Find("type"),
            json::Value("json_schema"));
  EXPECT_EQ(*endpoint.requests[0].Find("other"), json::Value(1));
}

TEST(Agent, takes_a_refusal_for_a_failure) {
  Endpoint endpoint{"{'content': null, 'refusal': 'I will not.'}"};
  const RunResult result = Ask(endpoint, AgentOf({}));
  EXPECT_EQ(CodeOf(result), "model.refused");
  EXPECT_NE(result.error->message.find("I will not."), std::string::npos);
}

TEST(Agent, asks_again_where_that_may_help) {
  Endpoint endpoint{};
  const RunResult result = Ask(endpoint, AgentOf({}, "{'model_kwargs': {'max_retries': 1}}"));
  EXPECT_EQ(CodeOf(result), "model.unreachable");
  EXPECT_EQ(endpoint.requests.size(), 2u);
}

TEST(Agent, may_be_the_tool_of_another) {
  const std::string inner_model = "{'ai_model': 'openai:inner'}";
  workflow::Graph inner = MakeGraph({AgentOf({Echo("e")}, inner_model)});
  const json::Value tool = ToolMarker("ask", inner, {{"output_path", "messages.-1.content"}});
  Endpoint endpoint{Calls({CallOf("1", "ask", "")}), Calls({Echoes("2", "deep")}),
                    "{'content': 'from within'}", "{'content': 'done'}"};
  const RunResult result = Ask(endpoint, AgentOf({tool}));
  EXPECT_EQ(Said(result), "human:hi ai: tool:from within ai:done");
  EXPECT_EQ(result.tokens, 20);
  EXPECT_EQ(*endpoint.requests[1].Find("model"), json::Value("inner"));
  EXPECT_EQ(Text(*endpoint.requests[1].Find("messages")), "[]") << "it has inputs of its own";
}

TEST(Agent, shows_its_work_as_deltas_and_not_as_events) {
  Endpoint endpoint{Calls({Echoes("1", "a")}), "{'content': 'done'}"};
  Recorder recorder;
  std::vector<std::string> deltas;
  Services services;
  services.events = &recorder;
  services.deltas = [&](const Delta& delta) {
    EXPECT_EQ(delta.after, 3u);
    const json::Value json = delta.ToJson();
    deltas.push_back(
        json.Find("event")->as_string() + " " +
        Text(*json.Find(delta.kind == nodes::DeltaKind::kMessage ? "delta" : "progress")));
  };
  Ask(endpoint, AgentOf({Echo("e")}), {}, services);
  EXPECT_EQ(recorder.Lines(),
            "run_started\nstep_started 1\nnode_started agent 1\nnode_finished agent 1\n"
            "run_finished\n");
  const std::vector<std::string> expected{
      R"(tool_progress {"tool":"e","call_id":"1","status":"started"})",
      R"(tool_progress {"tool":"e","call_id":"1","status":"node_finished","node":"echo",)"
      R"("graph":"agent:e"})",
      R"(tool_progress {"tool":"e","call_id":"1","status":"finished"})"};
  EXPECT_EQ(deltas, expected);
}

TEST(Agent, keeps_its_key_from_everyone_but_the_endpoint) {
  StaticCredentials credentials;
  credentials.Add("key", "sk-secret");
  Recorder recorder;
  std::string told;
  Services services;
  services.credentials = &credentials;
  services.events = &recorder;
  services.log = [&](nodes::LogLevel, std::string_view text) { told += text; };
  services.deltas = [&](const Delta& delta) { told += Text(delta.ToJson()); };
  Endpoint endpoint{"{'content': null, 'refusal': 'your key is sk-secret'}"};
  const RunResult result =
      Ask(endpoint, AgentOf({}, "{'model_kwargs': {'api_key': '[[key]]'}}"), {}, services);
  ASSERT_EQ(endpoint.keys.size(), 1u);
  EXPECT_EQ(endpoint.keys[0], "Bearer sk-secret");
  for (const json::Value& event : recorder.events) told += Text(event);
  told += result.error->message + Text(result.state);
  EXPECT_NE(told.find("[[key]]"), std::string::npos);
  EXPECT_EQ(told.find("sk-secret"), std::string::npos) << told;
}

TEST(Agent, fails_with_the_failure_of_its_tool) {
  const json::Value tool =
      ToolMarker("broken", MakeGraph({Native("merge", "MergeNode", "{'items': [1, {}]}")}), {});
  Endpoint endpoint{Calls({CallOf("1", "broken", "{}"), Echoes("2", "a")})};
  const RunResult result = Ask(endpoint, AgentOf({tool, Echo("e")}));
  EXPECT_EQ(CodeOf(result), "nodes.failed");
  EXPECT_TRUE(result.error->message.starts_with("tool 'broken', node 'merge': "))
      << result.error->message;
  EXPECT_EQ(result.error->node_id, "agent");
}

TEST(Agent, lets_no_tool_ask_a_person) {
  const json::Value tool = ToolMarker("ask", MakeGraph({Native("p", "HumanInputNode", "{}")}), {});
  Endpoint endpoint{Calls({CallOf("1", "ask", "{}")})};
  EXPECT_EQ(CodeOf(Ask(endpoint, AgentOf({tool}))), "graph.no_journal");
}

TEST(Agent, ends_its_tools_when_the_run_is_cancelled) {
  const json::Value tool =
      ToolMarker("sleep", MakeGraph({Native("d", "DelayNode", "{'duration_seconds': 60}")}), {});
  Endpoint endpoint{Calls({CallOf("1", "sleep", "{}"), CallOf("2", "sleep", "{}")})};
  std::stop_source stop;
  Services services;
  services.stop = stop.get_token();
  services.deltas = [&](const Delta&) { stop.request_stop(); };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Ask(endpoint, AgentOf({tool}), {}, services).status, RunStatus::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Agent, gives_a_tool_without_a_schema_what_the_peer_gives_it) {
  const json::Value tool = ToolMarker("bare", MakeGraph({Native("n", "NoOpTaskNode", "{}")}),
                                      {{"output_path", "inputs"}});
  Endpoint endpoint{Calls({CallOf("1", "bare", ""),
                           "{'id': '2', 'function': {'name': 'bare', 'arguments': "
                           "'{\\\"kwargs\\\": {\\\"a\\\": 1}, \\\"b\\\": 2}'}}"}),
                    "{'content': 'done'}"};
  EXPECT_EQ(Said(Ask(endpoint, AgentOf({tool}))),
            "human:hi ai: tool:{} tool:{\"kwargs\": {\"a\": 1}} ai:done");
}

// Asks with inputs of its own, and a store.
RunResult Converse(Endpoint& endpoint, nodes::Items& items, const std::string& inputs,
                   const std::string& more = "") {
  Services services;
  services.network = &endpoint;
  services.items = &items;
  return RunIt(MakeGraph({AgentOf({}, "{'use_graph_chat_history': true" + more + "}")}), inputs, {},
               services);
}

std::string SentTexts(const json::Value& request) {
  std::string text;
  for (const json::Value& message : request.Find("messages")->as_array()) {
    text += (text.empty() ? "" : " ") + message.Find("content")->as_string();
  }
  return text;
}

constexpr const char* kHello = "{'message': {'text': 'hello', 'chat_id': 7}, 'platform': 'tg'}";

TEST(Agent, remembers_a_conversation_by_its_key) {
  nodes::MemoryItems items;
  Endpoint endpoint{"{'content': 'hi'}", "{'content': 'yes'}", "{'content': 'who?'}"};
  EXPECT_EQ(CodeOf(Converse(endpoint, items, kHello)), "none");
  EXPECT_EQ(Text(items.All()),
            R"({"agent_chat_history":{"tg:7":{"version":1,"messages":[)"
            R"({"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]}}})");
  Converse(endpoint, items, "{'message': {'text': 'again', 'chat_id': 7}, 'platform': 'tg'}");
  EXPECT_EQ(SentTexts(endpoint.requests[1]), "hello hi again");
  Converse(endpoint, items, "{'message': {'text': 'other', 'chat_id': 8}, 'platform': 'tg'}");
  EXPECT_EQ(SentTexts(endpoint.requests[2]), "other");
  EXPECT_EQ(items.All().Find("agent_chat_history")->as_object().size(), 2u);
}

TEST(Agent, adds_to_its_memory_only_what_is_not_there) {
  nodes::MemoryItems items;
  Endpoint endpoint{"{'content': 'hi'}", "{'content': 'yes'}"};
  Converse(endpoint, items, kHello);
  // The history comes in a second time, with one more turn.
  Converse(endpoint, items,
           "{'history': [{'role': 'user', 'content': 'hello'}, {'role': 'assistant', 'content': "
           "'hi'}], 'message': {'text': 'more', 'chat_id': 7}, 'platform': 'tg'}",
           ", 'max_messages': 3");
  EXPECT_EQ(SentTexts(endpoint.requests[1]), "hello hi more");
  EXPECT_EQ(Text(*items.All().Find("agent_chat_history")->Find("tg:7")),
            R"({"version":2,"messages":[{"role":"user","content":"hello"},)"
            R"({"role":"assistant","content":"hi"},{"role":"user","content":"more"},)"
            R"({"role":"assistant","content":"yes"}]})");
}

TEST(Agent, keeps_its_memory_where_its_configuration_says) {
  nodes::MemoryItems items;
  Endpoint endpoint{"{'content': 'hi'}"};
  Converse(endpoint, items, "{'message': 'hello', 'who': 'ann'}",
           ", 'history_namespace': [' a ', 'b'], 'history_key_candidates': ['{{inputs.none}}', "
           "'{{inputs.who}} x', 'u-{{inputs.who}}'], 'history_key_template': "
           "'v1:{{conversation_key}}', 'history_value_field': 'text'");
  EXPECT_EQ(Text(items.All()), R"({"a/b":{"v1:u-ann":{"version":1,"messages":[)"
                               R"({"role":"user","text":"hello","content":"hello"},)"
                               R"({"role":"assistant","text":"hi","content":"hi"}]}}})");
}

TEST(Agent, goes_on_without_a_memory_when_nobody_can_be_told) {
  nodes::MemoryItems items;
  Endpoint endpoint{"{'content': 'hi'}"};
  EXPECT_EQ(CodeOf(Converse(endpoint, items, "{'message': 'hello'}")), "none");
  EXPECT_TRUE(items.All().empty());
  Endpoint none{};
  EXPECT_EQ(CodeOf(Ask(none, AgentOf({}, "{'use_graph_chat_history': true}"))), "nodes.no_items");
}

TEST(LlmNode, sends_one_message) {
  Endpoint endpoint{"{'content': 'ok'}"};
  const RunResult result = Ask(
      endpoint,
      AgentOf({}, "{'input_text': ' a ', 'instruction': 'do', 'user_message': 'u'}", "LLMNode"));
  EXPECT_EQ(Said(result),
            "human:Instruction:\ndo\n\nText:\nUser message:\nu\n\nDraft reply:\na ai:ok");
  Endpoint none{};
  EXPECT_EQ(Said(Ask(none, AgentOf({}, "{'input_text': ' '}", "LLMNode"))), "");
  EXPECT_TRUE(none.requests.empty());
}

std::string PlanRefusal(workflow::Node agent) {
  const auto plan = MakePlan(MakeGraph({std::move(agent)}));
  return plan ? "accepted" : std::string(plan.error().code.name) + " " + plan.error().message;
}

TEST(Agent, is_refused_before_it_runs_for_what_cannot_be_done) {
  for (const char* config :
       {"{'predefined_tools': ['web_search']}", "{'use_chatkit_widget_tools': true}",
        "{'mcp_servers': {'a': {'command': 'x'}}}", "{'history_key_candidates': 'x'}",
        "{'response_format': {'type': 'strin'}}", "{'response_format': {'$dynamicRef': '#x'}}"}) {
    const std::string refusal = PlanRefusal(AgentOf({}, config));
    EXPECT_TRUE(refusal.starts_with("nodes.config ")) << config << ": " << refusal;
  }
  EXPECT_EQ(PlanRefusal(AgentOf({}, "{'predefined_tools': [], 'mcp_servers': {}}")), "accepted");
  const workflow::Graph graph = MakeGraph({Set("a", "{}")});
  for (const json::Object& more :
       {json::Object{{"output_path", " "}}, json::Object{{"args_schema", "text"}},
        json::Object{{"args_schema", J("{'type': 'strin'}")}}}) {
    const std::string refusal = PlanRefusal(AgentOf({ToolMarker("t", graph, more)}));
    EXPECT_TRUE(refusal.starts_with("nodes.config Failed to construct node 'agent'")) << refusal;
  }
}

std::string Selected(const std::string& path, const std::string& state) {
  PlannedTool tool{*json::Schema::Compile(json::Value(true)), false, nullptr, path, {}};
  std::string_view rest = path;
  for (;;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    tool.segments.emplace_back(rest.substr(0, dot));
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  const auto selected = SelectOutput(J(state), tool, "t");
  return selected ? Text(*selected) : selected.error().message;
}

TEST(SelectOutput, follows_a_path_in_the_words_of_the_peer) {
  const std::string state = "{'a': {'b': [1, {'c': 2}]}}";
  EXPECT_EQ(Selected("a.b.1.c", state), "2");
  EXPECT_EQ(Selected("a.b.-2", state), "1");
  const std::string prefix = "Workflow tool 't' output_path '";
  EXPECT_EQ(Selected("a.x", state), prefix + "a.x' could not resolve segment 'x'.");
  EXPECT_EQ(Selected("a.b.x", state),
            prefix + "a.b.x' encountered a list and requires an integer segment.");
  EXPECT_EQ(Selected("a.b.2", state), prefix + "a.b.2' index 2 is out of range.");
  EXPECT_EQ(Selected("a.b.-3", state), prefix + "a.b.-3' index -3 is out of range.");
  EXPECT_EQ(Selected("a.b.0.z", state), prefix + "a.b.0.z' cannot descend into int.");
}

}  // namespace
}  // namespace caisson::graph
