// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "errors/migrate.h"
#include "workflow/literal.h"

namespace caisson::workflow::migrate {
namespace {

using python::IsA;

std::uint32_t FirstLine(const python::Stmt& statement) {
  std::uint32_t line = statement.span.line;
  const auto lower = [&line](const auto& decorators) {
    for (const python::Expr* each : decorators) line = std::min(line, each->span.line);
  };
  if (const auto* function = FunctionOf(&statement)) lower(function->decorator_list);
  if (const auto* cls = IsA<python::ClassDef>(&statement)) lower(cls->decorator_list);
  return line;
}

bool Contains(const Lines& lines, std::string_view word) {
  return std::ranges::any_of(
      lines, [&](const Line& line) { return line.text.find(word) != std::string::npos; });
}

class Assembler {
 public:
  Assembler(const python::Module& module, const Subject& subject, const Built& built)
      : module_(module), subject_(subject), built_(built), in_builder_(subject.wiring.statements) {}

  Lines Run() {
    const python::Stmt* place = BuilderPlace();
    std::uint32_t above = 0;
    bool first = true;
    for (const python::Stmt* statement : module_.body) {
      const std::uint32_t line = FirstLine(*statement);
      std::uint32_t begin = subject_.source.CommentsAbove(line, above);
      if (!(after_dropped_import_ && IsImport(*statement))) Between(above, begin);
      const bool prose = first && IsProse(*statement);
      if (!prose && !imports_written_) WriteImports(*statement, begin, line);
      WriteStatement(*statement, begin, line);
      if (statement == place) WriteBuilder();
      above = std::max(above, statement->span.end_line);
      after_dropped_import_ = IsImport(*statement) && LeftOut(*statement);
      first = false;
    }
    if (!imports_written_) WriteImports();
    Between(above, subject_.source.LineCount() + 1);
    return Tidy();
  }

 private:
  static bool IsProse(const python::Stmt& statement) {
    const auto* expression = IsA<python::ExprStmt>(&statement);
    return expression != nullptr && StringLiteral(*expression->value).has_value();
  }

  static bool IsImport(const python::Stmt& statement) {
    return statement.kind == python::StmtKind::kImport ||
           statement.kind == python::StmtKind::kImportFrom;
  }

  // The builder stands where its last statement stood.
  const python::Stmt* BuilderPlace() const {
    if (subject_.wiring.builder != nullptr) return subject_.wiring.builder;
    const python::Stmt* place = nullptr;
    for (const python::Stmt* statement : module_.body) {
      if (in_builder_.contains(statement)) place = statement;
    }
    return place;
  }

  void Copy(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t line = first; line <= last; ++line) {
      lines_.push_back({std::string(subject_.source.LineText(line)), line});
    }
  }

  // Comments that belong to nothing, and empty lines.
  void Between(std::uint32_t above, std::uint32_t begin) {
    for (std::uint32_t line = above + 1; line < begin; ++line) {
      const std::string_view text = subject_.source.LineText(line);
      lines_.push_back(
          {text.find_first_not_of(" \t\f\\") == std::string_view::npos ? "" : std::string(text),
           line});
    }
  }

  void WriteImports(const python::Stmt& next, std::uint32_t& begin, std::uint32_t line) {
    if (IsImport(next) && begin < line) Copy(begin, line - 1);
    if (IsImport(next)) begin = line;
    WriteImports();
    if (!IsImport(next)) AppendNew(lines_, "\n\n", begin);
  }

  // What the result needs and the file does not import from Orcheo.
  void WriteImports() {
    imports_written_ = true;
    std::string graph;
    for (const char* name : {"END", "START", "StateGraph"}) {
      if (!Contains(built_.builder, name) || FromOrcheo(name)) continue;
      graph += fmt::format("{}{}", graph.empty() ? "" : ", ", name);
    }
    if (!graph.empty()) lines_.push_back({fmt::format("from orcheo.graph import {}", graph), 0});
    if (!FromOrcheo("State")) lines_.push_back({"from orcheo.graph.state import State", 0});
    const bool code = !built_.lambdas.empty() || !built_.classes.empty();
    if (code && !FromOrcheo("CodeNode")) lines_.push_back({"from orcheo.nodes import CodeNode", 0});
  }

  bool FromOrcheo(std::string_view name) const {
    const auto found = subject_.facts.imports.find(name);
    return found != subject_.facts.imports.end() && found->second.FromOrcheo() &&
           found->second.name == name;
  }

  void WriteStatement(const python::Stmt& statement, std::uint32_t begin, std::uint32_t line) {
    if (const auto* function = FunctionOf(&statement)) return WriteFunction(*function, begin, line);
    if (IsImport(statement) && begin < line) Copy(begin, line - 1);
    if (in_builder_.contains(&statement) || IsMainGuard(statement) || LeftOut(statement)) return;
    if (IsA<python::ExprStmt>(&statement) != nullptr && !IsProse(statement)) {
      subject_.out.Decide(
          errors::kMigrateConstruct, statement.span,
          "the module does something when it is loaded, and a workflow file is never run",
          "take it away, or do it in a node");
    }
    Copy(IsImport(statement) ? line : begin, statement.span.end_line);
  }

  bool LeftOut(const python::Stmt& statement) const {
    switch (statement.kind) {
      case python::StmtKind::kImport:
        return !StaysImported(python::As<python::Import>(&statement)->names);
      case python::StmtKind::kImportFrom: {
        const auto* import = python::As<python::ImportFrom>(&statement);
        const bool orcheo = import->module == "orcheo" || import->module.starts_with("orcheo.");
        return (import->level > 0 || !orcheo) && !IsUsedUndecided(import->names);
      }
      case python::StmtKind::kAssign:
      case python::StmtKind::kAnnAssign:
        return std::ranges::none_of(subject_.facts.constants, [&](const auto& each) {
          return each.second.statement == &statement && subject_.out.IsKept(each.first);
        });
      case python::StmtKind::kPass:
      case python::StmtKind::kTypeAlias:
        return true;
      case python::StmtKind::kClassDef: {
        const auto* cls = python::As<python::ClassDef>(&statement);
        const bool single = cls->bases.size() == 1 && cls->keywords.empty();
        const std::string base = single ? DottedName(cls->bases[0]) : std::string();
        return base != "CodeNode" && base != "BaseModel" && !subject_.out.IsKept(cls->name);
      }
      default:
        return false;
    }
  }

  bool StaysImported(python::List<python::Alias*> names) const {
    const bool orcheo = std::ranges::all_of(names, [](const python::Alias* each) {
      return each->name == "orcheo" || each->name.starts_with("orcheo.");
    });
    return orcheo || IsUsedUndecided(names);
  }

  bool IsUsedUndecided(python::List<python::Alias*> names) const {
    return std::ranges::any_of(names, [this](const python::Alias* each) {
      const std::string_view bound = each->asname.data() != nullptr
                                         ? each->asname
                                         : each->name.substr(0, each->name.find('.'));
      return subject_.out.IsKept(bound);
    });
  }

  void WriteFunction(const python::FunctionDef& function, std::uint32_t begin, std::uint32_t line) {
    if (&function == subject_.wiring.builder) {
      Copy(begin, line - 1);
      return;
    }
    const auto cls = built_.classes.find(&function);
    if (cls == built_.classes.end() || subject_.facts.functions.at(function.name) != &function)
      return;
    if (begin < line) Copy(begin, line - 1);
    Append(lines_, cls->second);
  }

  void WriteBuilder() {
    for (const Lines& cls : built_.lambdas) {
      if (subject_.wiring.builder == nullptr) AppendNew(lines_, "\n\n");
      Append(lines_, cls);
      if (subject_.wiring.builder != nullptr) AppendNew(lines_, "\n\n");
    }
    if (subject_.wiring.builder == nullptr) AppendNew(lines_, "\n\n");
    Append(lines_, built_.builder);
  }

  // No more than two empty lines one after the other, none at the beginning and the end; two before
  // what is defined.
  Lines Tidy() {
    Lines tidy;
    std::size_t empty = 0;
    for (Line& line : lines_) {
      const bool blank = line.text.empty();
      empty = blank ? empty + 1 : 0;
      if (blank && (empty > 2 || tidy.empty())) continue;
      const bool defines = line.text.starts_with("class ") || line.text.starts_with("def ");
      if (defines && !tidy.empty()) Pad(tidy);
      tidy.push_back(std::move(line));
    }
    while (!tidy.empty() && tidy.back().text.empty()) tidy.pop_back();
    return tidy;
  }

  static void Pad(Lines& lines) {
    auto at = lines.end();
    while (at != lines.begin() && std::prev(at)->text.starts_with('#')) --at;
    if (at == lines.begin()) return;
    const bool attached = at != lines.end();
    std::size_t blank = 0;
    for (auto each = at; each != lines.begin() && std::prev(each)->text.empty(); --each) ++blank;
    if (attached && blank == 0) return;
    for (; blank < 2; ++blank) at = lines.insert(at, Line{});
  }

  const python::Module& module_;
  const Subject& subject_;
  const Built& built_;
  const std::set<const python::Stmt*>& in_builder_;
  Lines lines_;
  bool imports_written_ = false;
  bool after_dropped_import_ = false;
};

}  // namespace

Lines Assemble(const python::Module& module, const Subject& subject, const Built& built) {
  return Assembler(module, subject, built).Run();
}

}  // namespace caisson::workflow::migrate
