// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"
#include "workflow/migrate/route.h"
#include "workflow/registry.h"

namespace caisson::workflow::migrate {
namespace {

using python::As;
using python::IsA;
using python::NodeRef;

constexpr std::size_t kIndent = 4;

std::string Vertex(std::string_view id) {
  return id == kStart ? "START" : id == kEnd ? "END" : Quoted(id);
}

class BuilderWriter {
 public:
  explicit BuilderWriter(const Subject& subject) : subject_(subject) {
    for (const char* name : {"Any", "BaseModel", "CodeNode", "END", "Field", "Literal", "START",
                             "State", "StateGraph", "WorkflowTool"}) {
      taken_.emplace(name);
    }
    for (const std::string_view name : subject.facts.names) taken_.emplace(name);
    for (const std::string_view text : subject.facts.strings) taken_.emplace(text);
    for (const auto& [name, import] : subject.facts.imports) taken_.emplace(name);
  }

  Built Write() {
    WriteNodeClasses();
    Add("def orcheo_workflow():",
        subject_.wiring.builder == nullptr ? 0 : subject_.wiring.builder->span.line);
    const python::Stmt* last = nullptr;
    for (const Step& step : subject_.wiring.steps) {
      if (step.outermost != last) Lead(last, *step.outermost);
      last = step.outermost;
      WriteStep(step);
    }
    WriteReturn();
    return std::move(built_);
  }

 private:
  void Add(std::string text, std::uint32_t origin) {
    built_.builder.push_back({std::move(text), origin});
  }
  void Decide(const SourceSpan& span, std::string message, std::string hint) {
    subject_.out.Decide(errors::kMigrateGraph, span, std::move(message), std::move(hint));
  }

  // ---- classes ---------------------------------------------------------------------------------

  std::string Unused(std::string name, std::string_view suffix) {
    while (taken_.contains(name) || FindNodeType(name) != nullptr) name += suffix;
    taken_.insert(name);
    return name;
  }

  void WriteNodeClasses() {
    std::map<const python::FunctionDef*, std::vector<Place>> places;
    for (const auto& [name, graph] : subject_.wiring.graphs) {
      for (const Node& node : graph.nodes) {
        if (node.function != nullptr) places[node.function].push_back({&graph, node.id});
      }
    }
    for (auto& [function, where] : places) {
      const std::string name = Unused(ClassName(function->name), "Node");
      names_[function] = name;
      built_.classes[function] =
          WriteClass(subject_, *function, name, Role::kNode, std::move(where));
    }
  }

  // ---- statements ------------------------------------------------------------------------------

  // What stands above a statement: an empty line, comments.
  void Lead(const python::Stmt* last, const python::Stmt& next) {
    const Source& source = subject_.source;
    const std::uint32_t above = last == nullptr ? 0 : last->span.end_line;
    const std::uint32_t first = source.CommentsAbove(next.span.line, above);
    if (last != nullptr && first > above + 1) Add("", 0);
    if (first == next.span.line) return;
    const Range range{source.LineStart(first), source.LineEnd(next.span.line - 1)};
    Append(built_.builder, source.Reindent(range, {}, next.span.column, kIndent));
  }

  void WriteReturn() {
    const auto* builder = subject_.wiring.builder;
    if (builder != nullptr) {
      const auto* returned =
          builder->body.empty() ? nullptr : IsA<python::Return>(builder->body.back());
      if (returned != nullptr && !subject_.wiring.steps.empty()) {
        const std::uint32_t end = subject_.wiring.steps.back().outermost->span.end_line;
        if (subject_.source.CommentsAbove(returned->span.line, end) > end + 1) Add("", 0);
        const bool compiled =
            returned->value != nullptr && returned->value->kind == python::ExprKind::kCall;
        Add(fmt::format("    return {}{}", subject_.wiring.main, compiled ? ".compile()" : ""),
            returned->span.line);
        return;
      }
    } else if (!built_.builder.back().text.empty()) {
      Add("", 0);
    }
    Add(fmt::format("    return {}", subject_.wiring.main), 0);
  }

  void Put(const Step& step, const Edits& edits) {
    const Source& source = subject_.source;
    Range range = source.Of(step.statement->span);
    if (step.statement == step.outermost) range.end = source.EndWithComment(step.statement->span);
    Append(built_.builder, source.Reindent(range, edits, step.statement->span.column, kIndent));
  }

  void WriteStep(const Step& step) {
    Edits edits;
    switch (step.kind) {
      case Step::Kind::kAlias:
        return;
      case Step::Kind::kProse:
        return Put(step, edits);
      case Step::Kind::kNewGraph:
        return WriteNewGraph(step);
      case Step::Kind::kNodeVariable:
        EditConfig(*step.call, step, {}, edits);
        return Put(step, edits);
      case Step::Kind::kCall:
        break;
    }
    if (step.method == "add_node") return WriteNode(step);
    if (step.method == "add_conditional_edges" || step.method == "set_conditional_entry_point")
      return WriteBranch(step);
    if (step.method == "add_edge" && step.call->args.size() == 2) return WriteEdge(step);
    for (const python::Expr* argument : step.call->args) EditVertex(argument, step, edits);
    if (step.method == "set_entry_point" && HasSeveralEntries(step)) return WriteEntry(step);
    Put(step, edits);
  }

  // An entry point counts only where it is the one way in.
  bool HasSeveralEntries(const Step& step) const {
    const GraphModel& graph = subject_.wiring.graphs.at(step.graph);
    const auto plain =
        std::ranges::count(graph.edges, kStart, &std::pair<std::string, std::string>::first);
    return plain + std::ranges::count(graph.branches, kStart, &Branch::source) > 1;
  }

  void WriteEntry(const Step& step) {
    const auto id = step.call->args.empty() ? std::nullopt
                                            : TextOf(step.call->args[0], step.turn, subject_.facts);
    if (!id) return Put(step, {});
    Add(fmt::format("    {}.add_edge(START, {})", step.graph, Quoted(*id)),
        step.statement->span.line);
  }

  void WriteNewGraph(const Step& step) {
    const Source& source = subject_.source;
    Edits edits;
    if (const auto* annotated = IsA<python::AnnAssign>(step.statement)) {
      edits.Erase(
          {source.Of(annotated->target->span).end, source.Of(annotated->annotation->span).end});
    }
    const Range whole = source.Of(step.call->span);
    if (source.text().substr(whole.begin, whole.end - whole.begin) != "StateGraph(State)") {
      edits.Replace(whole, "StateGraph(State)");
    }
    Put(step, edits);
  }

  void EditVertex(const python::Expr* argument, const Step& step, Edits& edits) {
    const auto id = TextOf(argument, step.turn, subject_.facts);
    if (!id || argument->kind == python::ExprKind::kConstant) return;
    const std::string text = Vertex(*id);
    if (subject_.source.Text(argument->span) != text)
      edits.Replace(subject_.source.Of(argument->span), text);
  }

  void WriteEdge(const Step& step) {
    const auto* list = IsA<python::ListExpr>(Resolve(step.call->args[0], step.turn));
    Edits edits;
    if (list == nullptr) {
      for (const python::Expr* argument : step.call->args) EditVertex(argument, step, edits);
      return Put(step, edits);
    }
    std::vector<std::string> sources;
    const auto target = TextOf(step.call->args[1], step.turn, subject_.facts);
    for (const python::Expr* each : list->elts) {
      if (const auto id = TextOf(each, step.turn, subject_.facts)) sources.push_back(*id);
    }
    if (!target || sources.size() != list->elts.size()) return Put(step, edits);
    if (!subject_.wiring.graphs.at(step.graph).EndTogether(sources)) {
      Decide(step.call->span,
             fmt::format("'{}' waits for several nodes that may end in different steps", *target),
             "have them stand side by side, one step each; or keep count of them in the node that "
             "joins them");
    }
    for (const std::string& source : sources) {
      Add(fmt::format("    {}.add_edge({}, {})", step.graph, Vertex(source), Vertex(*target)),
          step.statement->span.line);
    }
  }

  void WriteNode(const Step& step) {
    Edits edits;
    const auto arguments = step.call->args;
    if (arguments.empty() || arguments.size() > 2) return Put(step, edits);
    const python::Expr* argument = arguments.back();
    const python::Expr* what = Resolve(argument, step.turn);
    const GraphModel& graph = subject_.wiring.graphs.at(step.graph);
    std::string id;
    if (arguments.size() == 2) {
      id = TextOf(arguments[0], step.turn, subject_.facts).value_or("");
      EditVertex(arguments[0], step, edits);
    }
    const Range range = subject_.source.Of(argument->span);
    const auto* name = IsA<python::Name>(what);
    if (const auto* lambda = IsA<python::Lambda>(what)) {
      const std::string cls = Unused(ClassName(id), "Node");
      built_.lambdas.push_back(WriteClass(subject_, *lambda, cls, Role::kNode, {{&graph, id}}));
      edits.Replace(range, fmt::format("{}(name={})", cls, Quoted(id)));
      return WriteOneLine(
          step, edits,
          fmt::format("    {}.add_node({}, {}(name={}))", step.graph, Quoted(id), cls, Quoted(id)));
    } else if (name != nullptr && subject_.facts.functions.contains(name->id)) {
      const auto cls = names_.find(subject_.facts.functions.at(name->id));
      if (id.empty()) id = name->id;
      if (cls != names_.end()) {
        const std::string made = fmt::format("{}(name={})", cls->second, Quoted(id));
        edits.Replace(range,
                      arguments.size() == 2 ? made : fmt::format("{}, {}", Quoted(id), made));
      }
    } else if (name != nullptr && subject_.wiring.compiled.contains(name->id)) {
      edits.Replace(range, subject_.wiring.compiled.find(name->id)->second);
    } else if (IsNodeCall(what, subject_.facts)) {
      EditConfig(*As<python::Call>(what), step, {{&graph, id}}, edits);
    }
    Put(step, edits);
  }

  // A lambda over several lines leaves nothing of them.
  void WriteOneLine(const Step& step, const Edits& edits, std::string line) {
    if (step.statement->span.line == step.statement->span.end_line) return Put(step, edits);
    Add(std::move(line), step.statement->span.line);
  }

  // ---- config of built-in nodes ----------------------------------------------------------------

  void EditConfig(const python::Call& node, const Step& step, const std::vector<Place>& places,
                  Edits& edits) {
    python::WalkBreadthFirst(&node, [&](NodeRef part) {
      if (part.expr() == nullptr || part.expr() == &node || part.expr() == node.func) return;
      if (const auto* call = IsA<python::Call>(part.expr())) EditModel(*call, edits);
      if (const auto* name = IsA<python::Name>(part.expr())) EditName(*name, step, edits);
      if (StringLiteral(*part.expr())) EditTemplates(*part.expr(), places, edits);
    });
  }

  // FieldTransform(source="a") -> {"source": "a"}
  void EditModel(const python::Call& call, Edits& edits) {
    const auto* name = IsA<python::Name>(call.func);
    if (name == nullptr || !call.args.empty() || FindNodeType(name->id) != nullptr ||
        name->id == "WorkflowTool")
      return;
    const auto import = subject_.facts.imports.find(name->id);
    if (import == subject_.facts.imports.end() || !import->second.FromOrcheo()) return;
    if (std::ranges::any_of(
            call.keywords, [](const python::Keyword* each) { return each->arg.data() == nullptr; }))
      return;
    const Source& source = subject_.source;
    const Range whole = source.Of(call.span);
    const std::size_t open = source.text().find('(', source.Of(call.func->span).end);
    edits.Replace({whole.begin, open + 1}, "{");
    for (const python::Keyword* keyword : call.keywords) {
      edits.Replace({source.Of(keyword->span).begin, source.Of(keyword->value->span).begin},
                    fmt::format("{}: ", Quoted(keyword->arg)));
    }
    edits.Replace({whole.end - 1, whole.end}, "}");
  }

  void EditName(const python::Name& name, const Step& step, Edits& edits) {
    const auto turn = step.turn.find(name.id);
    if (turn != step.turn.end() && turn->second->kind == python::ExprKind::kConstant) {
      edits.Replace(subject_.source.Of(name.span),
                    std::string(subject_.source.Text(turn->second->span)));
      return;
    }
    const auto found = subject_.facts.constants.find(name.id);
    if (found == subject_.facts.constants.end() || found->second.changed) return;
    if (found->second.kind == Constant::Kind::kForeign) return;
    edits.Replace(subject_.source.Of(name.span),
                  std::string(subject_.source.Text(found->second.value->span)));
  }

  // "{{subject}}" -> "{{inputs.subject}}" for fields that only the caller gives.
  void EditTemplates(const python::Expr& expr, const std::vector<Place>& places, Edits& edits) {
    const std::string_view text = subject_.source.Text(expr.span);
    const std::size_t base = subject_.source.Of(expr.span).begin;
    for (std::size_t at = text.find("{{"); at != std::string_view::npos;
         at = text.find("{{", at + 2)) {
      const std::size_t begin = text.find_first_not_of(' ', at + 2);
      if (begin == std::string_view::npos) return;
      const std::size_t end = std::min(text.find_first_of(" .}", begin), text.size());
      const Field* field = subject_.fields.Find(text.substr(begin, end - begin));
      if (field == nullptr) continue;
      const auto home = subject_.fields.HomeOf(*field, places);
      if (home == StateFields::Home::kInputs) {
        edits.Open(base + begin, "inputs.");
      } else if (home == StateFields::Home::kEither) {
        subject_.out.Decide(
            errors::kMigrateState, expr.span,
            fmt::format(
                "whether '{}' comes from a node or from the caller is known at run time only",
                field->name),
            "write {{node_results...}} or {{inputs...}}, or have a node write it first");
      } else if (subject_.fields.Key(field->name) != field->name) {
        edits.Replace({base + begin, base + end}, subject_.fields.Key(field->name));
      }
    }
  }

  // ---- conditional edges -----------------------------------------------------------------------

  const Branch* BranchOf(const Step& step) {
    const GraphModel& graph = subject_.wiring.graphs.at(step.graph);
    std::size_t& next = turns_[step.call];
    std::size_t seen = 0;
    for (const Branch& branch : graph.branches) {
      if (branch.call == step.call && seen++ == next) {
        ++next;
        return &branch;
      }
    }
    return nullptr;
  }

  void WriteBranch(const Step& step) {
    const Branch* branch = BranchOf(step);
    if (branch == nullptr) return Put(step, {});
    const GraphModel& graph = subject_.wiring.graphs.at(step.graph);
    const auto same = std::ranges::count(graph.branches, branch->source, &Branch::source);
    if (same > 1) {
      Decide(step.call->span,
             fmt::format("'{}' has several conditional edges, and one node may have one",
                         branch->source),
             "put the decisions into one router, or one of them behind a node of its own");
    }
    const auto mapping = MappingOf(subject_, graph, *branch);
    const Place place{&graph, branch->source, true};
    const auto path = branch->source == kStart ? std::nullopt : PlainPath(subject_, *branch, place);
    if (path) return WriteEdges(step, branch->source, *path, mapping);
    if (branch->function == nullptr && branch->lambda == nullptr) return Put(step, {});
    if (branch->source != kStart && graph.MayRunBeside(branch->source)) {
      Decide(
          step.call->span,
          fmt::format("the route behind '{}' needs a step of its own, which would shift what runs "
                      "beside it",
                      branch->source),
          "have the node return the route, and the router read it: state[\"node_results\"][...]");
    }
    const std::string base = branch->function != nullptr ? std::string(branch->function->name)
                                                         : "route_after_" + branch->source;
    const bool free = subject_.facts.strings.contains(base) || used_.contains(base) ||
                      graph.Find(base) != nullptr;
    std::string id = free ? Unused("route_" + base, "_") : base;
    used_.insert(id);
    const std::string cls = RouteClass(*branch, place, base);
    const std::uint32_t line = step.statement->span.line;
    Add(fmt::format("    {}.add_node({}, {}(name={}))", step.graph, Quoted(id), cls, Quoted(id)),
        line);
    Add(fmt::format("    {}.add_edge({}, {})", step.graph, Vertex(branch->source), Quoted(id)),
        line);
    WriteEdges(step, id, fmt::format("node_results.{}.route", id), mapping);
  }

  std::string RouteClass(const Branch& branch, const Place& place, const std::string& base) {
    const std::string cls = Unused(ClassName(base), "Route");
    if (branch.lambda != nullptr) {
      built_.lambdas.push_back(WriteClass(subject_, *branch.lambda, cls, Role::kRoute, {place}));
      return cls;
    }
    Lines text = WriteClass(subject_, *branch.function, cls, Role::kRoute, {place});
    Lines& all = built_.classes[branch.function];
    if (!all.empty()) AppendNew(all, "\n\n");
    Append(all, text);
    return cls;
  }

  void WriteEdges(const Step& step, const std::string& source, const std::string& path,
                  const std::vector<std::pair<std::string, std::string>>& mapping) {
    std::string targets;
    for (const auto& [key, target] : mapping) {
      targets += fmt::format("{}{}: {}", targets.empty() ? "" : ", ", Quoted(key), Vertex(target));
    }
    const std::uint32_t line = step.statement->span.line;
    const std::string whole =
        fmt::format("    {}.add_conditional_edges({}, {{\"path\": {}, \"mapping\": {{{}}}}})",
                    step.graph, Quoted(source), Quoted(path), targets);
    if (whole.size() <= 100) return Add(whole, line);
    Add(fmt::format("    {}.add_conditional_edges(", step.graph), line);
    Add(fmt::format("        {},", Quoted(source)), line);
    Add(fmt::format("        {{\"path\": {}, \"mapping\": {{{}}}}},", Quoted(path), targets), line);
    Add("    )", line);
  }

  const Subject& subject_;
  Built built_;
  std::map<const python::FunctionDef*, std::string> names_;
  std::map<const python::Call*, std::size_t> turns_;
  std::set<std::string, std::less<>> taken_;
  std::set<std::string> used_;
};

}  // namespace

Built Build(const Subject& subject) { return BuilderWriter(subject).Write(); }

}  // namespace caisson::workflow::migrate
