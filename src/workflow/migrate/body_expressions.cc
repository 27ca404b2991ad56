// SPDX-License-Identifier: Apache-2.0
// Expressions that the guest cannot do, or does otherwise.
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

namespace {

const python::Keyword* FindKeyword(const python::Call& call, std::string_view name) {
  const auto found = std::ranges::find(call.keywords, name, &python::Keyword::arg);
  return found == call.keywords.end() ? nullptr : *found;
}

}  // namespace

void BodyEdits::AddExpressions(NodeRef root, Scope& scope) {
  python::WalkBreadthFirst(root, [&](NodeRef node) {
    if (node.expr() != nullptr && !scope.skipped.contains(node.expr()))
      AddExpression(*node.expr(), scope);
  });
}

void BodyEdits::AddExpression(const python::Expr& expr, Scope& scope) {
  switch (expr.kind) {
    case ExprKind::kAwait:
      return AddAwait(*As<python::Await>(&expr), scope);
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return Decide(errors::kMigrateConstruct, expr.span, "a node gives its results one by one",
                    "collect them in a list, and return it");
    case ExprKind::kCall:
      return AddCall(*As<python::Call>(&expr), scope);
    case ExprKind::kDict:
      CheckOrder(expr);
      return AddDisplay(*As<python::Dict>(&expr));
    case ExprKind::kDictComp:
      return CheckOrder(expr);
    case ExprKind::kList:
      return AddStarred(As<python::ListExpr>(&expr)->elts, expr, "list");
    case ExprKind::kTuple:
      return AddStarred(As<python::Tuple>(&expr)->elts, expr, "tuple");
    case ExprKind::kFormattedValue:
      return NoteFormat(*As<python::FormattedValue>(&expr));
    case ExprKind::kName:
      if (scope.dicts.contains(As<python::Name>(&expr)->id)) CheckOrder(expr);
      return;
    default:
      return;
  }
}

// `items` is a dict, or a call that gives its items (d.items()).
void BodyEdits::CheckOrder(const python::Expr& items) {
  const auto parent = subject_.facts.parents.find(&items);
  if (parent == subject_.facts.parents.end()) return;
  const auto* loop = IsA<python::For>(parent->second.stmt());
  const auto* call = IsA<python::Call>(parent->second.expr());
  const bool is_call = items.kind == ExprKind::kCall && !GivesDict(&items);
  bool goes_over = loop != nullptr && loop->iter == &items;
  if (const python::Comprehension* each = parent->second.comprehension())
    goes_over |= each->iter == &items;
  if (call != nullptr && call->func != &items) {
    static constexpr std::string_view kConsumers[] = {"enumerate", "iter", "list",     "max",
                                                      "min",       "next", "reversed", "str",
                                                      "tuple",     "zip",  "map",      "filter"};
    const auto* method = IsA<python::Attribute>(call->func);
    goes_over |= std::ranges::find(kConsumers, DottedName(call->func)) != std::end(kConsumers);
    goes_over |= method != nullptr && method->attr == "join";
  }
  const python::Expr* outer = parent->second.expr();
  goes_over |= outer != nullptr && outer->kind == ExprKind::kFormattedValue;
  if (!goes_over && !is_call) return;
  switch (OrderOf(&items, subject_.facts)) {
    case Order::kHidden:
      return;
    case Order::kTies:
      return subject_.out.Note(errors::kMigrateOrder, items.span,
                               "among equal elements, and in the last digit of a sum, the order of "
                               "the dict decides, which the guest's dicts do not keep",
                               "add a tie-breaker to the key, or go over the sorted keys");
    case Order::kShows:
      return Decide(
          errors::kMigrateOrder, items.span,
          "the order of a dict shows in what is made of it, and the guest's dicts do not keep it",
          "go over sorted(...), or keep a list of the keys");
  }
}

void BodyEdits::AddAwait(const python::Await& await, Scope& scope) {
  const auto* call = IsA<python::Call>(await.value);
  if (call != nullptr && subject_.facts.functions.contains(DottedName(call->func))) {
    return edits_.Erase({Of(await).begin, Of(*await.value).begin});
  }
  scope.decided.insert(&await);
  Decide(errors::kMigrateConstruct, await.span, "waits inside a node",
         "a node computes and does not wait: use a built-in node for what it waits for");
}

void BodyEdits::AddCall(const python::Call& call, Scope& scope) {
  if (const auto* method = IsA<python::Attribute>(call.func))
    return AddMethodCall(call, *method, scope);
  const auto* name = IsA<python::Name>(call.func);
  if (name == nullptr || subject_.facts.functions.contains(name->id)) return;
  if (name->id == "dict") CheckOrder(call);
  if (name->id == "sorted" && FindKeyword(call, "key") != nullptr) {
    edits_.Replace(Of(*name), Use(Support::kStableSorted));
  } else if (name->id == "round" && call.args.size() == 2) {
    const auto* digits = IsA<python::Constant>(call.args[1]);
    const bool plain = digits != nullptr && digits->constant == python::ConstantKind::kInt &&
                       digits->integer <= 15;
    if (plain) return edits_.Replace(Of(*name), Use(Support::kRounded));
    Decide(errors::kMigrateConstruct, call.span,
           "rounds to a number of digits that is not written out, which the guest does inexactly",
           "write the number of digits (0 to 15) as a literal");
  } else if (name->id == "sum" && !noted_sum_) {
    noted_sum_ = true;
    subject_.out.Note(
        errors::kMigrateDiffers, call.span,
        "CPython 3.12 adds floats with a correction, the guest without: the last digit may differ",
        "nothing is to be done for whole numbers; add in cents, or round the sum");
  }
}

void BodyEdits::AddMethodCall(const python::Call& call, const python::Attribute& method,
                              Scope& scope) {
  const Range value = Of(*method.value);
  if (method.attr == "capitalize" && call.args.empty()) {
    edits_.Open(value.begin, Use(Support::kCapitalized) + "(");
    edits_.Replace({value.end, Of(call).end}, ")");
  } else if (method.attr == "sort" && FindKeyword(call, "key") != nullptr && call.args.empty()) {
    const auto* name = IsA<python::Name>(method.value);
    const auto parent = subject_.facts.parents.find(&call);
    const bool statement = parent != subject_.facts.parents.end() &&
                           parent->second.stmt() != nullptr &&
                           parent->second.stmt()->kind == python::StmtKind::kExpr;
    if (name == nullptr || !statement) {
      return Decide(
          errors::kMigrateConstruct, call.span,
          "sorts in place, and the guest's sort does not keep the order of equal elements",
          "sort a variable in a statement of its own");
    }
    edits_.Replace({value.end, subject_.source.Of(call.keywords[0]->span).begin},
                   fmt::format("[:] = {}({}, ", Use(Support::kStableSorted), name->id));
  } else if (call.args.empty() &&
             (method.attr == "items" || method.attr == "keys" || method.attr == "values")) {
    const auto* name = IsA<python::Name>(method.value);
    const bool constant = name != nullptr && subject_.facts.constants.contains(name->id);
    if (!constant) CheckOrder(call);
  } else if ((method.attr == "upper" || method.attr == "lower") && call.args.empty() &&
             !noted_case_) {
    noted_case_ = true;
    subject_.out.Note(errors::kMigrateDiffers, call.span,
                      "the guest changes the case of ASCII letters only",
                      "nothing is to be done where the text is ASCII");
  }
  (void)scope;
}

void BodyEdits::NoteFormat(const python::FormattedValue& field) {
  const auto* spec = IsA<python::JoinedStr>(field.format_spec);
  if (spec == nullptr || noted_format_) return;
  for (const python::Expr* part : spec->values) {
    const auto text = StringLiteral(*part);
    if (!text || text->find('.') == std::string_view::npos) continue;
    noted_format_ = true;
    subject_.out.Note(errors::kMigrateDiffers, field.span,
                      "the guest writes a value that lies just between two of that many digits "
                      "rounded up, CPython to the even digit",
                      "round the value before, where that can happen");
  }
}

// {**a, "k": v, **b} -> merged(a, {"k": v}, b)
void BodyEdits::AddDisplay(const python::Dict& dict) {
  if (std::ranges::find(dict.keys, nullptr) == dict.keys.end()) return;
  const Range whole = Of(dict);
  edits_.Replace({whole.begin, whole.begin + 1}, Use(Support::kMerged) + "(");
  for (std::size_t i = 0; i < dict.keys.size(); ++i) {
    if (dict.keys[i] == nullptr) {
      const Range value = Of(*dict.values[i]);
      const std::size_t stars = subject_.source.text().rfind("**", value.begin);
      edits_.Erase({stars, stars + 2});
      continue;
    }
    if (i == 0 || dict.keys[i - 1] == nullptr) edits_.Open(Of(*dict.keys[i]).begin, "{");
    if (i + 1 == dict.keys.size() || dict.keys[i + 1] == nullptr)
      edits_.Close(Of(*dict.values[i]).end, "}");
  }
  edits_.Replace({whole.end - 1, whole.end}, ")");
}

// [*a, b] -> list(a) + [b]
void BodyEdits::AddStarred(python::List<python::Expr*> elements, const python::Expr& display,
                           std::string_view make) {
  const auto starred = [](const python::Expr* each) { return each->kind == ExprKind::kStarred; };
  if (std::ranges::none_of(elements, starred)) return;
  const bool load = display.kind == ExprKind::kList
                        ? As<python::ListExpr>(&display)->ctx == python::ExprContext::kLoad
                        : As<python::Tuple>(&display)->ctx == python::ExprContext::kLoad;
  if (!load) return;
  Decide(errors::kMigrateConstruct, display.span,
         fmt::format("unpacks into a {}, which the guest cannot", make),
         fmt::format("write {}(a) + ... instead", make));
}

}  // namespace caisson::workflow::migrate
