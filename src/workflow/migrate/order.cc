// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/order.h"

#include <algorithm>
#include <array>

#include "python/walk.h"

namespace caisson::workflow::migrate {
namespace {

using python::IsA;

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

const python::Expr* KeyOf(const python::Call& call) {
  for (const python::Keyword* keyword : call.keywords) {
    if (keyword->arg == "key") return keyword->value;
  }
  return nullptr;
}

// lambda x: (…, x): equal keys mean equal elements.
bool BreaksTies(const python::Expr* key) {
  const auto* lambda = IsA<python::Lambda>(key);
  if (lambda == nullptr || lambda->args->args.size() != 1) return false;
  const auto* tuple = IsA<python::Tuple>(lambda->body);
  return tuple != nullptr && std::ranges::any_of(tuple->elts, [&](const python::Expr* each) {
           const auto* name = IsA<python::Name>(each);
           return name != nullptr && name->id == lambda->args->args[0]->arg;
         });
}

Order InCall(const python::Call& call, const Facts& facts) {
  const std::string callee = DottedName(call.func);
  if (OneOf(callee, {"len", "any", "all", "set", "frozenset", "dict"})) return Order::kHidden;
  if (OneOf(callee, {"sorted", "min", "max"})) {
    const python::Expr* key = KeyOf(call);
    return key == nullptr || BreaksTies(key) ? Order::kHidden : Order::kTies;
  }
  if (callee == "sum") return Order::kTies;
  if (OneOf(callee, {"list", "tuple"})) return OrderOf(&call, facts);
  const auto* method = IsA<python::Attribute>(call.func);
  return method != nullptr && method->attr == "update" ? Order::kHidden : Order::kShows;
}

}  // namespace

Order OrderOf(const python::Expr* items, const Facts& facts) {
  for (int depth = 0; depth < 100; ++depth) {
    const auto found = facts.parents.find(items);
    if (found == facts.parents.end()) return Order::kShows;
    const python::NodeRef parent = found->second;
    if (parent.comprehension() != nullptr) {
      const auto whole = facts.comprehensions.find(parent.comprehension());
      if (whole == facts.comprehensions.end()) return Order::kShows;
      items = whole->second;
      if (items->kind == python::ExprKind::kDictComp || items->kind == python::ExprKind::kSetComp) {
        return Order::kHidden;
      }
      continue;
    }
    if (const auto* call = IsA<python::Call>(parent.expr())) return InCall(*call, facts);
    const auto* compare = IsA<python::Compare>(parent.expr());
    return compare != nullptr && compare->left != items ? Order::kHidden : Order::kShows;
  }
  return Order::kShows;
}

bool GivesDict(const python::Expr* value) {
  if (value == nullptr) return false;
  if (value->kind == python::ExprKind::kDict || value->kind == python::ExprKind::kDictComp)
    return true;
  const auto* call = IsA<python::Call>(value);
  return call != nullptr && DottedName(call->func) == "dict";
}

}  // namespace caisson::workflow::migrate
