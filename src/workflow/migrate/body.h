// SPDX-License-Identifier: Apache-2.0
// The edits that turn a function of the state into what a CodeNode's run() may hold, and what else
// its class needs for that: fields, constants, helper functions. What no rule covers becomes a
// decision. One BodyEdits per class; it reads the tree and writes no text but its edits.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/migrate/facts.h"
#include "workflow/migrate/fields.h"
#include "workflow/migrate/findings.h"
#include "workflow/migrate/order.h"
#include "workflow/migrate/source.h"
#include "workflow/migrate/support.h"
#include "workflow/migrate/wiring.h"

namespace caisson::workflow::migrate {

// What a migration works on.
struct Subject {
  const Source& source;
  const Facts& facts;
  const Wiring& wiring;
  const StateFields& fields;
  Findings& out;
};

enum class Role : std::uint8_t {
  kNode,    // returns an update of the state
  kRoute,   // returns where to go
  kHelper,  // is called by one of these
};

class BodyEdits {
 public:
  BodyEdits(const Subject& subject, std::vector<Place> places)
      : subject_(subject), places_(std::move(places)) {}

  // Adds the edits of a function. `state` and `config` name the parameters that hold these.
  void AddFunction(const python::FunctionDef& function, Role role, std::string_view state,
                   std::string_view config);
  void AddLambda(const python::Lambda& lambda, Role role, std::string_view state);

  // Helpers that were met, in the order of the file; their edits are made by the call.
  std::vector<const python::FunctionDef*> AddHelpers();

  const Edits& edits() const { return edits_; }
  const std::set<std::string_view>& fields() const { return fields_; }    // constants
  const std::set<std::string_view>& ordered() const { return ordered_; }  // fields with their keys
  const std::set<std::string_view>& locals() const { return locals_; }    // constants
  const std::set<Support>& support() const { return support_; }
  // The name that a support function has here.
  std::string NameOf(Support support) const;
  // The name of the field that holds a constant.
  static std::string FieldName(std::string_view constant, const Facts& facts);

 private:
  struct Scope {
    Role role;
    std::string_view state, config;
    NameSet dicts;                          // variables that hold one
    std::set<const python::Expr*> skipped;  // in what is left out
    std::set<const python::Expr*> decided;  // a person must say what becomes of them
  };

  void AddScope(python::NodeRef root, const NameSet& bound, Scope scope);
  void AddStatements(python::NodeRef node, Scope& scope);
  void AddBlock(python::List<python::Stmt*> block, Scope& scope);
  void AddStatement(const python::Stmt& statement, bool alone, Scope& scope);
  void Remove(const python::Stmt& statement, bool alone);
  bool DropPrint(const python::ExprStmt& statement, bool alone, Scope& scope);
  void Skip(python::NodeRef root, Scope& scope);
  void StripAnnotations(const python::Arguments& arguments, Scope& scope);

  void AddExpressions(python::NodeRef root, Scope& scope);
  void AddExpression(const python::Expr& expr, Scope& scope);
  void AddCall(const python::Call& call, Scope& scope);
  void AddMethodCall(const python::Call& call, const python::Attribute& method, Scope& scope);
  void AddDisplay(const python::Dict& dict);
  void AddStarred(python::List<python::Expr*> elements, const python::Expr& display,
                  std::string_view make);
  void AddAwait(const python::Await& await, Scope& scope);
  void NoteFormat(const python::FormattedValue& field);
  void CheckOrder(const python::Expr& items);

  void AddGlobals(python::NodeRef root, const NameSet& bound, Scope& scope);
  void AddGlobal(const python::Name& name, Scope& scope);
  void AddImport(const python::Name& name, Scope& scope);
  bool ReplaceImport(const python::Expr& use, const std::string& meaning);
  void AddConstant(const python::Name& name, const Constant& constant, Scope& scope);
  void AddOrdered(const python::Name& name, std::string_view constant, const std::string& field);
  void AddHelperUse(const python::Name& name, const python::FunctionDef& helper, Scope& scope);
  void DecideLateUses(python::NodeRef root, Scope& scope);

  void AddStateUses(python::NodeRef root, const NameSet& bound, Scope& scope);
  void AddStateUse(const python::Name& name, Scope& scope);
  void AddStateCall(const python::Name& name, const python::Attribute& method, Scope& scope);
  void AddConfigUse(const python::Name& name);
  void NoteMessages(std::string_view field, const SourceSpan& span);
  std::string ReadText(std::string_view state, const Field& field, std::string_view key) const;

  void AddReturns(python::List<python::Stmt*> body, Scope& scope);
  void AddUpdate(const python::Expr* value, Scope& scope);
  void AddUpdateDict(const python::Dict& dict, Scope& scope);

  void Decide(ErrorCode code, const SourceSpan& span, std::string message, std::string hint) {
    subject_.out.Decide(code, span, std::move(message), std::move(hint));
  }
  Range Of(const python::Expr& expr) const { return subject_.source.Of(expr.span); }
  std::string Use(Support support);

  const Subject& subject_;
  std::vector<Place> places_;
  Edits edits_;
  std::set<std::string_view> fields_, ordered_, locals_;
  std::set<Support> support_;
  std::map<const python::FunctionDef*, std::optional<std::string_view>> helpers_;  // their state
  std::vector<const python::FunctionDef*> waiting_;
  std::set<const python::FunctionDef*> updaters_;  // helpers whose result is returned
  std::set<const python::Expr*> decided_;
  NameSet late_;  // variables that hold what a person must decide on
  bool noted_sum_ = false, noted_case_ = false, noted_format_ = false;
};

}  // namespace caisson::workflow::migrate
