// SPDX-License-Identifier: Apache-2.0
// RSSNode: the items of feeds. A feed that cannot be had is told of, and the others are read.
#include <chrono>

#include "errors/nodes.h"
#include "errors/outbound.h"
#include "nodes/date_time.h"
#include "nodes/exchange.h"
#include "nodes/families.h"
#include "nodes/feed.h"
#include "nodes/python_text.h"
#include "nodes/text_decoding.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMostSources = 1000;
constexpr std::size_t kMostDocuments = 100'000;

// What can be gone through: text stands for itself, lists within a list for their items.
Result<json::Value> Sources(const json::Value& value) {
  if (value.is_string()) return json::Value(json::Array{value});
  json::Array flat;
  const auto add_all = [&](const json::Value& from, bool nested, const auto& add) -> bool {
    if (from.is_array()) {
      for (const json::Value& item : from.as_array()) {
        if (nested || !add(item, true, add)) flat.emplace_back(PyStr(item));
      }
      return true;
    }
    if (!from.is_object()) return false;
    for (const auto& [key, member] : from.as_object()) flat.emplace_back(key);
    return true;
  };
  if (!add_all(value, false, add_all)) {
    return NodeFailed("sources must be the URLs of feeds, a string or a list of strings, not " +
                      std::string(PyType(value)));
  }
  if (flat.size() > kMostSources) {
    return NodeFailed("sources has " + std::to_string(flat.size()) + " feeds; at most " +
                      std::to_string(kMostSources) + " are read at once");
  }
  return flat;
}

Result<json::Value> CheckSources(const json::Value& value, std::string_view path) {
  auto sources = Sources(value);
  if (sources) return sources;
  return Fail(errors::kNodesConfig, std::string(path) + ": " + sources.error().message);
}

Result<json::Value> CheckTimeout(const json::Value& value, std::string_view path) {
  if (value.ToDouble() > 0) return value;
  return Fail(errors::kNodesConfig, std::string(path) + ": must be greater than 0");
}

enum : std::size_t { kSources, kTimeout };
constexpr Field kFields[] = {
    {.name = "sources", .required = true, .check = CheckSources},
    {.name = "timeout", .kind = FieldKind::kFloat, .default_json = "15.0", .check = CheckTimeout},
};

std::string Now() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return FormatUtc({now.count() / 1'000'000, static_cast<int>(now.count() % 1'000'000), 0})
      .value_or("");
}

// The text of the feed; nodes.failed says why this one has none.
Result<std::string> Fetch(const Visit& visit, const std::string& url) {
  http::OutboundRequest request{
      .url = url,
      .headers = {{"User-Agent", "Mozilla/5.0 (compatible; Caisson RSS)"},
                  {"Accept",
                   "application/rss+xml, application/atom+xml, application/xml, text/xml;q=0.9, "
                   "*/*;q=0.8"}}};
  CAISSON_ASSIGN(request.times, TimesOf(visit.fields[kTimeout]));
  CAISSON_ASSIGN(const http::OutboundResponse response, Exchange(visit, request));
  CAISSON_TRY(RaiseForStatus(response));
  const std::string* type = response.headers.Find("Content-Type");
  std::string body = DecodeBody(response.body, type != nullptr ? *type : "");
  if (body.empty()) return NodeFailed("Empty feed response");
  return body;
}

// Whether the failure is that of one feed, and not of the node.
bool IsOfFeed(const Status& failure) {
  return failure.code == errors::kNodesFailed ||
         (failure.code.name.starts_with("outbound.") && failure.code != errors::kOutboundRefused &&
          failure.code != errors::kOutboundNoNetwork);
}

struct Documents {
  json::Array documents;
  json::Array errors;
};

Result<void> ReadSource(const Visit& visit, const std::string& url, const std::string& now,
                        Documents& into) {
  const auto read = [&]() -> Result<std::vector<FeedItem>> {
    CAISSON_ASSIGN(const std::string body, Fetch(visit, url));
    return ReadFeed(body);
  };
  auto items = read();
  if (!items) {
    if (!IsOfFeed(items.error())) return Fail(std::move(items).error());
    into.errors.emplace_back(json::Object{{"source", url}, {"error", items.error().message}});
    return {};
  }
  if (into.documents.size() + items->size() > kMostDocuments) {
    return NodeFailed("the feeds have more than " + std::to_string(kMostDocuments) + " items");
  }
  for (FeedItem& item : *items) {
    into.documents.emplace_back(json::Object{{"title", item.title},
                                             {"link", item.link},
                                             {"description", item.description},
                                             {"pubDate", item.published},
                                             {"isoDate", NormalFeedDate(item.published)},
                                             {"source", url},
                                             {"read", false},
                                             {"fetched_at", now}});
  }
  return {};
}

Result<json::Value> RunRss(const Visit& visit) {
  CAISSON_ASSIGN(const json::Value sources, Sources(visit.fields[kSources]));
  const std::string now = Now();
  Documents read;
  for (const json::Value& url : sources.as_array()) {
    CAISSON_TRY(ReadSource(visit, url.as_string(), now, read));
  }
  const std::size_t count = read.documents.size();
  const std::size_t failed = read.errors.size();
  return json::Object{{"documents", std::move(read.documents)},
                      {"errors", std::move(read.errors)},
                      {"fetched_count", std::uint64_t{count}},
                      {"failed_sources", std::uint64_t{failed}}};
}

}  // namespace

extern constexpr NodeType kRssNode{"RSSNode", kFields, RunRss, nullptr, Need::kNetwork};

}  // namespace caisson::nodes
