// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_settings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/utf8.h"
#include "errors/model.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kOpenAi = "openai";
constexpr std::string_view kDefaultBase = "https://api.openai.com/v1";
constexpr double kMaxPatience = 3600;

// Names that tell by themselves whose they are.
constexpr std::string_view kOpenAiModels[] = {"gpt-", "o1", "o3", "o4", "chatgpt"};

// Members that go into the request as they are.
constexpr std::string_view kNumbers[] = {"temperature",      "top_p", "frequency_penalty",
                                         "presence_penalty", "seed",  "top_logprobs"};
constexpr std::string_view kPassed[] = {"stop",
                                        "logit_bias",
                                        "logprobs",
                                        "reasoning_effort",
                                        "verbosity",
                                        "service_tier",
                                        "user",
                                        "metadata",
                                        "store",
                                        "parallel_tool_calls",
                                        "tool_choice",
                                        "prediction",
                                        "prompt_cache_key",
                                        "safety_identifier"};
// What the node itself writes into a request.
constexpr std::string_view kOwn[] = {"messages", "model", "stream",   "stream_options",
                                     "tools",    "n",     "functions"};
// Keys of other providers that a shared configuration may hold, read over as in the peer.
constexpr std::string_view kOtherKeys[] = {
    "anthropic_api_key",  "azure_openai_api_key", "cohere_api_key", "deepseek_api_key",
    "fireworks_api_key",  "google_api_key",       "groq_api_key",   "mistralai_api_key",
    "perplexity_api_key", "together_api_key",     "xai_api_key"};
constexpr std::string_view kClosedHeaders[] = {
    "host", "content-length", "content-type", "transfer-encoding", "connection", "accept"};

template <typename List>
bool Has(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

std::unexpected<Status> Wrong(std::string_view member, const std::string& what) {
  return Fail(errors::kModelSetting, "model_kwargs." + std::string(member) + " " + what);
}

Result<void> ReadModel(const std::string& ai_model, const json::Object& kwargs,
                       ChatSettings& settings) {
  const std::string_view name = Strip(ai_model);
  std::string provider;
  settings.model = name;
  if (const json::Value* given = kwargs.Find("model_provider"); given != nullptr) {
    if (given->is_string()) provider = Strip(given->as_string());
  }
  const std::size_t colon = name.find(':');
  const auto tells = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (provider.empty() && colon != std::string_view::npos) {
    provider = Lower(Strip(name.substr(0, colon)));
    settings.model = Strip(name.substr(colon + 1));
  } else if (provider.empty() && std::ranges::any_of(kOpenAiModels, tells)) {
    provider = kOpenAi;
  }
  if (provider == kOpenAi && !settings.model.empty()) return {};
  return Fail(errors::kModelProvider,
              "ai_model " + PyReprText(Shortened(ai_model, 200)) +
                  (provider == kOpenAi ? " names no model"
                   : provider.empty()  ? " names no provider"
                                       : " names the provider " + PyReprText(provider)) +
                  "; only endpoints of the OpenAI form are spoken to: write 'openai:MODEL', with "
                  "base_url in model_kwargs for one that is not OpenAI's");
}

class Reader {
 public:
  explicit Reader(ChatSettings& settings) : settings_(settings) {}

  Result<void> Member(const std::string& name, const json::Value& value) {
    if (value.is_null() || name == "model_provider" || Has(kOtherKeys, name)) return {};
    if (name == "api_key" || name == "openai_api_key") return Key(name, value);
    if (name == "base_url" || name == "openai_api_base") return Base(name, value);
    if (Has(kNumbers, name)) return Number(name, value);
    if (Has(kPassed, name)) return Pass(name, value);
    if (name == "max_tokens" || name == "max_completion_tokens") return Most(name, value);
    if (name == "timeout" || name == "request_timeout") return Patience(name, value);
    if (name == "max_retries") return Retries(name, value);
    if (name == "streaming") return Flag(name, value, settings_.stream, false);
    if (name == "disable_streaming") return Flag(name, value, settings_.stream, true);
    if (name == "stream_usage") return Flag(name, value, settings_.stream_usage, false);
    if (name == "organization" || name == "openai_organization") {
      return Header(name, "OpenAI-Organization", value);
    }
    if (name == "default_headers") return Headers(value);
    if (name == "model_kwargs" || name == "extra_body") return Body(name, value);
    if (name == "n" && value == json::Value(1)) return {};
    if (name == "use_responses_api" && value == json::Value(false)) return {};
    if (name == "stop_sequences") return Pass("stop", value);
    return Wrong(name,
                 "is not supported here; leave it out, or put it into extra_body if the "
                 "endpoint takes it as a member of its requests");
  }

 private:
  Result<void> Key(const std::string& name, const json::Value& value) {
    if (!value.is_string()) return Wrong(name, "must be a string, best a [[credential]]");
    const std::string_view key = Strip(value.as_string());
    if (!http::IsFieldValue(key)) return Wrong(name, "holds characters that no key has");
    // api_key wins.
    if (!key.empty() && (settings_.api_key.empty() || name == "api_key")) settings_.api_key = key;
    return {};
  }

  Result<void> Base(const std::string& name, const json::Value& value) {
    if (!value.is_string()) return Wrong(name, "must be a string with a URL");
    std::string_view base = Strip(value.as_string());
    while (base.ends_with('/')) base.remove_suffix(1);
    if (base.find_first_of("?#") != std::string_view::npos) {
      return Wrong(name, "must be a URL without a query or fragment");
    }
    if (!base.empty()) settings_.url = std::string(base) + "/chat/completions";
    return {};
  }

  Result<void> Pass(const std::string& name, const json::Value& value) {
    settings_.body.Set(name, value);
    return {};
  }

  Result<void> Number(const std::string& name, const json::Value& value) {
    if (!value.is_number()) return Wrong(name, "must be a number");
    return Pass(name, value);
  }

  Result<void> Most(const std::string& name, const json::Value& value) {
    if (!value.is_int() || value.as_int() < 1) return Wrong(name, "must be a whole number from 1");
    return Pass("max_completion_tokens", value);
  }

  Result<void> Patience(const std::string& name, const json::Value& value) {
    const double seconds = value.is_number() ? value.ToDouble() : 0;
    if (!(seconds > 0) || seconds > kMaxPatience) {
      return Wrong(name, "must be a number of seconds above 0, at most 3600");
    }
    settings_.patience = std::chrono::milliseconds(std::max(1L, std::lround(seconds * 1000)));
    return {};
  }

  Result<void> Retries(const std::string& name, const json::Value& value) {
    if (!value.is_int() || value.as_int() < 0 || value.as_int() > 10) {
      return Wrong(name, "must be a whole number from 0 to 10");
    }
    settings_.retries = static_cast<int>(value.as_int());
    return {};
  }

  Result<void> Flag(const std::string& name, const json::Value& value, bool& flag, bool negated) {
    if (!value.is_bool()) return Wrong(name, "must be true or false");
    flag = value.as_bool() != negated;
    return {};
  }

  Result<void> Header(std::string_view member, const std::string& name, const json::Value& value) {
    if (!value.is_string() || !http::IsFieldValue(value.as_string()) || !http::IsToken(name) ||
        Has(kClosedHeaders, Lower(name))) {
      return Wrong(member,
                   "holds a header that cannot be sent: " + PyReprText(Shortened(name, 100)));
    }
    settings_.headers.Set(name, value.as_string());
    return {};
  }

  Result<void> Headers(const json::Value& value) {
    if (!value.is_object()) return Wrong("default_headers", "must be an object of strings");
    for (const auto& [name, text] : value.as_object()) {
      CAISSON_TRY(Header("default_headers", name, text));
    }
    return {};
  }

  Result<void> Body(const std::string& name, const json::Value& value) {
    if (!value.is_object()) return Wrong(name, "must be an object");
    for (const auto& [key, member] : value.as_object()) {
      if (Has(kOwn, key)) return Wrong(name + "." + key, "is written by the node itself");
      settings_.body.Set(key, member);
    }
    return {};
  }

  ChatSettings& settings_;
};

}  // namespace

Result<ChatSettings> ReadChatSettings(const std::string& ai_model,
                                      const json::Object& model_kwargs) {
  ChatSettings settings;
  settings.url = std::string(kDefaultBase) + "/chat/completions";
  CAISSON_TRY(ReadModel(ai_model, model_kwargs, settings));
  Reader reader(settings);
  for (const auto& [name, value] : model_kwargs) CAISSON_TRY(reader.Member(name, value));
  return settings;
}

}  // namespace caisson::nodes
