// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/class_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"

namespace caisson::workflow::migrate {
namespace {

using python::IsA;

constexpr std::size_t kMember = 4, kBody = 8;

class Writer {
 public:
  Writer(const Subject& subject, std::string_view name, std::vector<Place> places)
      : subject_(subject), name_(name), edits_(subject, std::move(places)) {}

  Lines Function(const python::FunctionDef& function, Role role) {
    const auto [state, config] = StateAndConfig(function);
    edits_.AddFunction(function, role, state, config);
    const auto helpers = edits_.AddHelpers();
    Head();
    Prose(function);
    for (const auto& [own, given] : {std::pair{state, "state"}, std::pair{config, "config"}}) {
      if (!own.empty() && own != given)
        Add(fmt::format("        {} = {}", own, given), function.span.line);
    }
    Locals();
    Definitions(helpers, function);
    Body(function);
    if (MayFallThrough(function.body)) {
      Add(role == Role::kRoute ? "        return {\"route\": None}" : "        return {}",
          function.span.end_line);
    }
    return std::move(lines_);
  }

  Lines Lambda(const python::Lambda& lambda, Role role) {
    const std::string_view state =
        lambda.args->args.empty() ? std::string_view() : lambda.args->args[0]->arg;
    edits_.AddLambda(lambda, role, state);
    const auto helpers = edits_.AddHelpers();
    Head();
    if (!state.empty() && state != "state")
      Add(fmt::format("        {} = state", state), lambda.span.line);
    Locals();
    for (const python::FunctionDef* helper : helpers) Helper(*helper);
    const Range range = subject_.source.Of(lambda.body->span);
    Lines body =
        subject_.source.Reindent(range, edits_.edits(), Indentation(lambda.body->span.line), kBody);
    const bool brackets = body.size() <= 1 || lambda.body->kind == python::ExprKind::kDict ||
                          lambda.body->kind == python::ExprKind::kCall;
    body.front().text.insert(kBody, brackets ? "return " : "return (");
    if (!brackets) body.back().text += ")";
    Append(lines_, body);
    return std::move(lines_);
  }

 private:
  void Add(std::string text, std::uint32_t origin) { lines_.push_back({std::move(text), origin}); }

  std::size_t Indentation(std::uint32_t line) const {
    return std::min(subject_.source.LineText(line).find_first_not_of(" \t"),
                    subject_.source.LineText(line).size());
  }

  std::pair<std::string_view, std::string_view> StateAndConfig(
      const python::FunctionDef& function) {
    const python::Arguments& arguments = *function.args;
    std::vector<const python::Arg*> all(arguments.posonlyargs.begin(), arguments.posonlyargs.end());
    all.insert(all.end(), arguments.args.begin(), arguments.args.end());
    const bool more = all.size() > 2 || arguments.vararg != nullptr || arguments.kwarg != nullptr ||
                      !arguments.kwonlyargs.empty();
    if (more) {
      subject_.out.Decide(
          errors::kMigrateConstruct, function.span,
          fmt::format("'{}' takes more than the state and the config", function.name),
          "a node is given these two only: take the rest from the config or from constants");
    }
    return {!all.empty() ? all[0]->arg : std::string_view(),
            all.size() > 1 ? all[1]->arg : std::string_view()};
  }

  // Class line, fields and the def.
  void Head() {
    lines_.push_back({fmt::format("class {}(CodeNode):", name_), 0});
    std::vector<std::string_view> fields(edits_.fields().begin(), edits_.fields().end());
    std::ranges::sort(fields, {}, [this](std::string_view each) {
      return ConstantOf(each).statement->span.line;
    });
    for (const std::string_view each : fields) FieldText(each);
    if (!fields.empty()) Add("", 0);
    lines_.push_back({"    def run(self, state, config):", 0});
  }

  const Constant& ConstantOf(std::string_view name) const {
    return subject_.facts.constants.at(name);
  }

  void Comments(const python::Stmt& statement, std::size_t indent) {
    const Source& source = subject_.source;
    const std::uint32_t first = source.CommentsAbove(statement.span.line);
    if (first == statement.span.line) return;
    const Range range{source.LineStart(first), source.LineEnd(statement.span.line - 1)};
    Append(lines_, source.Reindent(range, {}, 0, indent));
  }

  void Assignment(std::string_view target, const Constant& constant, std::size_t indent) {
    Comments(*constant.statement, indent);
    const Source& source = subject_.source;
    const std::size_t begin = source.Of(constant.value->span).begin;
    // A value in brackets of its own begins before its node.
    const std::size_t equals = source.text().rfind('=', begin);
    const std::size_t start = source.text().find_first_not_of(" \t", equals + 1);
    Lines text =
        source.Reindent({start, source.EndWithComment(constant.statement->span)}, {}, 0, indent);
    text.front().text.insert(indent, fmt::format("{} = ", target));
    Append(lines_, text);
  }

  void FieldText(std::string_view name) {
    const Constant& constant = ConstantOf(name);
    const std::string field = BodyEdits::FieldName(name, subject_.facts);
    Assignment(field, constant, kMember);
    if (!edits_.ordered().contains(name)) return;
    std::string keys;
    const auto* dict = IsA<python::Dict>(constant.value);
    NameSet seen;
    for (const python::Expr* key : dict->keys) {
      if (!seen.insert(*StringLiteral(*key)).second) continue;
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ", Quoted(*StringLiteral(*key)));
    }
    Add(fmt::format("    {}_ORDER = [{}]", field, keys), constant.statement->span.line);
  }

  void Prose(const python::FunctionDef& function) {
    if (!HasProse(function)) return;
    const python::Stmt* prose = function.body.front();
    const Range range{subject_.source.Of(prose->span).begin,
                      subject_.source.EndWithComment(prose->span)};
    Append(lines_, subject_.source.Reindent(range, {}, prose->span.column, kBody));
  }

  static bool HasProse(const python::FunctionDef& function) {
    const auto* first = IsA<python::ExprStmt>(function.body.front());
    return first != nullptr && StringLiteral(*first->value).has_value();
  }

  void Locals() {
    std::vector<std::string_view> names(edits_.locals().begin(), edits_.locals().end());
    std::ranges::sort(
        names, {}, [this](std::string_view each) { return ConstantOf(each).statement->span.line; });
    for (const std::string_view each : names) Assignment(each, ConstantOf(each), kBody);
  }

  void Definitions(const std::vector<const python::FunctionDef*>& helpers,
                   const python::FunctionDef& function) {
    NameSet taken = Bindings(function.body);
    taken.merge(Parameters(*function.args));
    const auto check = [&](std::string_view name, const char* what) {
      const bool clash =
          taken.contains(name) || (name == "state" || name == "config" || name == "self");
      if (!clash) return;
      subject_.out.Decide(errors::kMigrateConstruct, function.span,
                          fmt::format("'{}' has a variable with the name of the {} '{}'",
                                      function.name, what, name),
                          "call one of them otherwise");
    };
    for (const std::string_view each : edits_.locals()) check(each, "constant");
    for (const python::FunctionDef* each : helpers) check(each->name, "function");
    for (const Support each : edits_.support()) {
      Separate();
      Lines text;
      AppendNew(text, SupportText(each, edits_.NameOf(each)));
      for (Line& line : text) Add(line.text.empty() ? "" : std::string(kBody, ' ') + line.text, 0);
      Add("", 0);
    }
    for (const python::FunctionDef* each : helpers) Helper(*each);
  }

  void Separate() {
    const std::string& last = lines_.back().text;
    if (!last.empty() && !last.ends_with("config):")) Add("", 0);
  }

  void Helper(const python::FunctionDef& helper) {
    Separate();
    Comments(helper, kBody);
    const Range range{subject_.source.Of(helper.span).begin,
                      subject_.source.EndWithComment(helper.span)};
    Append(lines_, subject_.source.Reindent(range, edits_.edits(), 0, kBody));
    if (MayFallThrough(helper.body)) {
      // Gives None, as it does outside.
    }
    Add("", 0);
  }

  void Body(const python::FunctionDef& function) {
    const Source& source = subject_.source;
    const std::size_t skip = HasProse(function) ? 1 : 0;
    if (function.body.size() == skip) return;
    const python::Stmt* first = function.body[skip];
    const python::Stmt* last = function.body.back();
    const bool inline_body =
        source.LineText(first->span.line).substr(0, first->span.column).find_first_not_of(" \t") !=
        std::string_view::npos;
    if (inline_body) {
      for (const python::Stmt* each : function.body.subspan(skip)) {
        Append(lines_, source.Reindent(source.Of(each->span), edits_.edits(), 0, kBody));
      }
      return;
    }
    const std::uint32_t above = skip == 1 ? function.body[0]->span.end_line : function.span.line;
    const std::uint32_t line = source.CommentsAbove(first->span.line, above);
    const Range range{source.LineStart(line), source.EndWithComment(last->span)};
    Lines body = source.Reindent(range, edits_.edits(), first->span.column, kBody);
    const auto begin =
        std::ranges::find_if(body, [](const Line& each) { return !each.text.empty(); });
    lines_.insert(lines_.end(), begin, body.end());
  }

  const Subject& subject_;
  std::string name_;
  BodyEdits edits_;
  Lines lines_;
};

}  // namespace

Lines WriteClass(const Subject& subject, const python::FunctionDef& function, std::string_view name,
                 Role role, std::vector<Place> places) {
  return Writer(subject, name, std::move(places)).Function(function, role);
}

Lines WriteClass(const Subject& subject, const python::Lambda& lambda, std::string_view name,
                 Role role, std::vector<Place> places) {
  return Writer(subject, name, std::move(places)).Lambda(lambda, role);
}

std::string ClassName(std::string_view function) {
  std::string name;
  bool upper = true;
  for (const char c : function) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0;
    if (word) name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = !word;
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    name.insert(0, "Node");
  return name;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (code < 32 || code == 127) {
      quoted += fmt::format("\\x{:02x}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace caisson::workflow::migrate
