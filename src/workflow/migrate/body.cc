// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"
#include "workflow/migrate/foreign.h"

namespace caisson::workflow::migrate {

using python::As;
using python::ExprKind;
using python::IsA;
using python::NodeRef;

namespace {

// Modules whose uses only tell somebody something.
bool IsLogging(const python::Expr* callee, const Facts& facts) {
  if (facts.ImportedAs(callee).starts_with("logging.")) return true;
  const auto* root = RootName(callee);
  if (root == nullptr) return false;
  const auto found = facts.constants.find(root->id);
  if (found == facts.constants.end()) return false;
  const auto* made = IsA<python::Call>(found->second.value);
  return made != nullptr && facts.ImportedAs(made->func) == "logging.getLogger";
}

// Evaluating it has no effect, as far as methods of built-in types and the clock go.
bool HasNoEffect(const python::Expr& expr) {
  bool none = true;
  python::WalkBreadthFirst(&expr, [&none](NodeRef node) {
    if (node.expr() == nullptr) return;
    const ExprKind kind = node.expr()->kind;
    if (kind == ExprKind::kNamedExpr || kind == ExprKind::kAwait || kind == ExprKind::kYield ||
        kind == ExprKind::kYieldFrom) {
      none = false;
    }
    const auto* call = IsA<python::Call>(node.expr());
    if (call == nullptr) return;
    static constexpr std::string_view kHarmless[] = {
        "format", "get",   "isoformat", "items", "join",   "keys",   "len", "list",     "lower",
        "max",    "min",   "repr",      "round", "set",    "sorted", "str", "strftime", "strip",
        "sum",    "title", "type",      "upper", "values", "dict",   "int", "float"};
    const auto* method = IsA<python::Attribute>(call->func);
    const auto* name = IsA<python::Name>(call->func);
    const std::string_view callee = method != nullptr ? method->attr
                                    : name != nullptr ? name->id
                                                      : "";
    none &= std::ranges::find(kHarmless, callee) != std::end(kHarmless);
  });
  return none;
}

bool GivesDict(const python::Expr* value) {
  if (value == nullptr) return false;
  if (value->kind == ExprKind::kDict || value->kind == ExprKind::kDictComp) return true;
  const auto* call = IsA<python::Call>(value);
  return call != nullptr && DottedName(call->func) == "dict";
}

NameSet DictsOf(NodeRef root) {
  NameSet dicts;
  const auto add = [&dicts](const python::Expr* target, bool dict) {
    const auto* name = IsA<python::Name>(target);
    if (name != nullptr && dict) dicts.insert(name->id);
  };
  python::WalkBreadthFirst(root, [&](NodeRef node) {
    if (const auto* assign = IsA<python::Assign>(node.stmt())) {
      for (const python::Expr* target : assign->targets) add(target, GivesDict(assign->value));
    } else if (const auto* annotated = IsA<python::AnnAssign>(node.stmt())) {
      const auto* generic = IsA<python::Subscript>(annotated->annotation);
      const std::string type =
          DottedName(generic != nullptr ? generic->value : annotated->annotation);
      add(annotated->target, GivesDict(annotated->value) || type == "dict" || type == "Dict");
    }
  });
  return dicts;
}

const python::Keyword* FindKeyword(const python::Call& call, std::string_view name) {
  const auto found = std::ranges::find(call.keywords, name, &python::Keyword::arg);
  return found == call.keywords.end() ? nullptr : *found;
}

}  // namespace

std::string BodyEdits::FieldName(std::string_view constant, const Facts& facts) {
  std::string_view bare = constant;
  while (bare.starts_with('_')) bare.remove_prefix(1);
  std::string name(bare);
  if (name.empty() || name == "name" || name == "run") name += "value";
  while (name != constant && facts.names.contains(name)) name += "_value";
  return name;
}

std::string BodyEdits::Use(Support support) {
  support_.insert(support);
  return std::string(SupportName(support));
}

// ---- whole functions ---------------------------------------------------------------------------

void BodyEdits::AddFunction(const python::FunctionDef& function, Role role, std::string_view state,
                            std::string_view config) {
  Scope scope{.role = role,
              .state = state,
              .config = config,
              .dicts = DictsOf(&function),
              .skipped = {},
              .decided = {}};
  for (const python::Expr* decorator : function.decorator_list) {
    const std::string meaning = subject_.facts.ImportedAs(
        decorator->kind == ExprKind::kCall ? As<python::Call>(decorator)->func : decorator);
    Decide(errors::kMigrateConstruct, decorator->span,
           fmt::format(
               "'{}' is decorated: {}", function.name,
               meaning.empty() ? "decorators are not allowed" : DescribeForeign(meaning).message),
           meaning.empty() ? "take the decorator away, and write out what it does"
                           : DescribeForeign(meaning).hint);
  }
  NameSet bound = Bindings(function.body);
  if (subject_.fields.own() && bound.contains(state)) {
    Decide(errors::kMigrateState, function.span,
           fmt::format("'{}' gives its parameter '{}' another value", function.name, state),
           "use a variable of another name");
  }
  bound.merge(Parameters(*function.args));
  if (bound.contains("self")) {
    Decide(errors::kMigrateConstruct, function.span,
           fmt::format("'{}' has a variable called self", function.name),
           "self is the node: call the variable otherwise");
  }
  if (role != Role::kHelper || updaters_.contains(&function)) AddReturns(function.body, scope);
  if (role == Role::kHelper) {
    StripAnnotations(*function.args, scope);
    if (function.returns != nullptr) {
      const Range returns = Of(*function.returns);
      std::size_t begin = subject_.source.text().rfind("->", returns.begin);
      while (begin > 0 && subject_.source.text()[begin - 1] == ' ') --begin;
      edits_.Erase({begin, returns.end});
    }
    if (function.kind == python::StmtKind::kAsyncFunctionDef) {
      const std::size_t begin = subject_.source.Of(function.span).begin;
      edits_.Erase({begin, subject_.source.text().find("def", begin)});
    }
    for (const python::Expr* value : function.args->defaults) AddScope(value, {}, scope);
  }
  AddBlock(function.body, scope);
  for (const python::Stmt* statement : function.body) {
    AddScope(statement, bound, scope);
    DecideLateUses(statement, scope);
  }
}

void BodyEdits::AddLambda(const python::Lambda& lambda, Role role, std::string_view state) {
  Scope scope{
      .role = role, .state = state, .config = {}, .dicts = {}, .skipped = {}, .decided = {}};
  if (role == Role::kRoute) {
    edits_.Wrap(Of(*lambda.body), "{\"route\": ", "}");
  } else {
    AddUpdate(lambda.body, scope);
  }
  AddScope(std::as_const(lambda.body), Parameters(*lambda.args), scope);
}

void BodyEdits::AddScope(NodeRef root, const NameSet& bound, Scope scope_in) {
  Scope& scope = scope_in;
  AddExpressions(root, scope);
  AddGlobals(root, bound, scope);
  AddStateUses(root, bound, scope);
  decided_.insert(scope.decided.begin(), scope.decided.end());
}

std::vector<const python::FunctionDef*> BodyEdits::AddHelpers() {
  std::vector<const python::FunctionDef*> helpers;
  while (!waiting_.empty()) {
    const python::FunctionDef* helper = waiting_.back();
    waiting_.pop_back();
    helpers.push_back(helper);
    AddFunction(*helper, Role::kHelper, helpers_[helper].value_or(""), {});
  }
  std::ranges::sort(helpers, {}, [](const python::FunctionDef* each) { return each->span.line; });
  return helpers;
}

void BodyEdits::StripAnnotations(const python::Arguments& arguments, Scope& scope) {
  const auto strip = [&](const python::Arg* arg) {
    if (arg == nullptr || arg->annotation == nullptr) return;
    const Range whole = subject_.source.Of(arg->span);
    edits_.Erase({whole.begin + arg->arg.size(), Of(*arg->annotation).end});
    Skip(std::as_const(arg->annotation), scope);
  };
  for (const auto list : {arguments.posonlyargs, arguments.args, arguments.kwonlyargs}) {
    for (const python::Arg* arg : list) strip(arg);
  }
  strip(arguments.vararg);
  strip(arguments.kwarg);
}

// ---- statements --------------------------------------------------------------------------------

void BodyEdits::Skip(NodeRef root, Scope& scope) {
  python::WalkBreadthFirst(root, [&scope](NodeRef node) {
    if (node.expr() != nullptr) scope.skipped.insert(node.expr());
  });
}

void BodyEdits::Remove(const python::Stmt& statement, bool alone) {
  const Source& source = subject_.source;
  Range range = source.Of(statement.span);
  const std::size_t start = source.LineStart(statement.span.line);
  const bool first = source.text().substr(start, range.begin - start).find_first_not_of(" \t") ==
                     std::string_view::npos;
  const std::size_t end = source.EndWithComment(statement.span);
  const bool last = end == source.text().size() || source.text()[end] == '\n';
  if (alone || !first || !last) return edits_.Replace(range, "pass");
  edits_.Erase({start, std::min(end + 1, source.text().size())});
}

void BodyEdits::AddBlock(python::List<python::Stmt*> block, Scope& scope) {
  const auto removable = [&](const python::Stmt* statement) {
    const auto* annotated = IsA<python::AnnAssign>(statement);
    if (annotated != nullptr && annotated->value == nullptr) return true;
    if (statement->kind == python::StmtKind::kImport ||
        statement->kind == python::StmtKind::kImportFrom)
      return true;
    const auto* expression = IsA<python::ExprStmt>(statement);
    const auto* call = expression == nullptr ? nullptr : IsA<python::Call>(expression->value);
    return call != nullptr &&
           (DottedName(call->func) == "print" || IsLogging(call->func, subject_.facts));
  };
  const bool all = std::ranges::all_of(block, removable);
  bool first = true;
  for (const python::Stmt* statement : block) {
    AddStatement(*statement, all && first, scope);
    first = false;
  }
}

void BodyEdits::AddStatement(const python::Stmt& statement, bool alone, Scope& scope) {
  using python::StmtKind;
  switch (statement.kind) {
    case StmtKind::kImport:
    case StmtKind::kImportFrom:
      return Remove(statement, alone);
    case StmtKind::kGlobal:
      return Decide(errors::kMigrateModuleState, statement.span,
                    "a variable of the module is changed by a node: it would outlive the run",
                    "return it in the update and read it from node_results, or keep it in a store");
    case StmtKind::kAnnAssign: {
      const auto* annotated = As<python::AnnAssign>(&statement);
      Skip(std::as_const(annotated->annotation), scope);
      if (annotated->value == nullptr) return Remove(statement, alone);
      return edits_.Erase({Of(*annotated->target).end, Of(*annotated->annotation).end});
    }
    case StmtKind::kExpr:
      DropPrint(*As<python::ExprStmt>(&statement), alone, scope);
      return;
    case StmtKind::kFunctionDef:
    case StmtKind::kAsyncFunctionDef: {
      const auto* function = As<python::FunctionDef>(&statement);
      StripAnnotations(*function->args, scope);
      if (function->returns != nullptr) Skip(std::as_const(function->returns), scope);
      return AddBlock(function->body, scope);
    }
    case StmtKind::kFor:
      AddBlock(As<python::For>(&statement)->body, scope);
      if (!As<python::For>(&statement)->orelse.empty())
        AddBlock(As<python::For>(&statement)->orelse, scope);
      return;
    case StmtKind::kWhile:
      AddBlock(As<python::While>(&statement)->body, scope);
      if (!As<python::While>(&statement)->orelse.empty())
        AddBlock(As<python::While>(&statement)->orelse, scope);
      return;
    case StmtKind::kIf:
      AddBlock(As<python::If>(&statement)->body, scope);
      if (!As<python::If>(&statement)->orelse.empty())
        AddBlock(As<python::If>(&statement)->orelse, scope);
      return;
    case StmtKind::kWith:
      return AddBlock(As<python::With>(&statement)->body, scope);
    case StmtKind::kTry: {
      const auto* attempt = As<python::Try>(&statement);
      AddBlock(attempt->body, scope);
      for (const python::ExceptHandler* handler : attempt->handlers) AddBlock(handler->body, scope);
      if (!attempt->orelse.empty()) AddBlock(attempt->orelse, scope);
      if (!attempt->finalbody.empty()) AddBlock(attempt->finalbody, scope);
      return;
    }
    case StmtKind::kAsyncFor:
    case StmtKind::kAsyncWith:
      return Decide(errors::kMigrateConstruct, statement.span, "waits inside a node",
                    "a node computes and does not wait: use a built-in node for what it waits for");
    default:
      return;
  }
}

bool BodyEdits::DropPrint(const python::ExprStmt& statement, bool alone, Scope& scope) {
  const auto* call = IsA<python::Call>(statement.value);
  if (call == nullptr) return false;
  if (DottedName(call->func) != "print" && !IsLogging(call->func, subject_.facts)) return false;
  const auto harmless = [](const auto& values) {
    return std::ranges::all_of(values, [](const python::Expr* each) { return HasNoEffect(*each); });
  };
  const bool no_effect =
      harmless(call->args) && std::ranges::all_of(call->keywords, [](const python::Keyword* each) {
        return HasNoEffect(*each->value);
      });
  if (!no_effect) {
    Decide(errors::kMigrateConstruct, statement.span,
           "prints what a call gives, and the call may do more than that",
           "take the print away, and keep the call if it is needed");
    scope.skipped.insert(call->func);
    return true;
  }
  Skip(std::as_const(statement.value), scope);
  Remove(statement, alone);
  return true;
}

// ---- expressions -------------------------------------------------------------------------------

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

// ---- names from outside ------------------------------------------------------------------------

void BodyEdits::AddGlobals(NodeRef root, const NameSet& bound, Scope& scope) {
  for (const python::Name* name : FreeNames(root, bound)) {
    if (!scope.skipped.contains(name)) AddGlobal(*name, scope);
  }
}

void BodyEdits::AddGlobal(const python::Name& name, Scope& scope) {
  const Facts& facts = subject_.facts;
  if (subject_.wiring.graphs.contains(name.id) || subject_.wiring.compiled.contains(name.id)) {
    return Decide(errors::kMigrateConstruct, name.span, "a node uses a graph",
                  "add the graph as a node (a subgraph)");
  }
  if (const auto constant = facts.constants.find(name.id); constant != facts.constants.end()) {
    return AddConstant(name, constant->second, scope);
  }
  if (const auto function = facts.functions.find(name.id); function != facts.functions.end()) {
    return AddHelperUse(name, *function->second, scope);
  }
  if (facts.classes.contains(name.id)) {
    subject_.out.Keep(name.id);
    scope.decided.insert(&name);
    return Decide(errors::kMigrateConstruct, name.span,
                  fmt::format("a node uses the class '{}'", name.id),
                  "write what it holds as a dict, and what it does as functions");
  }
  if (facts.imports.contains(name.id)) AddImport(name, scope);
}

void BodyEdits::AddImport(const python::Name& name, Scope& scope) {
  const python::Expr* use = &name;
  while (const auto* attribute = IsA<python::Attribute>(subject_.facts.ParentExpr(use))) {
    if (attribute->value != use) break;
    use = attribute;
  }
  if (subject_.facts.IsLangGraph(use, "END")) return edits_.Replace(Of(*use), "\"__end__\"");
  if (subject_.facts.IsLangGraph(use, "START")) return edits_.Replace(Of(*use), "\"__start__\"");
  const std::string meaning = subject_.facts.ImportedAs(use);
  if (ReplaceImport(*use, meaning)) return;
  subject_.out.Keep(name.id);
  scope.decided.insert(&name);
  ForeignUse foreign = DescribeForeign(meaning);
  Decide(errors::kMigrateImport, use->span, std::move(foreign.message), std::move(foreign.hint));
}

bool BodyEdits::ReplaceImport(const python::Expr& use, const std::string& meaning) {
  static constexpr std::pair<std::string_view, std::string_view> kValues[] = {
      {"math.e", "2.718281828459045"},
      {"math.inf", "float(\"inf\")"},
      {"math.pi", "3.141592653589793"},
      {"math.tau", "6.283185307179586"}};
  for (const auto& [name, text] : kValues) {
    if (meaning == name) {
      edits_.Replace(Of(use), std::string(text));
      return true;
    }
  }
  const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(&use));
  if (call == nullptr || call->func != &use || call->args.size() != 1) return false;
  const Range whole = Of(*call), argument = Of(*call->args[0]);
  const auto wrap = [&](std::string before, std::string after) {
    edits_.Replace({whole.begin, argument.begin}, std::move(before));
    edits_.Replace({argument.end, whole.end}, std::move(after));
    return true;
  };
  if (call->args[0]->kind == ExprKind::kStarred || call->args[0]->kind == ExprKind::kGeneratorExp)
    return false;
  if (meaning == "json.dumps" && call->keywords.size() == 1 &&
      call->keywords[0]->arg == "sort_keys") {
    const auto* sorted = IsA<python::Constant>(call->keywords[0]->value);
    if (sorted == nullptr || sorted->constant != python::ConstantKind::kTrue) return false;
    return wrap(Use(Support::kJsonText) + "(", ")");
  }
  if (!call->keywords.empty()) return false;
  if (meaning == "math.floor") return wrap("int((", ") // 1)");
  if (meaning == "math.ceil") return wrap("(-int(-(", ") // 1))");
  if (meaning == "math.trunc") return wrap("int(", ")");
  return meaning == "math.fabs" && wrap("abs(float(", "))");
}

void BodyEdits::AddConstant(const python::Name& name, const Constant& constant, Scope& scope) {
  if (constant.changed || constant.kind == Constant::Kind::kForeign) subject_.out.Keep(name.id);
  if (constant.changed) {
    scope.decided.insert(&name);
    return Decide(
        errors::kMigrateModuleState, name.span,
        fmt::format("'{}' is changed while the workflow runs: it would outlive the run", name.id),
        "keep it in what the nodes return, or in a store");
  }
  if (constant.kind == Constant::Kind::kForeign) {
    scope.decided.insert(&name);
    const auto* root = RootName(constant.value);
    if (root != nullptr) subject_.out.Keep(root->id);
    const auto* made = IsA<python::Call>(constant.value);
    const python::Expr* what = made != nullptr ? made->func : constant.value;
    const std::string meaning = root != nullptr ? subject_.facts.ImportedAs(what) : std::string();
    const ForeignUse foreign =
        meaning.empty()
            ? ForeignUse{fmt::format("'{}' is no value that can be written out", name.id),
                         "write its value as a literal"}
            : DescribeForeign(meaning);
    Decide(errors::kMigrateImport, name.span, foreign.message, foreign.hint);
    return Decide(errors::kMigrateImport, constant.value->span, foreign.message, foreign.hint);
  }
  if (constant.kind == Constant::Kind::kLocal) {
    locals_.insert(name.id);
    if (GivesDict(constant.value)) CheckOrder(name);
    return;
  }
  fields_.insert(name.id);
  const std::string field = FieldName(name.id, subject_.facts);
  if (constant.value->kind == ExprKind::kDict) return AddOrdered(name, name.id, field);
  edits_.Replace(Of(name), "self." + field);
}

// A constant dict that is gone over gets a list of its keys beside it.
void BodyEdits::AddOrdered(const python::Name& name, std::string_view constant,
                           const std::string& field) {
  const Facts& facts = subject_.facts;
  const auto* method = IsA<python::Attribute>(facts.ParentExpr(&name));
  const auto* call = method == nullptr ? nullptr : IsA<python::Call>(facts.ParentExpr(method));
  const bool called = call != nullptr && call->func == method && call->args.empty();
  const std::string self = "self." + field, keys = self + "_ORDER";
  if (called && (method->attr == "items" || method->attr == "keys" || method->attr == "values")) {
    if (OrderOf(call, facts) == Order::kHidden) return edits_.Replace(Of(name), self);
    ordered_.insert(constant);
    if (method->attr == "keys") return edits_.Replace(Of(*call), keys);
    const std::string what =
        method->attr == "items" ? fmt::format("(key, {}[key])", self) : self + "[key]";
    return edits_.Replace(Of(*call), fmt::format("[{} for key in {}]", what, keys));
  }
  const auto parent = facts.parents.find(&name);
  const bool subscript =
      method == nullptr && IsA<python::Subscript>(facts.ParentExpr(&name)) != nullptr;
  const auto* outer = IsA<python::Call>(facts.ParentExpr(&name));
  const auto* loop =
      parent == facts.parents.end() ? nullptr : IsA<python::For>(parent->second.stmt());
  const bool in_comprehension = parent != facts.parents.end() &&
                                parent->second.comprehension() != nullptr &&
                                parent->second.comprehension()->iter == &name;
  const bool goes_over = (loop != nullptr && loop->iter == &name) || in_comprehension ||
                         (outer != nullptr && (DottedName(outer->func) == "list" ||
                                               DottedName(outer->func) == "enumerate" ||
                                               DottedName(outer->func) == "tuple"));
  if (subscript || !goes_over || OrderOf(&name, facts) == Order::kHidden) {
    edits_.Replace(Of(name), self);
    if (!subscript && !goes_over) CheckOrder(name);
    return;
  }
  ordered_.insert(constant);
  edits_.Replace(Of(name), keys);
}

void BodyEdits::AddHelperUse(const python::Name& name, const python::FunctionDef& helper,
                             Scope& scope) {
  if (subject_.wiring.builder == &helper || subject_.wiring.other_builders.contains(&helper)) {
    return Decide(errors::kMigrateConstruct, name.span, "a node builds a graph",
                  "add the graph as a node (a subgraph)");
  }
  std::optional<std::string_view> state;
  const auto* call = IsA<python::Call>(subject_.facts.ParentExpr(&name));
  if (call != nullptr && call->func == &name && !scope.state.empty()) {
    const auto is_state = [&](const python::Expr* value) {
      const auto* argument = IsA<python::Name>(value);
      return argument != nullptr && argument->id == scope.state;
    };
    for (std::size_t i = 0; i < call->args.size() && i < helper.args->args.size(); ++i) {
      if (is_state(call->args[i])) state = helper.args->args[i]->arg;
    }
    for (const python::Keyword* keyword : call->keywords) {
      if (is_state(keyword->value)) state = keyword->arg;
    }
  }
  const auto [found, added] = helpers_.emplace(&helper, state);
  if (added) waiting_.push_back(&helper);
  if (!added && found->second != state && subject_.fields.own()) {
    Decide(
        errors::kMigrateState, name.span,
        fmt::format("'{}' gets the state in one place and something else in another", helper.name),
        "give it what it needs of the state, instead of the state");
  }
}

// x = requests.get(...), then x.raise_for_status(): part of the same decision.
void BodyEdits::DecideLateUses(NodeRef root, Scope& scope) {
  const auto holds_decided = [&](const python::Expr* value) {
    bool found = false;
    if (value == nullptr) return false;
    python::WalkBreadthFirst(value, [&](NodeRef node) {
      found |= node.expr() != nullptr && decided_.contains(node.expr());
    });
    return found;
  };
  const auto mark = [&](const python::Expr* target, const python::Expr* value) {
    const auto* name = IsA<python::Name>(target);
    if (name != nullptr && holds_decided(value)) late_.insert(name->id);
  };
  python::WalkBreadthFirst(root, [&](NodeRef node) {
    if (const auto* assign = IsA<python::Assign>(node.stmt())) {
      for (const python::Expr* target : assign->targets) mark(target, assign->value);
    }
    if (node.with_item() != nullptr)
      mark(node.with_item()->optional_vars, node.with_item()->context_expr);
    const auto* statement = IsA<python::ExprStmt>(node.stmt());
    if (statement == nullptr || scope.skipped.contains(statement->value)) return;
    const auto* name = RootName(statement->value);
    if (name == nullptr || !late_.contains(name->id)) return;
    Decide(errors::kMigrateConstruct, statement->span,
           fmt::format("this depends on what becomes of '{}'", name->id),
           "decide on both together");
  });
}

// ---- the state ---------------------------------------------------------------------------------

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

// ---- what is returned --------------------------------------------------------------------------

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
