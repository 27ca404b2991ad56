// SPDX-License-Identifier: Apache-2.0
// The fields of a workflow's own state class, and where they live when the state is Orcheo's own:
// what nodes write, in node_results; what only the caller gives, in inputs; else in either. Reads
// only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/migrate/facts.h"
#include "workflow/migrate/findings.h"
#include "workflow/migrate/wiring.h"

namespace caisson::workflow::migrate {

// Where code runs: in node `id`, or right after it.
struct Place {
  const GraphModel* graph;
  std::string id;
  bool after = false;
};

class StateFields {
 public:
  enum class Home : std::uint8_t { kInputs, kResults, kEither };

  StateFields(const Facts& facts, const Wiring& wiring, Findings& out);

  bool own() const { return !fields_.empty(); }
  // Whether the state class is not Orcheo's, so that its messages begin with what the caller gave.
  bool foreign() const { return foreign_; }
  const Field* Find(std::string_view name) const;
  Home HomeOf(const Field& field, const std::vector<Place>& places) const;
  std::string Key(std::string_view field) const;  // in node_results
  // Keys that some function puts into node_results.
  const std::set<std::string, std::less<>>& result_keys() const { return result_keys_; }

 private:
  struct Writes {
    std::set<std::string_view> always, sometimes;
    bool unknown = false;  // writes what cannot be seen
  };
  void CheckEntries(Findings& out) const;
  static bool WritesEntry(const python::FunctionDef& function, std::string_view id);
  void ReadClasses(const Wiring& wiring, Findings& out);
  void ReadClass(const python::ClassDef& cls, Findings& out);
  void CheckBaseField(const Field& field, Findings& out);
  Writes WritesOf(const Node& node) const;
  Writes WritesOf(const python::FunctionDef& function, int depth) const;
  void AddWrites(const python::Expr* value, int depth, std::vector<Writes>& ways) const;
  bool WrittenBefore(std::string_view field, const Place& place) const;

  const Facts& facts_;
  const Wiring& wiring_;
  std::vector<Field> fields_;
  bool foreign_ = false;
  std::set<std::string_view> written_;
  bool anything_written_ = false;
  std::map<std::pair<const GraphModel*, std::string>, Writes> writes_;
  std::set<std::string, std::less<>> result_keys_, ids_;
};

// The statements of a function's own scope that return, in order.
std::vector<const python::Return*> ReturnsOf(python::List<python::Stmt*> body);
// Whether control may reach the end of `body`.
bool MayFallThrough(python::List<python::Stmt*> body);

}  // namespace caisson::workflow::migrate
