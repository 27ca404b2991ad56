// SPDX-License-Identifier: Apache-2.0
#include "nodes/agent_loop.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "errors/model.h"
#include "json/reader.h"
#include "json/writer.h"
#include "nodes/chat_client.h"
#include "nodes/chat_messages.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

// As the peer's library does: titles of schemas are nothing to a model. A property may be named so.
json::Value WithoutTitles(const json::Value& schema, bool is_properties = false) {
  if (schema.is_array()) {
    json::Array items;
    for (const json::Value& item : schema.as_array()) items.push_back(WithoutTitles(item));
    return items;
  }
  if (!schema.is_object()) return schema;
  json::Object kept;
  for (const auto& [key, value] : schema.as_object()) {
    if (key == "title" && !is_properties && value.is_string()) continue;
    const bool is_data = !is_properties &&
                         (key == "default" || key == "enum" || key == "const" || key == "examples");
    kept.Set(key, is_data ? value : WithoutTitles(value, !is_properties && key == "properties"));
  }
  return kept;
}

json::Array WireTools(std::span<const ToolInfo> tools) {
  json::Array wire;
  for (const ToolInfo& tool : tools) {
    json::Value parameters = WithoutTitles(tool.parameters);
    parameters.mutable_object().Erase("description");
    wire.push_back(json::Object{{"type", "function"},
                                {"function", json::Object{{"name", tool.name},
                                                          {"description", tool.description},
                                                          {"parameters", std::move(parameters)}}}});
  }
  return wire;
}

// Lists of such parts are content as they are.
bool IsContentPart(const json::Value& part) {
  static constexpr std::string_view kTypes[] = {
      "text",     "image_url", "image", "json", "search_result", "custom_tool_call_output",
      "document", "file"};
  const json::Value* type = part.Find("type");
  return type != nullptr && type->is_string() &&
         std::ranges::find(kTypes, type->as_string()) != std::end(kTypes);
}

Result<json::Value> ToolContent(const json::Value& output) {
  if (output.is_string()) return output;
  if (output.is_array() && std::ranges::all_of(output.as_array(), IsContentPart)) return output;
  CAISSON_ASSIGN(std::string text, json::Write(output, {.spaced = true}));
  return json::Value(std::move(text));
}

class Loop {
 public:
  Loop(Host& host, const AgentSetup& setup, json::Array messages)
      : host_(host), setup_(setup), tools_(host.Tools()), messages_(std::move(messages)) {}

  Result<json::Value> Run() {
    for (int turn = 0; turn < kMaxTurns; ++turn) {
      CAISSON_ASSIGN(const ChatAnswer answer, Ask());
      CAISSON_TRY(CheckEnd(answer));
      messages_.push_back(AiMessage(answer));
      if (answer.calls.empty()) return Finish(answer);
      CAISSON_ASSIGN(const bool is_reply, RunCalls(answer.calls));
      if (is_reply) return Update();
    }
    return Fail(errors::kModelTurns,
                "the agent called its model " + std::to_string(kMaxTurns) +
                    " times without coming to an end; make its task smaller, or its tools clearer");
  }

 private:
  Result<ChatAnswer> Ask() {
    json::Object request{{"model", setup_.settings.model},
                         {"messages", ToWire(setup_.system_prompt, messages_)}};
    if (setup_.format) request.Set("response_format", setup_.format->request);
    if (!tools_.empty()) request.Set("tools", WireTools(tools_));
    const std::size_t asked = TextBytes(*request.Find("messages"));
    CAISSON_ASSIGN(ChatAnswer answer, AskModel(host_, setup_.settings, std::move(request)));
    const ChatUsage used = answer.usage.value_or(Estimate(asked, answer));
    CAISSON_TRY(host_.CountTokens(used.input, used.output));
    return answer;
  }

  // A budget holds for endpoints that do not tell what they used, too.
  static ChatUsage Estimate(std::size_t asked, const ChatAnswer& answer) {
    constexpr std::size_t kBytesPerToken = 4;
    std::size_t said = answer.content.size();
    for (const ChatCall& call : answer.calls) said += call.name.size() + call.arguments.size();
    return {static_cast<std::int64_t>(asked / kBytesPerToken),
            static_cast<std::int64_t>(said / kBytesPerToken), 0};
  }

  static std::size_t TextBytes(const json::Value& value) {
    if (value.is_string()) return value.as_string().size();
    std::size_t bytes = 0;
    if (value.is_array()) {
      for (const json::Value& item : value.as_array()) bytes += TextBytes(item);
    } else if (value.is_object()) {
      for (const auto& [key, member] : value.as_object()) bytes += TextBytes(member);
    }
    return bytes;
  }

  Result<void> CheckEnd(const ChatAnswer& answer) {
    if (!answer.refusal.empty()) {
      return Fail(errors::kModelRefused,
                  "the model refused to answer: " + Shortened(answer.refusal, 1000));
    }
    if (answer.finish_reason == "content_filter") {
      return Fail(errors::kModelContentFilter,
                  "the endpoint's content filter withheld the model's answer");
    }
    if (answer.finish_reason == "length") {
      host_.Log(LogLevel::kWarning,
                "the model's answer was cut off at its limit of tokens; max_tokens raises it");
    }
    return {};
  }

  Result<json::Value> Finish(const ChatAnswer& answer) {
    if (!setup_.format) return Update();
    auto value = json::Read(answer.content, {.max_depth = 200});
    if (!value) {
      return Fail(errors::kModelResponseFormat,
                  "the model's answer is no JSON, though response_format asks for it: " +
                      value.error().message);
    }
    CAISSON_ASSIGN(const json::Verdict verdict, setup_.format->schema.Check(*value));
    if (!verdict.ok()) {
      return Fail(errors::kModelResponseFormat,
                  "the model's answer does not fit response_format: " + verdict.Text());
    }
    structured_ = *std::move(value);
    return Update();
  }

  json::Value Update() {
    json::Object update{{"messages", std::move(messages_)}};
    if (structured_) update.Set("structured_response", *std::move(structured_));
    return update;
  }

  std::optional<std::size_t> FindTool(const std::string& name) const {
    // Of two with one name the last one counts.
    for (std::size_t i = tools_.size(); i-- > 0;) {
      if (tools_[i].name == name) return i;
    }
    return std::nullopt;
  }

  std::string ToolNames() const {
    std::string names;
    for (const ToolInfo& tool : tools_) names += (names.empty() ? "" : ", ") + tool.name;
    return names;
  }

  // Appends a message for each call, in the order of the calls. True when the outputs are the
  // reply.
  Result<bool> RunCalls(const std::vector<ChatCall>& calls) {
    std::vector<json::Value> answers(calls.size());
    std::vector<ToolRun> runs;
    std::vector<std::size_t> places;  // of the runs among the calls
    bool is_broken = false;
    bool is_reply = true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto tool = FindTool(calls[i].name);
      auto arguments = ReadArguments(calls[i]);
      if (!arguments) {
        is_broken = true;
        is_reply = false;
        answers[i] = ToolMessage(calls[i], BrokenText(calls[i]), true);
      } else if (!tool) {
        is_broken = true;
        answers[i] = ToolMessage(
            calls[i],
            "Error: " + calls[i].name + " is not a valid tool, try one of [" + ToolNames() + "].",
            true);
      } else {
        runs.push_back({*tool, calls[i].id, *std::move(arguments)});
        places.push_back(i);
      }
    }
    CAISSON_ASSIGN(const std::vector<ToolOutcome> outcomes, host_.RunTools(runs));
    // As in the peer, a call of a tool that does not exist changes nothing in this.
    is_reply = is_reply && !runs.empty();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const bool fits = outcomes[i].misfit.empty();
      is_broken = is_broken || !fits;
      is_reply = is_reply && fits && tools_[runs[i].tool].return_direct;
      CAISSON_ASSIGN(answers[places[i]], Answer(calls[places[i]], runs[i], outcomes[i]));
    }
    std::ranges::move(answers, std::back_inserter(messages_));
    CAISSON_TRY(CountBroken(is_broken, calls));
    return is_reply;
  }

  static std::string BrokenText(const ChatCall& call) {
    return "Error: the arguments of " + call.name +
           " must be one JSON object, and are not. Please fix the arguments and call it again.";
  }

  static Result<json::Value> Answer(const ChatCall& call, const ToolRun& run,
                                    const ToolOutcome& outcome) {
    if (!outcome.misfit.empty()) {
      return ToolMessage(call,
                         "Error invoking tool '" + call.name + "' with kwargs " +
                             Shortened(PyRepr(run.arguments), 2000) + " with error:\n " +
                             outcome.misfit + "\n Please fix the error and try again.",
                         true);
    }
    CAISSON_ASSIGN(json::Value content, ToolContent(outcome.output));
    return ToolMessage(call, std::move(content), false);
  }

  Result<void> CountBroken(bool is_broken, const std::vector<ChatCall>& calls) {
    broken_ = is_broken ? broken_ + 1 : 0;
    if (broken_ <= kMaxBrokenTurns) return {};
    return Fail(errors::kModelToolArguments,
                "the model called tools that do not exist, or with arguments that do not fit, " +
                    std::to_string(broken_) + " times in a row, the last time '" +
                    calls.front().name + "'; it was told each time: " + LastError());
  }

  std::string LastError() const {
    for (auto message = messages_.rbegin(); message != messages_.rend(); ++message) {
      if (*message->Find("status") == json::Value("error")) {
        return Shortened(message->Find("content")->as_string(), 1000);
      }
    }
    return {};
  }

  Host& host_;
  const AgentSetup& setup_;
  const std::span<const ToolInfo> tools_;
  json::Array messages_;
  std::optional<json::Value> structured_;
  int broken_ = 0;
};

}  // namespace

Result<json::Value> RunAgentLoop(Host& host, const AgentSetup& setup, json::Array messages) {
  return Loop(host, setup, std::move(messages)).Run();
}

}  // namespace caisson::nodes
