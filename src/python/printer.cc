// SPDX-License-Identifier: Apache-2.0
// Statements and patterns; expressions are printed by ExprPrinter.
#include "python/printer.h"

#include <utility>

#include "python/print_expr.h"
#include "python/print_literals.h"

namespace caisson::python {
namespace {

class PatternPrinter {
 public:
  PatternPrinter(std::string& out, ExprPrinter& exprs) : out_(out), exprs_(exprs) {}

  void Print(const Pattern& pattern) {
    switch (pattern.kind) {
      case PatternKind::kMatchValue:
        return exprs_.Print(*As<MatchValue>(&pattern)->value, Precedence::kSum);
      case PatternKind::kMatchSingleton:
        return PrintSingleton(As<MatchSingleton>(&pattern)->value);
      case PatternKind::kMatchSequence:
        out_ += '[';
        PrintAll(As<MatchSequence>(&pattern)->patterns);
        out_ += ']';
        return;
      case PatternKind::kMatchMapping:
        return PrintMapping(*As<MatchMapping>(&pattern));
      case PatternKind::kMatchClass:
        return PrintClass(*As<MatchClass>(&pattern));
      case PatternKind::kMatchStar:
        out_ += '*';
        return PrintCapture(As<MatchStar>(&pattern)->name);
      case PatternKind::kMatchAs:
        return PrintAs(*As<MatchAs>(&pattern));
      case PatternKind::kMatchOr:
        return PrintOr(*As<MatchOr>(&pattern));
    }
  }

 private:
  void PrintAll(List<Pattern*> patterns) {
    bool first = true;
    for (const Pattern* pattern : patterns) {
      if (!std::exchange(first, false)) out_ += ", ";
      Print(*pattern);
    }
  }

  void PrintSingleton(ConstantKind value) {
    out_ += value == ConstantKind::kTrue    ? "True"
            : value == ConstantKind::kFalse ? "False"
                                            : "None";
  }

  void PrintCapture(std::string_view name) {
    if (name.empty()) {
      out_ += '_';
    } else {
      AppendIdentifier(out_, name);
    }
  }

  void PrintMapping(const MatchMapping& pattern) {
    bool first = true;
    out_ += '{';
    for (std::size_t i = 0; i < pattern.keys.size(); ++i) {
      if (!std::exchange(first, false)) out_ += ", ";
      exprs_.Print(*pattern.keys[i], Precedence::kSum);
      out_ += ": ";
      Print(*pattern.patterns[i]);
    }
    if (!pattern.rest.empty()) {
      out_ += first ? "**" : ", **";
      AppendIdentifier(out_, pattern.rest);
    }
    out_ += '}';
  }

  void PrintClass(const MatchClass& pattern) {
    exprs_.Print(*pattern.cls, Precedence::kPrimary);
    out_ += '(';
    PrintAll(pattern.patterns);
    bool first = pattern.patterns.empty();
    for (std::size_t i = 0; i < pattern.kwd_attrs.size(); ++i) {
      if (!std::exchange(first, false)) out_ += ", ";
      AppendIdentifier(out_, pattern.kwd_attrs[i]);
      out_ += '=';
      Print(*pattern.kwd_patterns[i]);
    }
    out_ += ')';
  }

  // Inside an alternative or before `as`.
  void PrintClosed(const Pattern& pattern, bool or_allowed) {
    const auto* as = IsA<MatchAs>(&pattern);
    const bool parenthesised = (as != nullptr && as->pattern != nullptr) ||
                               (!or_allowed && pattern.kind == PatternKind::kMatchOr);
    if (parenthesised) out_ += '(';
    Print(pattern);
    if (parenthesised) out_ += ')';
  }

  void PrintAs(const MatchAs& pattern) {
    if (pattern.pattern != nullptr) {
      PrintClosed(*pattern.pattern, true);
      out_ += " as ";
    }
    PrintCapture(pattern.name);
  }

  void PrintOr(const MatchOr& pattern) {
    bool first = true;
    for (const Pattern* alternative : pattern.patterns) {
      if (!std::exchange(first, false)) out_ += " | ";
      PrintClosed(*alternative, false);
    }
  }

  std::string& out_;
  ExprPrinter& exprs_;
};

class StmtPrinter {
 public:
  explicit StmtPrinter(int indent) : indent_(indent) {}

  void PrintBody(List<Stmt*> body) {
    for (const Stmt* stmt : body) Print(*stmt);
  }

  PrintedSource Take() { return std::move(printed_); }

 private:
  void Print(const Stmt& stmt);

  void StartLine(std::uint32_t source_line) {
    printed_.source_lines.push_back(source_line);
    out_.append(static_cast<std::size_t>(indent_) * 4, ' ');
  }
  void EndLine() { out_ += '\n'; }

  void Write(const Expr& expr, Precedence least) { exprs_.Print(expr, least); }
  void WriteAfter(std::string_view text, const Expr* expr, Precedence least = Precedence::kTest) {
    if (expr == nullptr) return;
    out_ += text;
    exprs_.Print(*expr, least);
  }

  void PrintBlock(List<Stmt*> body) {
    out_ += ":\n";
    ++indent_;
    PrintBody(body);
    if (body.empty()) {
      StartLine(0);
      out_ += "pass\n";
    }
    --indent_;
  }
  // `else:` and `finally:` have no position of their own; they get that of what follows.
  void PrintClause(std::string_view keyword, List<Stmt*> body) {
    if (body.empty()) return;
    StartLine(body.front()->span.line);
    out_ += keyword;
    PrintBlock(body);
  }

  void PrintAnnAssign(const AnnAssign& stmt);
  void PrintAssign(const Assign& stmt);
  void PrintAugAssign(const AugAssign& stmt);
  void PrintClass(const ClassDef& stmt);
  void PrintDecorators(List<Expr*> decorators);
  void PrintFor(const For& stmt);
  void PrintFunction(const FunctionDef& stmt);
  void PrintHandlers(const Try& stmt);
  void PrintIf(const If& stmt);
  void PrintImport(std::string_view keyword, List<Alias*> names);
  void PrintImportFrom(const ImportFrom& stmt);
  void PrintMatch(const Match& stmt);
  void PrintNames(std::string_view keyword, List<std::string_view> names);
  void PrintSimple(const Stmt& stmt);
  void PrintTry(const Try& stmt);
  void PrintTypeAlias(const TypeAlias& stmt);
  void PrintWhile(const While& stmt);
  void PrintWith(const With& stmt);

  PrintedSource printed_;
  std::string& out_ = printed_.text;
  ExprPrinter exprs_{out_};
  PatternPrinter patterns_{out_, exprs_};
  int indent_;
};

std::string_view AugmentedSpelling(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return " += ";
    case BinaryOperator::kSub:
      return " -= ";
    case BinaryOperator::kMult:
      return " *= ";
    case BinaryOperator::kMatMult:
      return " @= ";
    case BinaryOperator::kDiv:
      return " /= ";
    case BinaryOperator::kMod:
      return " %= ";
    case BinaryOperator::kPow:
      return " **= ";
    case BinaryOperator::kLShift:
      return " <<= ";
    case BinaryOperator::kRShift:
      return " >>= ";
    case BinaryOperator::kBitOr:
      return " |= ";
    case BinaryOperator::kBitXor:
      return " ^= ";
    case BinaryOperator::kBitAnd:
      return " &= ";
    case BinaryOperator::kFloorDiv:
      return " //= ";
  }
  return {};
}

void StmtPrinter::Print(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kFunctionDef:
    case StmtKind::kAsyncFunctionDef:
      return PrintFunction(*As<FunctionDef>(&stmt));
    case StmtKind::kClassDef:
      return PrintClass(*As<ClassDef>(&stmt));
    case StmtKind::kFor:
    case StmtKind::kAsyncFor:
      return PrintFor(*As<For>(&stmt));
    case StmtKind::kWhile:
      return PrintWhile(*As<While>(&stmt));
    case StmtKind::kIf:
      return PrintIf(*As<If>(&stmt));
    case StmtKind::kWith:
    case StmtKind::kAsyncWith:
      return PrintWith(*As<With>(&stmt));
    case StmtKind::kMatch:
      return PrintMatch(*As<Match>(&stmt));
    case StmtKind::kTry:
    case StmtKind::kTryStar:
      return PrintTry(*As<Try>(&stmt));
    default:
      StartLine(stmt.span.line);
      PrintSimple(stmt);
      return EndLine();
  }
}

void StmtPrinter::PrintSimple(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kReturn:
      out_ += "return";
      return WriteAfter(" ", As<Return>(&stmt)->value, Precedence::kTuple);
    case StmtKind::kDelete:
      out_ += "del ";
      return exprs_.PrintList(As<Delete>(&stmt)->targets, Precedence::kTest);
    case StmtKind::kAssign:
      return PrintAssign(*As<Assign>(&stmt));
    case StmtKind::kTypeAlias:
      return PrintTypeAlias(*As<TypeAlias>(&stmt));
    case StmtKind::kAugAssign:
      return PrintAugAssign(*As<AugAssign>(&stmt));
    case StmtKind::kAnnAssign:
      return PrintAnnAssign(*As<AnnAssign>(&stmt));
    case StmtKind::kRaise:
      out_ += "raise";
      WriteAfter(" ", As<Raise>(&stmt)->exc);
      return WriteAfter(" from ", As<Raise>(&stmt)->cause);
    case StmtKind::kAssert:
      WriteAfter("assert ", As<Assert>(&stmt)->test);
      return WriteAfter(", ", As<Assert>(&stmt)->msg);
    case StmtKind::kImport:
      return PrintImport("import ", As<Import>(&stmt)->names);
    case StmtKind::kImportFrom:
      return PrintImportFrom(*As<ImportFrom>(&stmt));
    case StmtKind::kGlobal:
      return PrintNames("global ", As<Global>(&stmt)->names);
    case StmtKind::kNonlocal:
      return PrintNames("nonlocal ", As<Nonlocal>(&stmt)->names);
    case StmtKind::kExpr:
      return Write(*As<ExprStmt>(&stmt)->value, Precedence::kStatement);
    case StmtKind::kPass:
      out_ += "pass";
      return;
    case StmtKind::kBreak:
      out_ += "break";
      return;
    case StmtKind::kContinue:
      out_ += "continue";
      return;
    default:
      return;
  }
}

// ---- simple statements --------------------------------------------------------------------------

void StmtPrinter::PrintAssign(const Assign& stmt) {
  for (const Expr* target : stmt.targets) {
    Write(*target, Precedence::kTuple);
    out_ += " = ";
  }
  Write(*stmt.value, Precedence::kStatement);
}

void StmtPrinter::PrintAugAssign(const AugAssign& stmt) {
  Write(*stmt.target, Precedence::kTest);
  out_ += AugmentedSpelling(stmt.op);
  Write(*stmt.value, Precedence::kStatement);
}

void StmtPrinter::PrintAnnAssign(const AnnAssign& stmt) {
  // `(x): int` annotates without declaring x.
  const bool parenthesised = !stmt.simple && IsA<Name>(stmt.target) != nullptr;
  if (parenthesised) out_ += '(';
  Write(*stmt.target, Precedence::kTest);
  if (parenthesised) out_ += ')';
  WriteAfter(": ", stmt.annotation);
  WriteAfter(" = ", stmt.value, Precedence::kStatement);
}

void StmtPrinter::PrintTypeAlias(const TypeAlias& stmt) {
  WriteAfter("type ", stmt.name);
  exprs_.PrintTypeParams(stmt.type_params);
  WriteAfter(" = ", stmt.value);
}

void StmtPrinter::PrintImport(std::string_view keyword, List<Alias*> names) {
  out_ += keyword;
  bool first = true;
  for (const Alias* alias : names) {
    if (!std::exchange(first, false)) out_ += ", ";
    AppendIdentifier(out_, alias->name);
    if (alias->asname.empty()) continue;
    out_ += " as ";
    AppendIdentifier(out_, alias->asname);
  }
}

void StmtPrinter::PrintImportFrom(const ImportFrom& stmt) {
  out_ += "from ";
  out_.append(static_cast<std::size_t>(stmt.level), '.');
  AppendIdentifier(out_, stmt.module);
  PrintImport(" import ", stmt.names);
}

void StmtPrinter::PrintNames(std::string_view keyword, List<std::string_view> names) {
  out_ += keyword;
  bool first = true;
  for (const std::string_view name : names) {
    if (!std::exchange(first, false)) out_ += ", ";
    AppendIdentifier(out_, name);
  }
}

// ---- compound statements ------------------------------------------------------------------------

void StmtPrinter::PrintDecorators(List<Expr*> decorators) {
  for (const Expr* decorator : decorators) {
    StartLine(decorator->span.line);
    WriteAfter("@", decorator);
    EndLine();
  }
}

void StmtPrinter::PrintFunction(const FunctionDef& stmt) {
  PrintDecorators(stmt.decorator_list);
  StartLine(stmt.span.line);
  out_ += stmt.kind == StmtKind::kAsyncFunctionDef ? "async def " : "def ";
  AppendIdentifier(out_, stmt.name);
  exprs_.PrintTypeParams(stmt.type_params);
  out_ += '(';
  exprs_.PrintParameters(*stmt.args);
  out_ += ')';
  WriteAfter(" -> ", stmt.returns);
  PrintBlock(stmt.body);
}

void StmtPrinter::PrintClass(const ClassDef& stmt) {
  PrintDecorators(stmt.decorator_list);
  StartLine(stmt.span.line);
  out_ += "class ";
  AppendIdentifier(out_, stmt.name);
  exprs_.PrintTypeParams(stmt.type_params);
  if (!stmt.bases.empty() || !stmt.keywords.empty()) {
    out_ += '(';
    exprs_.PrintCallArguments(stmt.bases, stmt.keywords);
    out_ += ')';
  }
  PrintBlock(stmt.body);
}

void StmtPrinter::PrintFor(const For& stmt) {
  StartLine(stmt.span.line);
  out_ += stmt.kind == StmtKind::kAsyncFor ? "async for " : "for ";
  Write(*stmt.target, Precedence::kTuple);
  WriteAfter(" in ", stmt.iter, Precedence::kTuple);
  PrintBlock(stmt.body);
  PrintClause("else", stmt.orelse);
}

void StmtPrinter::PrintWhile(const While& stmt) {
  StartLine(stmt.span.line);
  WriteAfter("while ", stmt.test, Precedence::kNamed);
  PrintBlock(stmt.body);
  PrintClause("else", stmt.orelse);
}

void StmtPrinter::PrintIf(const If& stmt) {
  std::string_view keyword = "if ";
  for (const If* branch = &stmt;;) {
    StartLine(branch->span.line);
    WriteAfter(keyword, branch->test, Precedence::kNamed);
    PrintBlock(branch->body);
    const List<Stmt*> orelse = branch->orelse;
    const If* next = orelse.size() == 1 ? IsA<If>(orelse.front()) : nullptr;
    if (next == nullptr) return PrintClause("else", orelse);
    keyword = "elif ";
    branch = next;
  }
}

void StmtPrinter::PrintWith(const With& stmt) {
  StartLine(stmt.span.line);
  out_ += stmt.kind == StmtKind::kAsyncWith ? "async with " : "with ";
  bool first = true;
  for (const WithItem* item : stmt.items) {
    if (!std::exchange(first, false)) out_ += ", ";
    // Alone, the parentheses of a tuple would be those around the list of items.
    const auto* tuple = IsA<Tuple>(item->context_expr);
    const bool doubled = stmt.items.size() == 1 && item->optional_vars == nullptr &&
                         tuple != nullptr && !tuple->elts.empty();
    if (doubled) out_ += '(';
    Write(*item->context_expr, Precedence::kTest);
    if (doubled) out_ += ')';
    WriteAfter(" as ", item->optional_vars);
  }
  PrintBlock(stmt.body);
}

void StmtPrinter::PrintMatch(const Match& stmt) {
  StartLine(stmt.span.line);
  const bool is_tuple = IsA<Tuple>(stmt.subject) != nullptr;
  WriteAfter("match ", stmt.subject, is_tuple ? Precedence::kTuple : Precedence::kNamed);
  out_ += ":\n";
  ++indent_;
  for (const MatchCase* match_case : stmt.cases) {
    StartLine(match_case->pattern->span.line);
    out_ += "case ";
    patterns_.Print(*match_case->pattern);
    WriteAfter(" if ", match_case->guard, Precedence::kNamed);
    PrintBlock(match_case->body);
  }
  --indent_;
}

void StmtPrinter::PrintHandlers(const Try& stmt) {
  for (const ExceptHandler* handler : stmt.handlers) {
    StartLine(handler->span.line);
    out_ += stmt.kind == StmtKind::kTryStar ? "except*" : "except";
    WriteAfter(" ", handler->type);
    if (!handler->name.empty()) {
      out_ += " as ";
      AppendIdentifier(out_, handler->name);
    }
    PrintBlock(handler->body);
  }
}

void StmtPrinter::PrintTry(const Try& stmt) {
  StartLine(stmt.span.line);
  out_ += "try";
  PrintBlock(stmt.body);
  PrintHandlers(stmt);
  PrintClause("else", stmt.orelse);
  PrintClause("finally", stmt.finalbody);
}

}  // namespace

PrintedSource Print(List<Stmt*> body, int indent) {
  StmtPrinter printer(indent);
  printer.PrintBody(body);
  return printer.Take();
}

std::string Print(const Module& module) { return Print(module.body).text; }

std::string Print(const Expr& expr) {
  std::string text;
  ExprPrinter(text).Print(expr, Precedence::kTest);
  return text;
}

}  // namespace caisson::python
