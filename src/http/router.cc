// SPDX-License-Identifier: Apache-2.0
#include "http/router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "errors/http.h"

namespace caisson::http {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
      if (low < 0) {
        return Fail(errors::kHttpBadRequest,
                    "the request target has a % that no two hexadecimal digits follow");
      }
      if (high == 0 && low == 0) {
        return Fail(errors::kHttpBadRequest, "the request target has an encoded NUL");
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

Result<void> ParseQuery(std::string_view text, Request& request) {
  for (const std::string_view piece : Split(text, '&')) {
    if (piece.empty()) continue;
    const std::size_t equals = std::min(piece.find('='), piece.size());
    CAISSON_ASSIGN(std::string name, PercentDecode(piece.substr(0, equals), true));
    CAISSON_ASSIGN(std::string value,
                   PercentDecode(piece.substr(std::min(equals + 1, piece.size())), true));
    request.query.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

Result<void> ParseTarget(Request& request) {
  const std::string_view target = request.target;
  const std::size_t question = std::min(target.find('?'), target.size());
  request.raw_path = target.substr(0, question);
  request.segments.clear();
  request.query.clear();
  if (request.raw_path == "*") return {};
  if (!request.raw_path.starts_with('/')) {
    return Fail(errors::kHttpBadRequest, "the request target does not begin with a slash");
  }
  for (const std::string_view raw : Split(std::string_view(request.raw_path).substr(1), '/')) {
    CAISSON_ASSIGN(std::string segment, PercentDecode(raw, false));
    if (segment == "." || segment == "..") {
      return Fail(errors::kHttpBadRequest, "the path of the request has a segment \".\" or \"..\"");
    }
    request.segments.push_back(std::move(segment));
  }
  if (question < target.size()) return ParseQuery(target.substr(question + 1), request);
  return {};
}

struct Router::Node {
  struct Entry {
    std::string pattern;
    std::vector<std::string> names;  // of what the pattern takes, in order
    Handler handler;
  };
  using Methods = std::map<std::string, Entry, std::less<>>;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> any;
  Methods methods;
  Methods rest_methods;  // of patterns that end in {name...}

  struct Search {
    explicit Search(const Request& asked) : request(asked) {}
    const Request& request;
    std::vector<std::size_t> taken;         // indices of the segments that {name} took
    std::optional<std::size_t> rest;        // where {name...} begins
    std::vector<std::string_view> allowed;  // methods of what matches but for the method
  };

  static const Entry* OfMethod(const Methods& methods, Search& search) {
    auto found = methods.find(search.request.method);
    if (found == methods.end() && search.request.method == "HEAD") found = methods.find("GET");
    if (found == methods.end()) found = methods.find("*");
    if (found != methods.end()) return &found->second;
    for (const auto& [method, entry] : methods) search.allowed.push_back(method);
    return nullptr;
  }

  const Entry* Find(Search& search, std::size_t depth) const {
    if (depth == search.request.segments.size()) {
      if (const Entry* entry = OfMethod(methods, search)) return entry;
    } else {
      const std::string& segment = search.request.segments[depth];
      if (const auto next = literals.find(segment); next != literals.end()) {
        if (const Entry* entry = next->second->Find(search, depth + 1)) return entry;
      }
      if (any && !segment.empty()) {
        search.taken.push_back(depth);
        if (const Entry* entry = any->Find(search, depth + 1)) return entry;
        search.taken.pop_back();
      }
    }
    const Entry* entry = OfMethod(rest_methods, search);
    if (entry) search.rest = depth;
    return entry;
  }
};

namespace {

// What follows the first `count` segments of the path, as it came, without the slash before it.
std::string_view RawRest(std::string_view raw_path, std::size_t count) {
  for (std::size_t i = 0; i <= count; ++i) {
    const std::size_t slash = raw_path.find('/');
    if (slash == std::string_view::npos) return {};
    raw_path.remove_prefix(slash + 1);
  }
  return raw_path;
}

}  // namespace

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

void Router::Add(std::string_view pattern, Handler handler) {
  const std::size_t space = std::min(pattern.find(' '), pattern.size());
  const std::string_view method = pattern.substr(0, space);
  const std::string_view path = pattern.substr(std::min(space + 1, pattern.size()));
  if (!IsToken(method) || !path.starts_with('/')) {
    problems_.push_back(fmt::format("\"{}\" is no \"METHOD /path\"", pattern));
    return;
  }
  Node* node = root_.get();
  Node::Entry entry{std::string(pattern), {}, std::move(handler)};
  bool rest = false;
  for (std::string_view segment : Split(path.substr(1), '/')) {
    if (rest) problems_.push_back(fmt::format("\"{}\" goes on after {{name...}}", pattern));
    if (!segment.starts_with('{')) {
      auto& next = node->literals[std::string(segment)];
      if (!next) next = std::make_unique<Node>();
      node = next.get();
      continue;
    }
    rest = segment.ends_with("...}");
    const std::size_t ending = rest ? 4 : 1;
    if (!segment.ends_with('}') || segment.size() < 2 + ending) {
      problems_.push_back(fmt::format("\"{}\" has a malformed {{name}}", pattern));
      return;
    }
    entry.names.emplace_back(segment.substr(1, segment.size() - 1 - ending));
    if (rest) continue;
    if (!node->any) node->any = std::make_unique<Node>();
    node = node->any.get();
  }
  auto& methods = rest ? node->rest_methods : node->methods;
  if (!methods.emplace(std::string(method), std::move(entry)).second) {
    problems_.push_back(fmt::format("\"{}\" stands twice", pattern));
  }
}

void Router::SetHostRoute(std::function<const Handler*(const Request&)> route) {
  host_route_ = std::move(route);
}

Result<void> Router::Check() const {
  if (problems_.empty()) return {};
  return Fail(errors::kHttpMisuse, fmt::format("routes are wrong: {}", fmt::join(problems_, "; ")));
}

Result<const Handler*> Router::Route(Request& request) const {
  if (host_route_) {
    if (const Handler* handler = host_route_(request)) return handler;
  }
  CAISSON_TRY(ParseTarget(request));
  Node::Search search{request};
  const Node::Entry* entry = root_->Find(search, 0);
  if (entry == nullptr && search.allowed.empty()) {
    return Fail(errors::kHttpNotFound, "there is nothing at this path");
  }
  if (entry == nullptr) {
    std::ranges::sort(search.allowed);
    const auto repeated = std::ranges::unique(search.allowed);
    search.allowed.erase(repeated.begin(), repeated.end());
    Status status{errors::kHttpMethodNotAllowed,
                  fmt::format("this path does not have the method {}", request.method)};
    status.details = fmt::format("{}", fmt::join(search.allowed, ", "));
    return Fail(std::move(status));
  }
  request.pattern = entry->pattern;
  for (std::size_t i = 0; i < search.taken.size(); ++i) {
    request.parameters.emplace_back(entry->names[i], request.segments[search.taken[i]]);
  }
  if (search.rest) {
    request.parameters.emplace_back(entry->names.back(), RawRest(request.raw_path, *search.rest));
  }
  return &entry->handler;
}

}  // namespace caisson::http
