// SPDX-License-Identifier: Apache-2.0
// Lowers an author's `class X(BaseModel)` to the JSON Schema that the peer's model library gives
// for it, key order included, without building a class. Not a JSON Schema validator. Every
// diagnostic of a class is collected; the first is the peer's. Thread-compatible; keeps views of
// the module's tree, which must outlive it.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "python/ast.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

// The one base that makes a class a schema: exactly the bare name BaseModel.
bool IsSchemaClass(const python::ClassDef& cls);

class Schemas {
 public:
  // Collects the schema classes of a module; the last definition of a name wins.
  explicit Schemas(const python::Module& module);

  bool Contains(std::string_view name) const { return classes_.contains(name); }

  // What the grammar pass says of one schema class (requires IsSchemaClass): decorators, keywords,
  // the form of its members and their defaults. Annotations are looked at on use only.
  static void CheckGrammar(const python::ClassDef& cls, std::vector<Diagnostic>& out);

  // The JSON Schema of class `name`. Nothing (and diagnostics) when its annotations, its fields or
  // the classes it refers to break a rule.
  std::optional<json::Value> Lower(std::string_view name, std::vector<Diagnostic>& out) const;

 private:
  std::unordered_map<std::string_view, const python::ClassDef*> classes_;
};

}  // namespace caisson::workflow
