// SPDX-License-Identifier: Apache-2.0
// What a chat endpoint of the OpenAI form answers, put together from a whole document or from the
// chunks of a stream. Endpoints are strangers: every member is checked, everything has a bound.
// Only the first choice counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::nodes {

inline constexpr std::size_t kMaxAnswerText = 8u << 20;  // content, refusal and arguments together
inline constexpr std::size_t kMaxToolCalls = 64;         // in one answer

struct ChatUsage {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t total = 0;
};

struct ChatCall {
  std::string id;
  std::string name;
  std::string arguments;  // as the model wrote it; not known to be JSON
};

struct ChatAnswer {
  std::string content;
  std::string refusal;
  std::vector<ChatCall> calls;
  std::string finish_reason;
  std::string model, id, fingerprint;
  std::optional<ChatUsage> usage;
};

// From the document of an answer that was not streamed. Fails with model.malformed,
// model.too_large, or as ErrorOf says.
Result<ChatAnswer> ReadCompletion(const json::Value& document);

// What a part of a stream adds, for whoever shows it at once.
using OnDelta = std::function<void(json::Value delta)>;

class ChunkReader {
 public:
  explicit ChunkReader(const OnDelta& on_delta) : on_delta_(on_delta) {}

  // The data of one event. Fails as ReadCompletion does.
  Result<void> Read(std::string_view data);
  // When the stream has ended. Fails with model.cut when it ended too early, or model.malformed.
  Result<ChatAnswer> Finish();
  // Something of the answer has been handed on.
  bool has_begun() const { return has_begun_; }

 private:
  Result<void> Choice(const json::Value& choice);
  Result<void> Delta(const json::Value& delta);
  Result<void> Calls(const json::Value& calls);
  Result<void> Call(const json::Value& call, std::size_t position);
  Result<std::string> Append(const json::Value& from, std::string_view member, std::string& to);
  void Tell(std::string_view member, json::Value value);

  const OnDelta& on_delta_;
  ChatAnswer answer_;
  std::size_t text_ = 0;
  bool has_choice_ = false;
  bool is_done_ = false;
  bool has_begun_ = false;
};

// The error that a document tells of, in the endpoint's own words, cut: "{"error": {"message"}}" in
// its usual forms. Empty when it tells of none.
std::string ErrorWords(const json::Value& document);

}  // namespace caisson::nodes
