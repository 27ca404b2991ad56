// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"

namespace caisson::workflow::migrate {
namespace {

using python::IsA;
using python::NodeRef;

// How deep helpers that give a node's update may call each other.
constexpr int kMaxDepth = 8;

void CollectReturns(NodeRef node, std::vector<const python::Return*>& returns) {
  if (node.stmt() != nullptr) {
    if (const auto* found = IsA<python::Return>(node.stmt())) {
      returns.push_back(found);
      return;
    }
    if (FunctionOf(node.stmt()) != nullptr || node.stmt()->kind == python::StmtKind::kClassDef)
      return;
  }
  if (node.expr() != nullptr) return;
  python::ForEachChild(node, [&](NodeRef child) { CollectReturns(child, returns); });
}

}  // namespace

std::vector<const python::Return*> ReturnsOf(python::List<python::Stmt*> body) {
  std::vector<const python::Return*> returns;
  for (const python::Stmt* statement : body) CollectReturns(statement, returns);
  return returns;
}

bool MayFallThrough(python::List<python::Stmt*> body) {
  if (body.empty()) return true;
  const python::Stmt* last = body.back();
  if (last->kind == python::StmtKind::kReturn || last->kind == python::StmtKind::kRaise)
    return false;
  if (const auto* branch = IsA<python::If>(last)) {
    return MayFallThrough(branch->body) || MayFallThrough(branch->orelse);
  }
  if (const auto* with = IsA<python::With>(last)) return MayFallThrough(with->body);
  return true;
}

StateFields::StateFields(const Facts& facts, const Wiring& wiring, Findings& out)
    : facts_(facts), wiring_(wiring) {
  ReadClasses(wiring, out);
  for (const auto& [name, graph] : wiring.graphs) {
    for (const Node& node : graph.nodes) {
      ids_.insert(node.id);
      Writes writes = WritesOf(node);
      written_.insert(writes.sometimes.begin(), writes.sometimes.end());
      anything_written_ |= writes.unknown;
      writes_[{&graph, node.id}] = std::move(writes);
    }
  }
  for (const auto& [child, parent] : facts.parents) {
    const auto* dict = IsA<python::Dict>(parent.expr());
    const auto* inner = IsA<python::Dict>(child);
    if (dict == nullptr || inner == nullptr) continue;
    for (std::size_t i = 0; i < dict->keys.size(); ++i) {
      if (dict->values[i] != inner || dict->keys[i] == nullptr) continue;
      if (StringLiteral(*dict->keys[i]) != "node_results") continue;
      for (const python::Expr* key : inner->keys) {
        const auto text = key == nullptr ? std::nullopt : StringLiteral(*key);
        if (text) result_keys_.emplace(*text);
      }
    }
  }
  CheckEntries(out);
}

// What a CodeNode does not put elsewhere goes to node_results[<its id>], if only {}.
void StateFields::CheckEntries(Findings& out) const {
  for (const auto& [name, graph] : wiring_.graphs) {
    for (const Node& node : graph.nodes) {
      if (node.function == nullptr || !result_keys_.contains(node.id) ||
          WritesEntry(*node.function, node.id))
        continue;
      out.Decide(errors::kMigrateState, node.function->span,
                 fmt::format("where node '{0}' does not return node_results[\"{0}\"], that entry "
                             "would become {{}}",
                             node.id),
                 "give the node another id, or have it always return the entry");
    }
  }
}

bool StateFields::WritesEntry(const python::FunctionDef& function, std::string_view id) {
  const auto has = [](const python::Expr* value, std::string_view wanted) -> const python::Expr* {
    const auto* dict = IsA<python::Dict>(value);
    if (dict == nullptr) return nullptr;
    for (std::size_t i = 0; i < dict->keys.size(); ++i) {
      if (dict->keys[i] != nullptr && StringLiteral(*dict->keys[i]) == wanted)
        return dict->values[i];
    }
    return nullptr;
  };
  return !MayFallThrough(function.body) &&
         std::ranges::all_of(ReturnsOf(function.body), [&](const python::Return* each) {
           return has(has(each->value, "node_results"), id) != nullptr;
         });
}

void StateFields::ReadClasses(const Wiring& wiring, Findings& out) {
  std::set<std::string> seen;
  for (const Step& step : wiring.steps) {
    if (step.kind != Step::Kind::kNewGraph || step.call == nullptr || step.call->args.empty())
      continue;
    const python::Expr* argument = step.call->args[0];
    const std::string name = DottedName(argument);
    if (!seen.insert(name).second) continue;
    const auto found = facts_.classes.find(name);
    if (found != facts_.classes.end()) {
      if (!fields_.empty()) {
        out.Decide(errors::kMigrateState, argument->span,
                   "graphs with states of their own, one inside the other",
                   "give all graphs of the file the same state");
      }
      ReadClass(*found->second, out);
      continue;
    }
    const std::string meaning = facts_.ImportedAs(argument);
    if (meaning.ends_with(".MessagesState")) {
      foreign_ = true;
    } else if (name != "State" && !meaning.ends_with(".State")) {
      out.Decide(errors::kMigrateState, argument->span,
                 fmt::format("what fields the state '{}' has is not written here", name),
                 "write the state as a TypedDict of this file, or use State");
    }
  }
}

void StateFields::ReadClass(const python::ClassDef& cls, Findings& out) {
  if (!IsStateLike(cls, facts_)) {
    return out.Decide(
        errors::kMigrateState, cls.span,
        fmt::format(
            "the state '{}' is neither a TypedDict nor a State: its fields are read as attributes",
            cls.name),
        "write it as a TypedDict, and read state[\"field\"]");
  }
  foreign_ |= std::ranges::none_of(
      cls.bases, [](const python::Expr* base) { return DottedName(base) == "State"; });
  for (const Field& field : FieldsOf(cls, facts_)) {
    if (IsBaseField(field.name)) {
      if (foreign_) CheckBaseField(field, out);
      continue;
    }
    if (field.reducer == Field::Reducer::kOther) {
      out.Decide(errors::kMigrateState, field.span,
                 fmt::format("field '{}' is put together by a function of its own", field.name),
                 "have the nodes write the whole value, and take the annotation away");
    }
    fields_.push_back(field);
  }
}

void StateFields::CheckBaseField(const Field& field, Findings& out) {
  const bool gathers = field.name == "messages" || field.name == "node_results";
  if (!gathers || field.reducer != Field::Reducer::kLast) return;
  out.Decide(errors::kMigrateState, field.span,
             fmt::format("field '{}' is replaced here, but Orcheo's state adds to it", field.name),
             "call it otherwise, or let it be added to");
}

const Field* StateFields::Find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  return found == fields_.end() ? nullptr : &*found;
}

std::string StateFields::Key(std::string_view field) const {
  std::string key(field);
  while (ids_.contains(key) || result_keys_.contains(key)) key += "_value";
  return key;
}

StateFields::Home StateFields::HomeOf(const Field& field, const std::vector<Place>& places) const {
  if (!anything_written_ && !written_.contains(field.name)) return Home::kInputs;
  const bool before = !places.empty() && std::ranges::all_of(places, [&](const Place& place) {
    return WrittenBefore(field.name, place);
  });
  return before ? Home::kResults : Home::kEither;
}

bool StateFields::WrittenBefore(std::string_view field, const Place& place) const {
  if (place.id == kStart) return false;
  for (const Node& node : place.graph->nodes) {
    const auto found = writes_.find({place.graph, node.id});
    if (found == writes_.end() || !found->second.always.contains(field)) continue;
    if (node.id == place.id) {
      if (place.after) return true;
      continue;
    }
    if (!place.graph->Reached(kStart, node.id).contains(place.id)) return true;
  }
  return false;
}

StateFields::Writes StateFields::WritesOf(const Node& node) const {
  if (node.function != nullptr) return WritesOf(*node.function, 0);
  if (node.lambda == nullptr) return {};
  std::vector<Writes> ways;
  AddWrites(node.lambda->body, 0, ways);
  return ways.size() == 1 ? ways.front() : Writes{.always = {}, .sometimes = {}, .unknown = true};
}

StateFields::Writes StateFields::WritesOf(const python::FunctionDef& function, int depth) const {
  std::vector<Writes> ways;
  for (const python::Return* each : ReturnsOf(function.body)) AddWrites(each->value, depth, ways);
  if (MayFallThrough(function.body)) ways.emplace_back();
  Writes all;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    all.unknown |= ways[i].unknown;
    all.sometimes.insert(ways[i].sometimes.begin(), ways[i].sometimes.end());
    if (i == 0) {
      all.always = ways[i].always;
    } else {
      std::erase_if(all.always,
                    [&](std::string_view key) { return !ways[i].always.contains(key); });
    }
  }
  return all;
}

void StateFields::AddWrites(const python::Expr* value, int depth, std::vector<Writes>& ways) const {
  Writes way;
  if (const auto* choice = IsA<python::IfExp>(value)) {
    AddWrites(choice->body, depth, ways);
    return AddWrites(choice->orelse, depth, ways);
  }
  if (const auto* dict = IsA<python::Dict>(value)) {
    for (const python::Expr* key : dict->keys) {
      const auto text = key == nullptr ? std::nullopt : StringLiteral(*key);
      if (text) {
        way.always.insert(*text);
      } else {
        way.unknown = true;
      }
    }
    way.sometimes = way.always;
  } else if (const auto* call = IsA<python::Call>(value); call != nullptr && depth < kMaxDepth) {
    const auto found = facts_.functions.find(DottedName(call->func));
    if (found != facts_.functions.end()) {
      way = WritesOf(*found->second, depth + 1);
    } else {
      way.unknown = true;
    }
  } else if (value != nullptr) {
    const auto* constant = IsA<python::Constant>(value);
    way.unknown = constant == nullptr || constant->constant != python::ConstantKind::kNone;
  }
  ways.push_back(std::move(way));
}

}  // namespace caisson::workflow::migrate
