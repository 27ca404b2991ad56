// SPDX-License-Identifier: Apache-2.0
// Which endpoint an agent asks, and how: ai_model and model_kwargs as the peer's chat models take
// them. Only endpoints of the OpenAI form are spoken to. Pure functions.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"
#include "http/headers.h"
#include "json/value.h"

namespace caisson::nodes {

struct ChatSettings {
  std::string url;  // of the completions
  std::string model;
  std::string api_key;    // empty: none is sent
  http::Headers headers;  // beside it
  json::Object body;      // members of each request beside the messages and what they need
  bool stream = true;
  bool stream_usage = true;
  int retries = 2;
  std::chrono::milliseconds patience{300'000};  // without a byte
};

// `model_kwargs` is an object. Fails with model.provider or model.setting, naming the member and
// showing no value.
Result<ChatSettings> ReadChatSettings(const std::string& ai_model,
                                      const json::Object& model_kwargs);

}  // namespace caisson::nodes
