// SPDX-License-Identifier: Apache-2.0
// A configuration value whose strings may hold {{state.paths}} and [[credentials]], parsed once. A
// placeholder is one only where it stands in the text that was parsed: whatever resolving yields is
// data and is never parsed. Immutable after parsing; safe for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/credentials.h"
#include "json/value.h"
#include "nodes/state.h"

namespace caisson::graph {

// More text, as repeated templates make it, is refused: of one template, and of all that share a
// Scope::text_made.
inline constexpr std::size_t kMaxTemplateText = 64u << 20;

// What a template is resolved against.
struct Scope {
  const nodes::State& state;
  CredentialResolver* credentials;  // may be null: a placeholder then fails
  std::string_view node_id;         // for messages
  // Told when a path leads nowhere; the placeholder's text then stays. May be null.
  const std::function<void(std::string_view message)>* warn;
  // Bytes of text that the templates of one visit have made so far. May be null: not added up.
  std::size_t* text_made = nullptr;
};

enum class Credentials : std::uint8_t {
  kResolve,
  kPlainText,  // [[...]] is text like any other
};

class Template {
 public:
  Template() = default;  // null
  static Template Parse(const json::Value& value, Credentials credentials);
  static Template Static(json::Value value);

  bool is_static() const { return kind_ == Kind::kStatic; }
  // The value with every placeholder as the text that it is.
  const json::Value& raw() const { return raw_; }

  // The value with every placeholder that can be resolved replaced. Fails with
  // graph.credential_..., or template.too_large.
  Result<json::Value> Resolve(const Scope& scope) const;
  // Like Resolve, but placeholders that cannot be resolved in `scope` remain placeholders, and so
  // do credentials, so that no message about the result can show one.
  Result<Template> Bind(const Scope& scope) const;

  // The template of one member or item; static null when there is none.
  Template Member(std::string_view key) const;
  Template Item(std::size_t index) const;

 private:
  enum class Kind : std::uint8_t {
    kStatic,
    kWhole,  // the whole string is one placeholder: yields a value of any type
    kMixed,  // text with placeholders: yields text
    kArray,
    kObject,
  };
  struct Token {
    enum class Type : std::uint8_t { kText, kPath, kCredential } type = Type::kText;
    std::string text;  // as it stands in the source
    std::vector<std::string> path;
    std::optional<nodes::StateField> root;  // the state field that path[0] names
    CredentialReference credential;
  };
  struct Child {
    std::string key;        // of an object
    std::size_t index = 0;  // of an array
    // A vector of an incomplete type is allowed, a member of one is not.
    std::vector<Template> value;
  };

  static Template ParseString(const json::Value& value, Credentials credentials);
  static std::optional<Token> PathAt(std::string_view text, std::size_t at);
  static std::optional<Token> CredentialAt(std::string_view text, std::size_t at);
  static std::optional<Token> WholeToken(std::string_view text, Credentials credentials);

  // nullopt: the placeholder leads nowhere.
  static Result<std::optional<json::Value>> ResolveToken(const Token& token, std::string_view shown,
                                                         const Scope& scope);
  static Result<std::optional<std::string>> ResolveText(const Token& token, const Scope& scope);
  Result<Template> BindWhole(const Scope& scope) const;
  Result<Template> BindMixed(const Scope& scope) const;
  Result<Template> BindChildren(const Scope& scope) const;
  static void Replace(json::Value& container, const Child& child, json::Value value);

  Kind kind_ = Kind::kStatic;
  json::Value raw_;
  std::vector<Token> tokens_;    // kWhole: one; kMixed
  std::vector<Child> children_;  // kArray, kObject: those that are not static
};

// str(value) for the kinds that may stand within text: string, number, boolean.
std::optional<std::string> ScalarText(const json::Value& value);

}  // namespace caisson::graph
