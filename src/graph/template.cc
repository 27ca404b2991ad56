// SPDX-License-Identifier: Apache-2.0
#include "graph/template.h"

#include <algorithm>

#include "errors/graph.h"
#include "errors/template.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using nodes::Strip;

constexpr std::size_t kMaxCredentialBody = 1024;

std::vector<std::string> SplitAtDots(std::string_view path) {
  std::vector<std::string> segments;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    segments.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

// Adds `more` bytes to a text of `size`, and to what the visit has made.
Result<void> CountText(const Scope& scope, std::size_t size, std::size_t more) {
  std::size_t made = size + more;
  if (scope.text_made != nullptr) made = *scope.text_made += more;
  if (made <= kMaxTemplateText) return {};
  return Fail(errors::kTemplateTooLarge, "the templates of node '" + std::string(scope.node_id) +
                                             "' yield more than " +
                                             std::to_string(kMaxTemplateText) + " bytes of text");
}

// The value that `path` leads to, or the index of the segment at which it ends.
struct Walked {
  const json::Value* value;
  std::size_t failed_at;
};

// node_results[segment], unless it is null.
const json::Value* FromNodeResults(const nodes::State& state, const std::string& segment) {
  const json::Value* results = state.Find(nodes::StateField::kNodeResults);
  const json::Value* found = results != nullptr ? results->Find(segment) : nullptr;
  return found != nullptr && !found->is_null() ? found : nullptr;
}

Walked WalkState(const nodes::State& state, const std::vector<std::string>& path,
                 std::optional<nodes::StateField> root) {
  const json::Value* current = root ? state.Find(*root) : nullptr;
  if (current == nullptr && root != nodes::StateField::kNodeResults) {
    current = FromNodeResults(state, path[0]);
  }
  if (current == nullptr) return {nullptr, 0};
  for (std::size_t i = 1; i < path.size(); ++i) {
    current = current->Find(path[i]);
    if (current == nullptr) return {nullptr, i};
  }
  return {current, 0};
}

}  // namespace

std::optional<std::string> ScalarText(const json::Value& value) {
  if (value.is_null() || value.is_array() || value.is_object()) return std::nullopt;
  return nodes::PyStr(value);
}

Template Template::Static(json::Value value) {
  Template result;
  result.raw_ = std::move(value);
  return result;
}

// "{{", then characters other than braces, then "}}".
std::optional<Template::Token> Template::PathAt(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "{{") return std::nullopt;
  const std::size_t end = text.find_first_of("{}", at + 2);
  if (end == std::string_view::npos || end == at + 2 || text.substr(end, 2) != "}}") {
    return std::nullopt;
  }
  Token token;
  token.type = Token::Type::kPath;
  token.text = text.substr(at, end + 2 - at);
  token.path = SplitAtDots(Strip(text.substr(at + 2, end - at - 2)));
  token.root = nodes::FindStateField(token.path[0]);
  return token;
}

// "[[", then at least one character and no line break, then the nearest "]]".
std::optional<Template::Token> Template::CredentialAt(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "[[" || at + 3 > text.size()) return std::nullopt;
  // Bounded, so that a text full of "[[" is not searched to its end from each of them.
  const std::size_t length = text.substr(at + 2, kMaxCredentialBody + 2).find("]]", 1);
  if (length == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(at + 2, length);
  if (body.find('\n') != std::string_view::npos) return std::nullopt;
  auto reference = ParseCredentialBody(body);
  if (!reference) return std::nullopt;
  Token token;
  token.type = Token::Type::kCredential;
  token.text = text.substr(at, length + 4);
  token.credential = *std::move(reference);
  return token;
}

std::optional<Template::Token> Template::WholeToken(std::string_view text,
                                                    Credentials credentials) {
  const std::string_view trimmed = Strip(text);
  if (credentials == Credentials::kResolve) {
    auto token = CredentialAt(trimmed, 0);
    if (token && token->text.size() == trimmed.size()) return token;
  }
  auto token = PathAt(trimmed, 0);
  if (token && token->text.size() == trimmed.size()) return token;
  return std::nullopt;
}

Template Template::ParseString(const json::Value& value, Credentials credentials) {
  const std::string_view text = value.as_string();
  Template result = Static(value);
  if (text.find("{{") == std::string_view::npos && text.find("[[") == std::string_view::npos) {
    return result;
  }
  if (auto token = WholeToken(text, credentials)) {
    result.kind_ = Kind::kWhole;
    result.tokens_.push_back(*std::move(token));
    return result;
  }
  std::size_t plain = 0;  // where the text that is not in tokens_ yet begins
  const auto take_text = [&](std::size_t end) {
    if (end > plain) result.tokens_.emplace_back().text = text.substr(plain, end - plain);
  };
  for (std::size_t at = 0; at < text.size();) {
    std::optional<Token> token;
    if (text[at] == '{') token = PathAt(text, at);
    if (text[at] == '[' && credentials == Credentials::kResolve) token = CredentialAt(text, at);
    if (!token) {
      ++at;
      continue;
    }
    take_text(at);
    at += token->text.size();
    plain = at;
    result.tokens_.push_back(*std::move(token));
  }
  if (plain == 0) return result;
  take_text(text.size());
  result.kind_ = Kind::kMixed;
  return result;
}

Template Template::Parse(const json::Value& value, Credentials credentials) {
  if (value.is_string()) return ParseString(value, credentials);
  Template result = Static(value);
  const auto adopt = [&](std::string_view key, std::size_t index, const json::Value& item) {
    Template child = Parse(item, credentials);
    if (child.is_static()) return;
    result.kind_ = value.is_array() ? Kind::kArray : Kind::kObject;
    result.children_.push_back({std::string(key), index, {}});
    result.children_.back().value.push_back(std::move(child));
  };
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.as_array().size(); ++i) adopt({}, i, value.as_array()[i]);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) adopt(key, 0, member);
  }
  return result;
}

Result<std::optional<json::Value>> Template::ResolveToken(const Token& token,
                                                          std::string_view shown,
                                                          const Scope& scope) {
  if (token.type == Token::Type::kCredential) {
    if (scope.credentials == nullptr) {
      return Fail(errors::kGraphCredentialUnavailable,
                  "Credential placeholders require an active resolver. Runnable '" +
                      std::string(scope.node_id) + "' attempted to access " +
                      nodes::PyReprText(token.credential.identifier));
    }
    CAISSON_ASSIGN(json::Value secret, scope.credentials->Resolve(token.credential));
    return secret;
  }
  const Walked walked = WalkState(scope.state, token.path, token.root);
  if (walked.value != nullptr) return *walked.value;
  if (scope.warn != nullptr && *scope.warn) {
    (*scope.warn)("Runnable " + std::string(scope.node_id) + " could not resolve template '" +
                  std::string(shown) + "' at segment '" + token.path[walked.failed_at] +
                  "'; leaving value unchanged.");
  }
  return std::nullopt;
}

// The text that takes the token's place, nullopt when its own stays.
Result<std::optional<std::string>> Template::ResolveText(const Token& token, const Scope& scope) {
  CAISSON_ASSIGN(const std::optional<json::Value> value, ResolveToken(token, token.text, scope));
  if (!value) return std::nullopt;
  auto text = ScalarText(*value);
  if (!text && token.type == Token::Type::kCredential) {
    return Fail(errors::kGraphCredentialPath,
                "the credential '" + token.credential.identifier + "' of node '" +
                    std::string(scope.node_id) +
                    "' is no text and cannot stand within a longer string; name a part of it");
  }
  return text;
}

Result<json::Value> Template::Resolve(const Scope& scope) const {
  if (kind_ == Kind::kStatic) return raw_;
  if (kind_ == Kind::kWhole) {
    CAISSON_ASSIGN(auto value, ResolveToken(tokens_[0], raw_.as_string(), scope));
    return value ? *std::move(value) : raw_;
  }
  if (kind_ == Kind::kMixed) {
    std::string text;
    for (const Token& token : tokens_) {
      std::optional<std::string> replacement;
      if (token.type != Token::Type::kText) {
        CAISSON_ASSIGN(replacement, ResolveText(token, scope));
      }
      const std::string& part = replacement ? *replacement : token.text;
      CAISSON_TRY(CountText(scope, text.size(), part.size()));
      text += part;
    }
    return json::Value(std::move(text));
  }
  json::Value value = raw_;
  for (const Child& child : children_) {
    CAISSON_ASSIGN(json::Value resolved, child.value[0].Resolve(scope));
    Replace(value, child, std::move(resolved));
  }
  return value;
}

void Template::Replace(json::Value& container, const Child& child, json::Value value) {
  if (container.is_array()) {
    container.mutable_array()[child.index] = std::move(value);
  } else {
    container.mutable_object().Set(child.key, std::move(value));
  }
}

Result<Template> Template::BindWhole(const Scope& scope) const {
  if (tokens_[0].type == Token::Type::kCredential) return *this;
  CAISSON_ASSIGN(auto value, ResolveToken(tokens_[0], raw_.as_string(), scope));
  return value ? Static(*std::move(value)) : *this;
}

Result<Template> Template::BindMixed(const Scope& scope) const {
  Template bound;
  bound.kind_ = Kind::kMixed;
  std::string raw;
  bool open = false;
  for (const Token& token : tokens_) {
    std::optional<std::string> text;
    if (token.type == Token::Type::kText) {
      text = token.text;
    } else if (token.type == Token::Type::kPath) {
      CAISSON_ASSIGN(text, ResolveText(token, scope));
    }
    const std::string& part = text ? *text : token.text;
    CAISSON_TRY(CountText(scope, raw.size(), part.size()));
    raw += part;
    open = open || !text;
    if (text) {
      bound.tokens_.emplace_back().text = *std::move(text);
    } else {
      bound.tokens_.push_back(token);
    }
  }
  if (!open) return Static(std::move(raw));
  bound.raw_ = std::move(raw);
  return bound;
}

Result<Template> Template::BindChildren(const Scope& scope) const {
  Template bound = Static(raw_);
  for (const Child& child : children_) {
    CAISSON_ASSIGN(Template value, child.value[0].Bind(scope));
    Replace(bound.raw_, child, value.raw());
    if (value.is_static()) continue;
    bound.kind_ = kind_;
    bound.children_.push_back({child.key, child.index, {}});
    bound.children_.back().value.push_back(std::move(value));
  }
  return bound;
}

Result<Template> Template::Bind(const Scope& scope) const {
  switch (kind_) {
    case Kind::kStatic:
      return *this;
    case Kind::kWhole:
      return BindWhole(scope);
    case Kind::kMixed:
      return BindMixed(scope);
    case Kind::kArray:
    case Kind::kObject:
      return BindChildren(scope);
  }
  return *this;
}

Template Template::Member(std::string_view key) const {
  if (kind_ == Kind::kObject) {
    const auto child = std::ranges::find(children_, key, &Child::key);
    if (child != children_.end()) return child->value[0];
  }
  const json::Value* value = raw_.Find(key);
  return Static(value != nullptr ? *value : json::Value());
}

Template Template::Item(std::size_t index) const {
  if (kind_ == Kind::kArray) {
    const auto child = std::ranges::find(children_, index, &Child::index);
    if (child != children_.end()) return child->value[0];
  }
  const bool exists = raw_.is_array() && index < raw_.as_array().size();
  return Static(exists ? raw_.as_array()[index] : json::Value());
}

}  // namespace caisson::graph
