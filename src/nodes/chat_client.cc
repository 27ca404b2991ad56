// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "errors/model.h"
#include "errors/outbound.h"
#include "http/outbound.h"
#include "json/reader.h"
#include "json/writer.h"
#include "nodes/event_stream.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMaxBody = 64u << 20;      // of an answer, with the frame around its text
constexpr std::size_t kMaxEvent = 4u << 20;      // of a stream
constexpr std::size_t kMaxDocument = 16u << 20;  // of an answer that is not streamed
constexpr std::size_t kMaxErrorBody = 1u << 20;
constexpr std::size_t kMaxWords = 300;        // of an answer that is no JSON
constexpr double kMostWait = 60;              // seconds; a longer Retry-After is not waited for
constexpr std::chrono::minutes kLongest{60};  // for one answer

// What went wrong with one attempt.
struct Attempt {
  Status status;
  bool may_pass = false;
  std::optional<double> retry_after;  // seconds
};

// Takes a body as it comes: an event stream, or a document that is kept until it is whole.
class Body {
 public:
  Body(bool expects_stream, const OnDelta& on_delta)
      : expects_stream_(expects_stream), events_(kMaxEvent), chunks_(on_delta) {}

  Result<bool> Take(std::string_view piece) {
    if (!is_stream_) is_stream_ = Sniff(piece);
    if (is_stream_.value_or(false)) {
      CAISSON_TRY(events_.Feed(piece, [&](std::string_view data) { return chunks_.Read(data); }));
    } else if (kept_.size() + piece.size() > kMaxDocument) {
      return Fail(errors::kModelTooLarge,
                  "the endpoint's answer has more than " + std::to_string(kMaxDocument) + " bytes");
    } else {
      kept_ += piece;
    }
    return true;
  }

  Result<ChatAnswer> Finish(std::string_view content_type) {
    const bool is_json = Lower(content_type).find("json") != std::string::npos;
    const bool is_events = Lower(content_type).starts_with("text/event-stream");
    if (is_stream_.value_or(false) && (is_events || content_type.empty())) return chunks_.Finish();
    if (is_json || (content_type.empty() && !kept_.empty())) return FromDocument();
    if (is_events && kept_.empty()) return chunks_.Finish();
    return Fail(errors::kModelMalformed, "the endpoint answered with the content type " +
                                             PyReprText(Shortened(content_type, 100)) +
                                             ", which no chat endpoint does; check base_url");
  }

  bool has_begun() const { return chunks_.has_begun(); }

 private:
  // By the first character: documents begin with a brace, pages with an angle bracket.
  std::optional<bool> Sniff(std::string_view piece) const {
    const std::size_t first = piece.find_first_not_of(" \t\r\n");
    if (!expects_stream_) return false;
    if (first == std::string_view::npos) return std::nullopt;
    return std::string_view("{[<").find(piece[first]) == std::string_view::npos;
  }

  Result<ChatAnswer> FromDocument() const {
    const auto document = json::Read(kept_, {.max_depth = 100});
    if (document) return ReadCompletion(*document);
    return Fail(errors::kModelMalformed,
                "the endpoint's answer is no JSON: " + document.error().message);
  }

  const bool expects_stream_;
  std::optional<bool> is_stream_;
  EventStream events_;
  ChunkReader chunks_;
  std::string kept_;
};

std::optional<json::Value> ErrorDocument(const http::OutboundResponse& response) {
  const auto document = json::Read(response.body, {.max_bytes = kMaxErrorBody, .max_depth = 100});
  return document ? std::optional(*document) : std::nullopt;
}

std::string Words(const http::OutboundResponse& response) {
  if (const auto document = ErrorDocument(response)) {
    if (std::string words = ErrorWords(*document); !words.empty()) return words;
  }
  const std::string_view text = Strip(response.body);
  return Shortened(text.empty() || text[0] == '<' ? response.reason : text, kMaxWords);
}

std::string ErrorCodeOf(const http::OutboundResponse& response) {
  const auto document = ErrorDocument(response);
  const json::Value* error = document ? document->Find("error") : nullptr;
  const json::Value* code = error != nullptr ? error->Find("code") : nullptr;
  return code != nullptr && code->is_string() ? code->as_string() : std::string();
}

std::optional<double> RetryAfter(const http::OutboundResponse& response) {
  const std::string* field = response.headers.Find("Retry-After");
  if (field == nullptr) return std::nullopt;
  double seconds = 0;
  const char* end = field->data() + field->size();
  const auto [stop, error] = std::from_chars(field->data(), end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= 0) || seconds > 86400)
    return std::nullopt;
  return seconds;
}

bool IsTooLong(const std::string& code, const std::string& words) {
  const std::string lower = Lower(words);
  return code == "context_length_exceeded" || lower.find("context length") != std::string::npos ||
         lower.find("context window") != std::string::npos;
}

ErrorCode CodeOf(int status, const std::string& code, const std::string& words) {
  if (status == 401 || status == 403) return errors::kModelUnauthorized;
  if (status == 429) return errors::kModelRateLimited;
  if (status >= 500) return errors::kModelUnavailable;
  if (code == "content_filter") return errors::kModelContentFilter;
  if (IsTooLong(code, words)) return errors::kModelContextTooLong;
  return errors::kModelRejected;
}

Attempt Refused(const http::OutboundResponse& response) {
  const std::string words = Words(response);
  const std::string code = ErrorCodeOf(response);
  Attempt attempt;
  attempt.retry_after = RetryAfter(response);
  attempt.status.code = CodeOf(response.status, code, words);
  attempt.status.message =
      "the endpoint answered " + std::to_string(response.status) + ": " + words;
  if (attempt.retry_after) {
    attempt.status.message +=
        " (it may be asked again after " + json::FormatDouble(*attempt.retry_after) + " seconds)";
  }
  attempt.may_pass = (response.status == 408 || response.status == 409 || response.status == 429 ||
                      response.status >= 500) &&
                     code != "insufficient_quota";
  return attempt;
}

// The network's own failures, as those of a model.
Attempt Unreached(Status status, bool has_begun) {
  Attempt attempt{std::move(status)};
  const ErrorCode code = attempt.status.code;
  const std::string message = std::exchange(attempt.status.message, {});
  const auto as = [&](ErrorCode mine, std::string_view what, bool may_pass) {
    attempt.status.code = mine;
    attempt.status.message = std::string(what) + ": " + message;
    attempt.may_pass = may_pass && !has_begun;
  };
  if (code == errors::kOutboundUnreachable) {
    as(errors::kModelUnreachable, "the endpoint cannot be reached", true);
  } else if (code == errors::kOutboundTimedOut) {
    as(errors::kModelTimedOut, "the endpoint did not answer in time", true);
  } else if (code == errors::kOutboundBroken) {
    as(errors::kModelCut, "the endpoint broke off its answer", true);
  } else if (code == errors::kOutboundTooLarge) {
    as(errors::kModelTooLarge, "the endpoint's answer is too large", false);
  } else if (code == errors::kOutboundRefused) {
    as(code, "the endpoint may not be asked", false);
  } else {
    attempt.status.message = message;
  }
  return attempt;
}

class Client {
 public:
  Client(Host& host, http::Outbound& network, const ChatSettings& settings)
      : host_(host), network_(network), settings_(settings) {}

  Result<ChatAnswer> Ask(const std::string& text) {
    for (int attempt = 0;; ++attempt) {
      auto answer = Once(text);
      if (answer) return *std::move(answer);
      const Attempt& failed = answer.error();
      const double wait = failed.retry_after.value_or(std::min(8.0, 0.5 * (1 << attempt)));
      if (!failed.may_pass || attempt >= settings_.retries || wait > kMostWait) {
        return Fail(failed.status);
      }
      host_.Log(LogLevel::kWarning, "asking the model again in " + json::FormatDouble(wait) +
                                        " seconds: " + failed.status.message);
      CAISSON_TRY(host_.Sleep(std::chrono::nanoseconds(static_cast<std::int64_t>(wait * 1e9))));
    }
  }

 private:
  std::expected<ChatAnswer, Attempt> Once(const std::string& text) {
    const OnDelta on_delta = [&](json::Value delta) {
      host_.Stream(DeltaKind::kMessage, std::move(delta));
    };
    Body body(settings_.stream, on_delta);
    auto response =
        network_.Send(Request(text), [&](std::string_view piece) { return body.Take(piece); }, {});
    if (!response) return std::unexpected(Unreached(std::move(response).error(), body.has_begun()));
    if (response->status < 200 || response->status > 299)
      return std::unexpected(Refused(*response));
    const std::string* type = response->headers.Find("Content-Type");
    auto answer = body.Finish(type == nullptr ? std::string_view() : std::string_view(*type));
    if (!answer) {
      const bool may_pass = answer.error().code == errors::kModelCut && !body.has_begun();
      return std::unexpected(Attempt{std::move(answer).error(), may_pass, std::nullopt});
    }
    return *std::move(answer);
  }

  http::OutboundRequest Request(const std::string& text) const {
    http::OutboundRequest request;
    request.method = "POST";
    request.url = settings_.url;
    request.headers.Set(
        "Accept", settings_.stream ? "text/event-stream, application/json" : "application/json");
    request.headers.Set("Content-Type", "application/json");
    if (!settings_.api_key.empty()) {
      request.headers.Set("Authorization", "Bearer " + settings_.api_key);
    }
    for (const http::Field& field : settings_.headers) request.headers.Set(field.name, field.value);
    request.body = text;
    request.times.idle = settings_.patience;
    request.times.total = kLongest;
    // A key goes where its owner sent it, and no further.
    request.follow_redirects = false;
    request.most_bytes = kMaxBody;
    return request;
  }

  Host& host_;
  http::Outbound& network_;
  const ChatSettings& settings_;
};

}  // namespace

Result<ChatAnswer> AskModel(Host& host, const ChatSettings& settings, json::Object request) {
  CAISSON_ASSIGN(http::Outbound * network, host.Network());
  request.Set("stream", settings.stream);
  if (settings.stream && settings.stream_usage) {
    request.Set("stream_options", json::Object{{"include_usage", true}});
  }
  for (const auto& [name, value] : settings.body) {
    if (!request.Contains(name)) request.Set(name, value);
  }
  CAISSON_ASSIGN(const std::string text, json::Write(request));
  return Client(host, *network, settings).Ask(text);
}

}  // namespace caisson::nodes
