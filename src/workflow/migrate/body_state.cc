// SPDX-License-Identifier: Apache-2.0
// Reads of the state, and the updates that are returned.
#include "workflow/migrate/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"

namespace caisson::workflow::migrate {

using python::As;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

void BodyEdits::AddStateUses(NodeRef root, const NameSet& bound, Scope& scope) {
  for (const std::string_view variable : {scope.state, scope.config}) {
    if (variable.empty()) continue;
    NameSet others = bound;
    others.erase(variable);
    for (const python::Name* name : FreeNames(root, others)) {
      if (name->id != variable || scope.skipped.contains(name)) continue;
      if (variable == scope.state) {
        AddStateUse(*name, scope);
      } else {
        AddConfigUse(*name);
      }
    }
  }
}

void BodyEdits::AddConfigUse(const python::Name& name) {
  const python::Expr* parent = subject_.facts.ParentExpr(&name);
  std::optional<std::string_view> key;
  if (const auto* subscript = IsA<python::Subscript>(parent))
    key = StringLiteral(*subscript->slice);
  if (const auto* method = IsA<python::Attribute>(parent);
      method != nullptr && method->attr == "get") {
    const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(method));
    if (call != nullptr && !call->args.empty()) key = StringLiteral(*call->args[0]);
  }
  if (key == "configurable") return;
  if (const auto* call = IsA<python::Call>(parent);
      call != nullptr && subject_.facts.functions.contains(DottedName(call->func)))
    return;
  Decide(errors::kMigrateState, name.span,
         "a node gets nothing of the run's config but \"configurable\"",
         "have the caller pass it in as an input, or under configurable");
}

std::string BodyEdits::ReadText(std::string_view state, const Field& field,
                                std::string_view key) const {
  // The quotes of the author, since the place may be inside an f-string.
  const char quote = key.starts_with('\'') ? '\'' : '"';
  const std::string inputs = fmt::format("{0}[{1}inputs{1}]", state, quote);
  const std::string results = fmt::format("{0}[{1}node_results{1}]", state, quote);
  const std::string stored = fmt::format("{0}{1}{0}", quote, subject_.fields.Key(field.name));
  switch (field.reducer) {
    case Field::Reducer::kAddList:
      return fmt::format("{}.get({}, {}.get({}, []))", results, stored, inputs, key);
    case Field::Reducer::kAddNumber:
      return fmt::format("{}.get({}, {}.get({}, 0))", results, stored, inputs, key);
    case Field::Reducer::kAddText:
      return fmt::format("{0}.get({1}, {2}.get({3}, {4}{4}))", results, stored, inputs, key, quote);
    default:
      break;
  }
  switch (subject_.fields.HomeOf(field, places_)) {
    case StateFields::Home::kInputs:
      return fmt::format("{}[{}]", inputs, key);
    case StateFields::Home::kResults:
      return fmt::format("{}[{}]", results, stored);
    case StateFields::Home::kEither:
      return fmt::format("({0}[{1}] if {1} in {0} else {2}[{3}])", results, stored, inputs, key);
  }
  return {};
}

void BodyEdits::NoteMessages(std::string_view field, const SourceSpan& span) {
  if (field != "messages") return;
  if (subject_.fields.foreign()) {
    return Decide(errors::kMigrateState, span,
                  "the caller's messages are not in the state when the run begins",
                  "read them from state[\"inputs\"][\"messages\"], or leave them to an agent node");
  }
  subject_.out.Note(
      errors::kMigrateDiffers, span,
      "messages that the caller passes in stand in state[\"inputs\"][\"messages\"] only",
      "read them there, if that is what is meant");
}

void BodyEdits::AddStateUse(const python::Name& name, Scope& scope) {
  const Facts& facts = subject_.facts;
  const python::Expr* parent = facts.ParentExpr(&name);
  if (IsChanged(&name, facts)) {
    return Decide(errors::kMigrateState, name.span,
                  "the state is changed in place, which is lost when the node ends",
                  "change a copy, and return it in the update");
  }
  if (const auto* subscript = IsA<python::Subscript>(parent);
      subscript != nullptr && subscript->value == &name) {
    const auto key = StringLiteral(*subscript->slice);
    const Field* field = key ? subject_.fields.Find(*key) : nullptr;
    if (key) NoteMessages(*key, parent->span);
    if (field != nullptr) {
      return edits_.Replace(Of(*subscript), ReadText(scope.state, *field,
                                                     subject_.source.Text(subscript->slice->span)));
    }
    if (key || !subject_.fields.own()) return;
  } else if (const auto* method = IsA<python::Attribute>(parent)) {
    if (method->attr == "get") return AddStateCall(name, *method, scope);
  } else if (const auto* compare = IsA<python::Compare>(parent); compare != nullptr &&
                                                                 compare->comparators.size() == 1 &&
                                                                 compare->comparators[0] == &name) {
    const auto key = StringLiteral(*compare->left);
    const Field* field = key ? subject_.fields.Find(*key) : nullptr;
    if (key && field == nullptr) return;
    if (field != nullptr) {
      const auto home = subject_.fields.HomeOf(*field, places_);
      if (home == StateFields::Home::kInputs)
        return edits_.Replace(Of(name), fmt::format("{}[\"inputs\"]", name.id));
      if (home == StateFields::Home::kResults && subject_.fields.Key(field->name) == *key) {
        return edits_.Replace(Of(name), fmt::format("{}[\"node_results\"]", name.id));
      }
      if (subject_.fields.Key(field->name) == *key) {
        return edits_.Replace(
            Of(name), fmt::format("list({0}[\"node_results\"]) + list({0}[\"inputs\"])", name.id));
      }
    }
  } else if (const auto* call = IsA<python::Call>(parent);
             call != nullptr && call->func != &name &&
             facts.functions.contains(DottedName(call->func))) {
    return;
  } else if (parent == nullptr) {
    const auto found = facts.parents.find(&name);
    const auto* keyword = found == facts.parents.end() ? nullptr : found->second.keyword();
    if (keyword != nullptr && !subject_.fields.own()) return;
  }
  if (!subject_.fields.own()) return;
  Decide(errors::kMigrateState, name.span,
         "the state is used as a whole, and its fields live in node_results and inputs",
         "read the fields that are needed one by one: state[\"field\"]");
}

void BodyEdits::AddStateCall(const python::Name& name, const python::Attribute& method,
                             Scope& scope) {
  const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(&method));
  if (call == nullptr || call->args.empty()) return;
  const auto key = StringLiteral(*call->args[0]);
  if (key) NoteMessages(*key, call->span);
  const Field* field = key ? subject_.fields.Find(*key) : nullptr;
  if (field == nullptr) {
    if (key || !subject_.fields.own()) return;
    return Decide(errors::kMigrateState, call->span, "which field of the state is read is computed",
                  "read the field by its name");
  }
  const std::string key_text(subject_.source.Text(call->args[0]->span));
  const std::string stored = subject_.fields.Key(*key) == *key
                                 ? key_text
                                 : fmt::format("{0}{1}{0}", key_text.starts_with('\'') ? '\'' : '"',
                                               subject_.fields.Key(*key));
  if (field->reducer != Field::Reducer::kLast)
    return edits_.Replace(Of(*call), ReadText(scope.state, *field, key_text));
  const Range begin{Of(name).begin, Of(*call->args[0]).end};
  const char quote = key_text.starts_with('\'') ? '\'' : '"';
  const std::string inputs = fmt::format("{0}[{1}inputs{1}]", name.id, quote);
  const std::string results = fmt::format("{0}[{1}node_results{1}]", name.id, quote);
  switch (subject_.fields.HomeOf(*field, places_)) {
    case StateFields::Home::kInputs:
      return edits_.Replace(begin, fmt::format("{}.get({}", inputs, key_text));
    case StateFields::Home::kResults:
      return edits_.Replace(begin, fmt::format("{}.get({}", results, stored));
    case StateFields::Home::kEither:
      edits_.Replace(begin, fmt::format("{}.get({}, {}.get({}", results, stored, inputs, key_text));
      return edits_.Close(Of(*call).end, ")");
  }
}

void BodyEdits::AddReturns(python::List<python::Stmt*> body, Scope& scope) {
  const std::string_view nothing = scope.role == Role::kRoute ? "{\"route\": None}" : "{}";
  for (const python::Return* each : ReturnsOf(body)) {
    const auto* constant = IsA<python::Constant>(each->value);
    if (each->value == nullptr) {
      edits_.Close(subject_.source.Of(each->span).end, " " + std::string(nothing));
    } else if (scope.role != Role::kRoute) {
      if (constant != nullptr && constant->constant == python::ConstantKind::kNone) {
        edits_.Replace(Of(*each->value), "{}");
      } else {
        AddUpdate(each->value, scope);
      }
    } else {
      const ExprKind kind = each->value->kind;
      if (kind == ExprKind::kList || kind == ExprKind::kListComp || kind == ExprKind::kTuple) {
        Decide(errors::kMigrateGraph, each->value->span,
               "a router that gives several targets at once",
               "draw plain edges to all of them, or handle all items in one node");
      }
      edits_.Wrap(Of(*each->value), "{\"route\": ", "}");
    }
  }
}

void BodyEdits::AddUpdate(const python::Expr* value, Scope& scope) {
  if (const auto* choice = IsA<python::IfExp>(value)) {
    AddUpdate(choice->body, scope);
    return AddUpdate(choice->orelse, scope);
  }
  if (const auto* dict = IsA<python::Dict>(value)) return AddUpdateDict(*dict, scope);
  if (const auto* call = IsA<python::Call>(value)) {
    const auto found = subject_.facts.functions.find(DottedName(call->func));
    if (found != subject_.facts.functions.end()) {
      updaters_.insert(found->second);
      return;
    }
    if (!subject_.facts.ImportedAs(call->func).empty()) return;  // decided where it is imported
  }
  if (value->kind == ExprKind::kAwait) return AddUpdate(As<python::Await>(value)->value, scope);
  if (!subject_.fields.own()) return;
  Decide(errors::kMigrateState, value->span, "which fields this update has cannot be seen here",
         "return a dict that is written out: {\"field\": value}");
}

void BodyEdits::AddUpdateDict(const python::Dict& dict, Scope& scope) {
  std::vector<std::size_t> own;
  bool has_results = false;
  for (std::size_t i = 0; i < dict.keys.size(); ++i) {
    const auto key = dict.keys[i] == nullptr ? std::nullopt : StringLiteral(*dict.keys[i]);
    if (!key) {
      if (!subject_.fields.own()) continue;
      return Decide(errors::kMigrateState, dict.values[i]->span,
                    "which fields this update has cannot be seen here",
                    "write each field out: {\"field\": value}");
    }
    has_results |= *key == "node_results";
    if (subject_.fields.Find(*key) != nullptr) own.push_back(i);
  }
  if (own.empty()) return;
  if (has_results || own.back() - own.front() + 1 != own.size()) {
    return Decide(
        errors::kMigrateState, dict.span,
        "an update of own fields and of node_results at once, or of fields in between others",
        "write the own fields next to each other, or all of them into node_results");
  }
  if (own.size() == dict.keys.size()) {
    edits_.Wrap(Of(dict), "{\"node_results\": ", "}");
  } else {
    edits_.Open(Of(*dict.keys[own.front()]).begin, "\"node_results\": {");
    edits_.Close(Of(*dict.values[own.back()]).end, "}");
  }
  for (const std::size_t i : own) {
    const Field& field = *subject_.fields.Find(*StringLiteral(*dict.keys[i]));
    const std::string key = subject_.fields.Key(field.name);
    if (key != field.name) edits_.Replace(Of(*dict.keys[i]), fmt::format("\"{}\"", key));
    if (field.reducer == Field::Reducer::kLast || field.reducer == Field::Reducer::kOther) continue;
    if (scope.state.empty()) {
      Decide(errors::kMigrateState, dict.values[i]->span,
             fmt::format("'{}' is added to, and the state is not at hand here", field.name),
             "give the function the state");
      continue;
    }
    for (const Place& place : places_) {
      if (!place.graph->MayRunBeside(place.id)) continue;
      Decide(errors::kMigrateState, dict.values[i]->span,
             fmt::format("'{}' is added to by nodes that may run side by side", field.name),
             "have each of them return its own part, and join the parts in the node behind");
      break;
    }
    edits_.Open(Of(*dict.values[i]).begin,
                ReadText(scope.state, field, fmt::format("\"{}\"", field.name)) + " + (");
    edits_.Close(Of(*dict.values[i]).end, ")");
  }
}

}  // namespace caisson::workflow::migrate
