// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/route.h"

#include <algorithm>
#include <utility>

#include "workflow/literal.h"

namespace caisson::workflow::migrate {
namespace {

using python::As;
using python::IsA;

// The only expression that the router gives, else null.
const python::Expr* OnlyValue(const Branch& branch) {
  if (branch.lambda != nullptr) return branch.lambda->body;
  if (branch.function == nullptr || !branch.function->decorator_list.empty()) return nullptr;
  auto body = branch.function->body;
  const auto* prose = IsA<python::ExprStmt>(body.front());
  if (prose != nullptr && StringLiteral(*prose->value)) body = body.subspan(1);
  const auto* returned = body.size() == 1 ? IsA<python::Return>(body.front()) : nullptr;
  return returned == nullptr ? nullptr : returned->value;
}

std::string_view StateName(const Branch& branch) {
  const python::Arguments* arguments =
      branch.lambda != nullptr ? branch.lambda->args : branch.function->args;
  return arguments->args.empty() ? std::string_view() : arguments->args[0]->arg;
}

using Mapping = std::vector<std::pair<std::string, std::string>>;

void AddTarget(std::string text, Mapping& mapping) {
  const auto known = std::ranges::find(mapping, text, &std::pair<std::string, std::string>::first);
  if (known == mapping.end()) mapping.emplace_back(text, text);
}

// "a" if x else END
bool AddConstants(const python::Expr* value, const Facts& facts, Mapping& mapping) {
  if (const auto* choice = IsA<python::IfExp>(value)) {
    return AddConstants(choice->body, facts, mapping) &&
           AddConstants(choice->orelse, facts, mapping);
  }
  const auto text = value == nullptr ? std::nullopt : TextOf(value, {}, facts);
  if (text) AddTarget(*text, mapping);
  return text.has_value();
}

bool AddAnnotated(const python::Expr* annotation, const Facts& facts, Mapping& mapping) {
  const auto* subscript = IsA<python::Subscript>(annotation);
  if (subscript == nullptr) return false;
  const std::string base = DottedName(subscript->value);
  if (base != "Literal" && !base.ends_with(".Literal")) return false;
  const auto* several = IsA<python::Tuple>(subscript->slice);
  if (several == nullptr) return AddConstants(subscript->slice, facts, mapping);
  return std::ranges::all_of(
      several->elts, [&](const python::Expr* each) { return AddConstants(each, facts, mapping); });
}

}  // namespace

std::optional<std::string> PlainPath(const Subject& subject, const Branch& branch,
                                     const Place& place) {
  const python::Expr* value =
      branch.function == nullptr && branch.lambda == nullptr ? nullptr : OnlyValue(branch);
  std::vector<std::string> keys;
  while (const auto* subscript = IsA<python::Subscript>(value)) {
    const auto key = StringLiteral(*subscript->slice);
    if (!key || key->empty() || key->find('.') != std::string_view::npos) return std::nullopt;
    keys.insert(keys.begin(), std::string(*key));
    value = subscript->value;
  }
  const auto* name = IsA<python::Name>(value);
  if (name == nullptr || keys.empty() || name->id != StateName(branch)) return std::nullopt;
  if (const Field* field = subject.fields.Find(keys.front())) {
    if (field->reducer != Field::Reducer::kLast) return std::nullopt;
    const auto home = subject.fields.HomeOf(*field, {place});
    if (home == StateFields::Home::kEither) return std::nullopt;
    const bool inputs = home == StateFields::Home::kInputs;
    if (!inputs) keys.front() = subject.fields.Key(keys.front());
    keys.insert(keys.begin(), inputs ? "inputs" : "node_results");
  } else if (!IsBaseField(keys.front())) {
    return std::nullopt;
  }
  std::string path;
  for (const std::string& key : keys) path += (path.empty() ? "" : ".") + key;
  return path;
}

std::vector<std::pair<std::string, std::string>> MappingOf(const Subject& subject,
                                                           const GraphModel& graph,
                                                           const Branch& branch) {
  if (!branch.mapping.empty()) return branch.mapping;
  Mapping mapping;
  const python::FunctionDef* function = branch.function;
  if (function != nullptr && AddAnnotated(function->returns, subject.facts, mapping))
    return mapping;
  mapping.clear();
  bool constants = true;
  if (function != nullptr) {
    for (const python::Return* each : ReturnsOf(function->body)) {
      constants = constants && AddConstants(each->value, subject.facts, mapping);
    }
  } else if (branch.lambda != nullptr) {
    constants = AddConstants(branch.lambda->body, subject.facts, mapping);
  }
  if (constants && !mapping.empty()) return mapping;
  mapping.clear();
  for (const Node& node : graph.nodes) AddTarget(node.id, mapping);
  AddTarget(std::string(kEnd), mapping);
  return mapping;
}

}  // namespace caisson::workflow::migrate
