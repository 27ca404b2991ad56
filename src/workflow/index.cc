// SPDX-License-Identifier: Apache-2.0
#include "workflow/index.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/reader.h"
#include "json/truth.h"
#include "python/walk.h"
#include "workflow/literal.h"
#include "workflow/registry.h"

namespace caisson::workflow {
namespace {

using python::IsA;

constexpr std::array<std::string_view, 5> kCronFields = {"expression", "timezone",
                                                         "allow_overlapping", "start_at", "end_at"};
constexpr std::string_view kNodesModule = "orcheo.nodes";

std::string_view ListenerPlatform(std::string_view type) {
  if (type == "TelegramBotListenerNode") return "telegram";
  if (type == "DiscordBotListenerNode") return "discord";
  if (type == "QQBotListenerNode") return "qq";
  return {};
}

std::string_view Strip(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\f\v\x1c\x1d\x1e\x1f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Calls `found` with each placeholder of `text` that has a name.
template <typename Found>
void FindPlaceholders(std::string_view text, const Found& found) {
  std::size_t open = text.find("[[");
  while (open != std::string_view::npos) {
    const std::size_t end = text.find_first_of("[]", open + 2);
    if (end == std::string_view::npos) return;
    if (end == open + 2 || text.substr(end, 2) != "]]") {
      open = text.find("[[", text[end] == '[' ? (end == open + 2 ? open + 1 : end) : end + 1);
      continue;
    }
    const std::string_view body = text.substr(open + 2, end - open - 2);
    if (body.find('\n') == std::string_view::npos &&
        !Strip(Strip(body).substr(0, Strip(body).find('#'))).empty()) {
      found(text.substr(open, end + 2 - open));
    }
    open = text.find("[[", end + 2);
  }
}

template <typename Found>
void FindPlaceholders(const json::Value& value, const Found& found) {
  if (value.is_string()) {
    FindPlaceholders(std::string_view(value.as_string()), found);
  } else if (value.is_array()) {
    for (const json::Value& element : value.as_array()) FindPlaceholders(element, found);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) FindPlaceholders(member, found);
  }
}

// `-x` of a number or a boolean; nothing otherwise.
std::optional<json::Value> Negated(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kBool:
      return json::Value(value.as_bool() ? -1 : 0);
    case json::Value::Kind::kInt:
      if (value.as_int() == INT64_MIN) return json::Value::Integer("9223372036854775808");
      return json::Value(-value.as_int());
    case json::Value::Kind::kBigInt: {
      const std::string& digits = value.as_bigint();
      return json::Value::Integer(digits[0] == '-' ? digits.substr(1) : "-" + digits);
    }
    case json::Value::Kind::kDouble:
      return json::Value(-value.as_double());
    default:
      return std::nullopt;
  }
}

// A literal as the peer's index reads it: any constant expression, with nothing refused.
std::optional<json::Value> Literal(const python::Expr& expr) {
  if (const auto* unary = IsA<python::UnaryOp>(&expr);
      unary != nullptr && unary->op == python::UnaryOperator::kUSub) {
    const std::optional<json::Value> operand = Literal(*unary->operand);
    return operand ? Negated(*operand) : std::nullopt;
  }
  if (const auto* set = IsA<python::Set>(&expr)) {
    json::Array elements;
    for (const python::Expr* element : set->elts) {
      std::optional<json::Value> value = Literal(*element);
      if (!value) return std::nullopt;
      elements.push_back(*std::move(value));
    }
    return json::Value(std::move(elements));
  }
  std::vector<Diagnostic> ignored;
  return LowerLiteral(expr, {}, CredentialPolicy::kAllow, nullptr, ignored);
}

// A cheap look before the value is made.
bool MayHoldPlaceholder(const python::Expr& expr) {
  const auto any = [](python::List<python::Expr*> elements) {
    return std::ranges::any_of(
        elements, [](const python::Expr* element) { return MayHoldPlaceholder(*element); });
  };
  if (const auto* list = IsA<python::ListExpr>(&expr)) return any(list->elts);
  if (const auto* tuple = IsA<python::Tuple>(&expr)) return any(tuple->elts);
  if (const auto* set = IsA<python::Set>(&expr)) return any(set->elts);
  if (const auto* dict = IsA<python::Dict>(&expr)) return any(dict->values);
  const std::optional<std::string_view> text = StringLiteral(expr);
  return text && text->find("[[") != std::string_view::npos;
}

// The dotted path before the last dot of `a.b.C`, or empty.
std::string ModuleOf(const python::Expr& callee) {
  const auto* attribute = IsA<python::Attribute>(&callee);
  if (attribute == nullptr) return {};
  std::vector<std::string_view> parts;
  const python::Expr* current = attribute->value;
  for (const auto* inner = IsA<python::Attribute>(current); inner != nullptr;
       inner = IsA<python::Attribute>(current)) {
    parts.push_back(inner->attr);
    current = inner->value;
  }
  if (const auto* name = IsA<python::Name>(current)) parts.push_back(name->id);
  std::string module;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!module.empty()) module += '.';
    module += *part;
  }
  return module;
}

std::string_view CalleeName(const python::Expr& callee) {
  if (const auto* name = IsA<python::Name>(&callee)) return name->id;
  if (const auto* attribute = IsA<python::Attribute>(&callee)) return attribute->attr;
  return {};
}

class IndexBuilder {
 public:
  // Depth first, in the order of the source; does not recurse.
  void Walk(const python::Module& module) {
    std::vector<python::NodeRef> stack{python::NodeRef(&module)};
    while (!stack.empty()) {
      const python::NodeRef node = stack.back();
      stack.pop_back();
      Visit(node);
      const std::size_t before = stack.size();
      python::ForEachChild(node, [&stack](python::NodeRef child) { stack.push_back(child); });
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(before), stack.end());
    }
  }

  json::Value Take() {
    json::Object index;
    index.Set("cron", std::move(cron_));
    index.Set("listeners", std::move(listeners_));
    index.Set("credentials", std::move(credentials_));
    return json::Value(std::move(index));
  }

 private:
  void Visit(python::NodeRef node) {
    if (const auto* statement = IsA<python::Import>(node.stmt())) return VisitImport(*statement);
    if (const auto* statement = IsA<python::ImportFrom>(node.stmt())) {
      return VisitImportFrom(*statement);
    }
    const auto* call = IsA<python::Call>(node.expr());
    if (call == nullptr) return;
    const std::string_view type = ResolvedName(*call->func);
    if (!type.empty()) CollectCredentials(*call, type);
    CollectNode(*call);
  }

  void VisitImport(const python::Import& statement) {
    for (const python::Alias* alias : statement.names) {
      const std::string_view local = alias->asname.data() != nullptr
                                         ? alias->asname
                                         : alias->name.substr(0, alias->name.find('.'));
      module_aliases_[local] = alias->name;
    }
  }

  void VisitImportFrom(const python::ImportFrom& statement) {
    for (const python::Alias* alias : statement.names) {
      const std::string_view local = alias->asname.data() != nullptr ? alias->asname : alias->name;
      aliases_[local] = alias->name;
      if (statement.module.data() != nullptr) modules_[local] = statement.module;
    }
  }

  std::string_view ResolvedName(const python::Expr& callee) const {
    const std::string_view name = CalleeName(callee);
    const auto alias = aliases_.find(name);
    return alias == aliases_.end() ? name : alias->second;
  }

  // The module that the callee was imported from; nothing when it names none.
  std::optional<std::string> CalleeModule(const python::Expr& callee) const {
    std::string module = ModuleOf(callee);
    if (module.empty()) {
      const auto imported = modules_.find(CalleeName(callee));
      if (imported == modules_.end()) return std::nullopt;
      return std::string(imported->second);
    }
    const std::size_t dot = module.find('.');
    const auto alias = module_aliases_.find(std::string_view(module).substr(0, dot));
    if (alias == module_aliases_.end()) return module;
    return std::string(alias->second) + (dot == std::string::npos ? "" : module.substr(dot));
  }

  static json::Object Keywords(const python::Call& call) {
    json::Object values;
    for (const python::Keyword* keyword : call.keywords) {
      if (keyword->arg.data() == nullptr) continue;
      std::optional<json::Value> value = Literal(*keyword->value);
      if (value && !value->is_null()) values.Set(keyword->arg, *std::move(value));
    }
    return values;
  }

  // ---- credentials

  void CollectCredentials(const python::Call& call, std::string_view type) {
    const NodeType* node = FindNodeType(type);
    const bool in_defaults = node != nullptr && HasDefaultPlaceholder(*node);
    const bool given = std::ranges::any_of(call.keywords, [](const python::Keyword* keyword) {
      return MayHoldPlaceholder(*keyword->value);
    });
    if ((!in_defaults && !given) || !IsNodeClass(*call.func, type)) return;
    if (in_defaults) CollectDefaults(call, *node);
    for (const auto& [field, value] : Keywords(call)) CollectValue(type, field, value);
  }

  bool HasDefaultPlaceholder(const NodeType& node) {
    const auto [known, is_new] = default_placeholders_.try_emplace(&node);
    if (is_new) {
      known->second = std::ranges::any_of(node.fields, [](const NodeField& field) {
        return field.default_json.find("[[") != std::string_view::npos;
      });
    }
    return known->second;
  }

  bool IsNodeClass(const python::Expr& callee, std::string_view type) const {
    const std::optional<std::string> module = CalleeModule(callee);
    if (module && !module->starts_with(kNodesModule)) return false;
    if (module && FindModel(*module, type).outcome == ModelLookup::kModel) return true;
    return FindModel(kNodesModule, type).outcome == ModelLookup::kModel;
  }

  void CollectDefaults(const python::Call& call, const NodeType& node) {
    for (const NodeField& field : node.fields) {
      if (field.default_json.find("[[") == std::string_view::npos) continue;
      const bool given = std::ranges::any_of(
          call.keywords, [&field](const auto* keyword) { return keyword->arg == field.name; });
      if (given) continue;
      if (const Result<json::Value> value = json::Read(field.default_json)) {
        CollectValue(node.name, field.name, *value);
      }
    }
  }

  void CollectValue(std::string_view type, std::string_view field, const json::Value& value) {
    FindPlaceholders(value, [&](std::string_view placeholder) {
      credentials_.emplace_back(
          json::Object{{"node_type", type}, {"field", field}, {"placeholder", placeholder}});
    });
  }

  // ---- triggers

  void CollectNode(const python::Call& call) {
    const auto* method = IsA<python::Attribute>(call.func);
    if (method == nullptr || method->attr != "add_node" || call.args.size() < 2) return;
    const std::optional<std::string_view> id = StringLiteral(*call.args[0]);
    const auto* constructor = IsA<python::Call>(call.args[1]);
    if (!id || constructor == nullptr) return;
    const std::string_view type = ResolvedName(*constructor->func);
    if (type == "CronTriggerNode") {
      CollectCron(Keywords(*constructor));
    } else if (type.ends_with("ListenerNode")) {
      CollectListener(*id, type, Keywords(*constructor));
    }
  }

  void CollectCron(const json::Object& keywords) {
    json::Object entry;
    for (const std::string_view field : kCronFields) {
      if (const json::Value* value = keywords.Find(field)) entry.Set(field, *value);
    }
    if (!entry.empty()) cron_.emplace_back(std::move(entry));
  }

  void CollectListener(std::string_view id, std::string_view type, const json::Object& keywords) {
    const json::Value* platform = keywords.Find("platform");
    const bool given = platform != nullptr && json::Truth(*platform);
    json::Object entry;
    entry.Set("node_name", id);
    entry.Set("type", type);
    entry.Set("platform", given ? *platform : json::Value(ListenerPlatform(type)));
    for (const auto& [key, value] : keywords) {
      if (key != "platform") entry.Set(key, value);
    }
    listeners_.emplace_back(std::move(entry));
  }

  json::Array cron_;
  json::Array listeners_;
  json::Array credentials_;
  std::unordered_map<std::string_view, std::string_view> aliases_;  // local name -> imported name
  std::unordered_map<std::string_view, std::string_view> modules_;  // local name -> its module
  std::unordered_map<std::string_view, std::string_view> module_aliases_;
  std::unordered_map<const NodeType*, bool> default_placeholders_;
};

}  // namespace

json::Value BuildIndex(const python::Module& module) {
  IndexBuilder builder;
  builder.Walk(module);
  return builder.Take();
}

}  // namespace caisson::workflow
