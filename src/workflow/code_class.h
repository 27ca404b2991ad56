// SPDX-License-Identifier: Apache-2.0
// The CodeNode classes of a file: their fields with defaults, and their body, checked once per set
// of injected fields however many nodes use the class. Keeps views of the tree and of the source,
// which must outlive it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "json/value.h"
#include "python/ast.h"
#include "workflow/body_text.h"
#include "workflow/compiler.h"
#include "workflow/diagnostic.h"
#include "workflow/grammar.h"

namespace caisson::workflow {

class CodeClass {
 public:
  CodeClass(const python::ClassDef& definition, const Grammar& grammar,
            std::vector<Diagnostic>& out);

  const python::ClassDef& definition() const { return definition_; }
  // False when it has no usable form: nodes of it are not made, and nothing is said about them.
  bool usable() const { return run_ != nullptr; }
  bool used() const { return used_; }
  const json::Object& defaults() const { return defaults_; }
  // An estimate of what each node of the class adds to the IR.
  std::size_t bytes() const { return bytes_; }

  // The fields of `self`: the class's own and those of `config`. Sorted.
  std::vector<std::string> Injected(const json::Object& config) const;

  // Checks the body for a node with these fields; says nothing that it said before. False when the
  // body breaks a rule.
  bool Check(std::string_view node_id, const std::vector<std::string>& injected,
             const CompileOptions& options, std::vector<Diagnostic>& out);

  // The body's text in the IR, and the line of the file where it begins; requires usable().
  const BodyTextResult& Body(const SourceLines& lines);

 private:
  void Collect(const python::Stmt& member, const Grammar& grammar, std::vector<Diagnostic>& out);
  void CollectField(std::string_view name, const python::Expr* value, bool refused,
                    std::vector<Diagnostic>& out);

  const python::ClassDef& definition_;
  const python::FunctionDef* run_ = nullptr;
  json::Object defaults_;
  std::vector<std::string> declared_;  // sorted, unique
  std::size_t bytes_ = 0;
  // A field whose name cannot be told: what `self` has is not known.
  bool fields_unknown_ = false;
  bool used_ = false;
  std::unordered_map<std::string, bool> checked_;  // by the injected fields
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string_view>> reported_;  // place, code
  BodyTextResult body_;
};

// By name; of several with the same name the last. Appends what fails on evaluation.
class CodeClasses {
 public:
  CodeClasses(const python::Module& module, const Grammar& grammar, std::vector<Diagnostic>& out);

  // nullptr when the file has no class of that name other than schemas.
  CodeClass* Find(std::string_view name);
  auto begin() { return classes_.begin(); }
  auto end() { return classes_.end(); }

 private:
  std::vector<CodeClass> classes_;  // in the order of the file
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace caisson::workflow
