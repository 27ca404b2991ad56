// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_answer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "errors/model.h"
#include "json/reader.h"
#include "json/truth.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMaxLabel = 256;  // of an id or a name
constexpr std::size_t kMaxWords = 1000;
constexpr std::int64_t kMaxTokens = 1'000'000'000'000;  // sums of them stay within int64

std::unexpected<Status> Malformed(const std::string& what) {
  return Fail(errors::kModelMalformed, "the endpoint's answer is not one of a chat: " + what);
}

// "" when it is absent or null.
Result<std::string> Text(const json::Value& from, std::string_view member) {
  const json::Value* value = from.Find(member);
  if (value == nullptr || value->is_null()) return std::string();
  if (value->is_string()) return value->as_string();
  return Malformed(std::string(member) + " must be a string, not " + std::string(PyType(*value)));
}

// Ids and names are no place for books.
Result<std::string> Label(const json::Value& from, std::string_view member) {
  CAISSON_ASSIGN(std::string text, Text(from, member));
  if (text.size() > kMaxLabel) {
    return Malformed(std::string(member) + " has more than " + std::to_string(kMaxLabel) +
                     " bytes");
  }
  return text;
}

std::string Cut(std::string_view text) { return Shortened(text, kMaxWords); }

Result<std::int64_t> Count(const json::Value& usage, std::string_view member) {
  const json::Value* count = usage.Find(member);
  if (count == nullptr || count->is_null()) return 0;
  if (count->is_int() && count->as_int() >= 0 && count->as_int() <= kMaxTokens) {
    return count->as_int();
  }
  return Malformed("usage." + std::string(member) + " must be a whole number from 0 to " +
                   std::to_string(kMaxTokens));
}

Result<void> ReadUsage(const json::Value& document, std::optional<ChatUsage>& usage) {
  const json::Value* given = document.Find("usage");
  if (given == nullptr || given->is_null()) return {};
  if (!given->is_object()) return Malformed("usage must be an object");
  ChatUsage counted;
  CAISSON_ASSIGN(counted.input, Count(*given, "prompt_tokens"));
  CAISSON_ASSIGN(counted.output, Count(*given, "completion_tokens"));
  CAISSON_ASSIGN(counted.total, Count(*given, "total_tokens"));
  usage = counted;
  return {};
}

Result<void> ReadHead(const json::Value& document, ChatAnswer& answer) {
  if (!document.is_object()) {
    return Malformed("it must be an object, not " + std::string(PyType(document)));
  }
  if (const std::string words = ErrorWords(document); !words.empty()) {
    return Fail(errors::kModelFailed, "the endpoint broke off with an error: " + words);
  }
  for (const auto& [member, label] :
       {std::pair{"model", &answer.model}, std::pair{"id", &answer.id},
        std::pair{"system_fingerprint", &answer.fingerprint}}) {
    CAISSON_ASSIGN(std::string text, Label(document, member));
    if (!text.empty()) *label = std::move(text);
  }
  return ReadUsage(document, answer.usage);
}

// nullptr: there is none.
Result<const json::Value*> FirstChoice(const json::Value& document) {
  const json::Value* choices = document.Find("choices");
  if (choices == nullptr || choices->is_null()) return nullptr;
  if (!choices->is_array()) return Malformed("choices must be an array");
  for (const json::Value& choice : choices->as_array()) {
    if (!choice.is_object()) return Malformed("a choice must be an object");
    const json::Value* index = choice.Find("index");
    if (index == nullptr || index->is_null() || *index == json::Value(0)) return &choice;
  }
  return nullptr;
}

// Content may also be a list of parts, of which the texts count.
Result<std::string> Content(const json::Value& message) {
  const json::Value* content = message.Find("content");
  if (content == nullptr || !content->is_array()) return Text(message, "content");
  std::string text;
  for (const json::Value& part : content->as_array()) {
    CAISSON_ASSIGN(const std::string piece, Text(part, "text"));
    text += piece;
  }
  return text;
}

Result<ChatCall> ReadCall(const json::Value& call) {
  const json::Value* function = call.Find("function");
  if (function == nullptr || !function->is_object()) {
    return Malformed("a tool call must have a function");
  }
  ChatCall read;
  CAISSON_ASSIGN(read.id, Label(call, "id"));
  CAISSON_ASSIGN(read.name, Label(*function, "name"));
  CAISSON_ASSIGN(read.arguments, Text(*function, "arguments"));
  return read;
}

Result<void> ReadCalls(const json::Value& message, std::vector<ChatCall>& calls) {
  const json::Value* given = message.Find("tool_calls");
  if (given == nullptr || given->is_null()) return {};
  if (!given->is_array()) return Malformed("tool_calls must be an array");
  if (given->as_array().size() > kMaxToolCalls) {
    return Fail(errors::kModelTooLarge, "the model made more than " +
                                            std::to_string(kMaxToolCalls) + " tool calls at once");
  }
  for (const json::Value& call : given->as_array()) {
    CAISSON_ASSIGN(ChatCall read, ReadCall(call));
    calls.push_back(std::move(read));
  }
  return {};
}

std::unexpected<Status> TooLarge() {
  return Fail(errors::kModelTooLarge,
              "the answer has more than " + std::to_string(kMaxAnswerText) +
                  " bytes of text; ask for less, for instance by max_tokens");
}

// A call needs an id and a name to be answered.
Result<ChatAnswer> Finished(ChatAnswer answer) {
  std::size_t number = 0;
  for (ChatCall& call : answer.calls) {
    ++number;
    if (call.name.empty()) return Malformed("a tool call names no tool");
    if (call.id.empty()) call.id = "call_" + std::to_string(number);
  }
  return answer;
}

}  // namespace

std::string ErrorWords(const json::Value& document) {
  const json::Value* error = document.Find("error");
  if (error == nullptr || !json::Truth(*error)) return {};
  if (error->is_string()) return Cut(error->as_string());
  const json::Value* message = error->Find("message");
  if (message != nullptr && message->is_string() && !message->as_string().empty()) {
    return Cut(message->as_string());
  }
  return Cut(PyRepr(*error));
}

Result<ChatAnswer> ReadCompletion(const json::Value& document) {
  ChatAnswer answer;
  CAISSON_TRY(ReadHead(document, answer));
  CAISSON_ASSIGN(const json::Value* choice, FirstChoice(document));
  if (choice == nullptr) return Malformed("it has no choices");
  const json::Value* message = choice->Find("message");
  if (message == nullptr || !message->is_object()) return Malformed("its choice has no message");
  CAISSON_ASSIGN(answer.finish_reason, Label(*choice, "finish_reason"));
  CAISSON_ASSIGN(answer.content, Content(*message));
  CAISSON_ASSIGN(answer.refusal, Text(*message, "refusal"));
  CAISSON_TRY(ReadCalls(*message, answer.calls));
  std::size_t text = answer.content.size() + answer.refusal.size();
  for (const ChatCall& call : answer.calls) text += call.arguments.size();
  if (text > kMaxAnswerText) return TooLarge();
  return Finished(std::move(answer));
}

Result<void> ChunkReader::Read(std::string_view data) {
  if (is_done_) return {};
  if (Strip(data) == "[DONE]") {
    is_done_ = true;
    return {};
  }
  const auto document = json::Read(data, {.max_depth = 100});
  if (!document) {
    return Malformed("a part of its stream is no JSON: " + document.error().message);
  }
  CAISSON_TRY(ReadHead(*document, answer_));
  CAISSON_ASSIGN(const json::Value* choice, FirstChoice(*document));
  return choice == nullptr ? Result<void>() : Choice(*choice);
}

Result<void> ChunkReader::Choice(const json::Value& choice) {
  has_choice_ = true;
  CAISSON_ASSIGN(std::string reason, Label(choice, "finish_reason"));
  if (!reason.empty()) answer_.finish_reason = std::move(reason);
  const json::Value* delta = choice.Find("delta");
  if (delta == nullptr || delta->is_null()) return {};
  if (!delta->is_object()) return Malformed("a delta must be an object");
  return Delta(*delta);
}

Result<void> ChunkReader::Delta(const json::Value& delta) {
  CAISSON_ASSIGN(std::string content, Append(delta, "content", answer_.content));
  if (!content.empty()) Tell("content", std::move(content));
  CAISSON_ASSIGN(std::string refusal, Append(delta, "refusal", answer_.refusal));
  if (!refusal.empty()) Tell("refusal", std::move(refusal));
  const json::Value* calls = delta.Find("tool_calls");
  return calls == nullptr || calls->is_null() ? Result<void>() : Calls(*calls);
}

Result<void> ChunkReader::Calls(const json::Value& calls) {
  if (!calls.is_array()) return Malformed("tool_calls must be an array");
  for (const json::Value& call : calls.as_array()) {
    const json::Value* index = call.Find("index");
    // Without an index, an id begins a call.
    const json::Value* id = call.Find("id");
    const bool begins = answer_.calls.empty() || (id != nullptr && !id->is_null());
    std::size_t position = begins ? answer_.calls.size() : answer_.calls.size() - 1;
    if (index != nullptr && !index->is_null()) {
      if (!index->is_int() || index->as_int() < 0)
        return Malformed("a tool call has a wrong index");
      position = static_cast<std::size_t>(
          std::min<std::int64_t>(index->as_int(), static_cast<std::int64_t>(kMaxToolCalls)));
    }
    CAISSON_TRY(Call(call, position));
  }
  return {};
}

Result<void> ChunkReader::Call(const json::Value& call, std::size_t position) {
  if (position >= kMaxToolCalls) {
    return Fail(errors::kModelTooLarge, "the model made more than " +
                                            std::to_string(kMaxToolCalls) + " tool calls at once");
  }
  if (answer_.calls.size() <= position) answer_.calls.resize(position + 1);
  ChatCall& known = answer_.calls[position];
  json::Object told{{"index", static_cast<std::int64_t>(position)}};
  CAISSON_ASSIGN(std::string id, Label(call, "id"));
  if (!id.empty()) {
    known.id = id;
    told.Set("id", std::move(id));
  }
  const json::Value* function = call.Find("function");
  if (function == nullptr || function->is_null()) return {};
  if (!function->is_object()) return Malformed("the function of a tool call must be an object");
  CAISSON_ASSIGN(std::string name, Label(*function, "name"));
  if (!name.empty()) {
    known.name = name;
    told.Set("name", std::move(name));
  }
  CAISSON_ASSIGN(std::string arguments, Append(*function, "arguments", known.arguments));
  if (!arguments.empty()) told.Set("arguments", std::move(arguments));
  Tell("tool_call", std::move(told));
  return {};
}

Result<std::string> ChunkReader::Append(const json::Value& from, std::string_view member,
                                        std::string& to) {
  CAISSON_ASSIGN(std::string piece, Text(from, member));
  text_ += piece.size();
  if (text_ > kMaxAnswerText) return TooLarge();
  to += piece;
  return piece;
}

void ChunkReader::Tell(std::string_view member, json::Value value) {
  has_begun_ = true;
  if (on_delta_) on_delta_(json::Object{{std::string(member), std::move(value)}});
}

Result<ChatAnswer> ChunkReader::Finish() {
  if (answer_.finish_reason.empty() && !(is_done_ && has_choice_)) {
    if (is_done_) return Malformed("its stream has no choices");
    return Fail(errors::kModelCut,
                "the endpoint's stream ended before the answer did; nothing of it counts");
  }
  return Finished(std::move(answer_));
}

}  // namespace caisson::nodes
