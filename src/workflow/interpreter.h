// SPDX-License-Identifier: Apache-2.0
// Interprets graph builders statement by statement: drafts of graphs out of StateGraph(...), nodes
// and edges out of method calls. Executes nothing. Resolves what a builder returns (resolve.h).
// Internal to the compiler; keeps views of the tree. Not for use by several threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "json/value.h"
#include "python/ast.h"
#include "python/parser.h"
#include "workflow/code_class.h"
#include "workflow/compiler.h"
#include "workflow/draft.h"
#include "workflow/grammar.h"
#include "workflow/literal.h"
#include "workflow/schema.h"
#include "workflow/validate.h"

namespace caisson::workflow {

// What all builders of a file share.
struct Session {
  const CompileOptions& options;
  const Grammar& grammar;
  CodeClasses& classes;
  const Schemas& schemas;
  ModelImports imports;
  std::unordered_map<std::string_view, const python::FunctionDef*> builders;

  SourceLines lines;             // of the source
  std::vector<Diagnostic>* out;  // where diagnostics go
  ValidateHints hints;
  std::vector<std::pair<std::string, json::Value>> schemas_in_use;

  std::unordered_map<std::string_view, std::shared_ptr<FinishedGraph>> helpers;
  std::vector<std::string_view> helper_stack;
  std::unordered_map<std::string_view, std::optional<json::Value>> lowered_schemas;
  std::unordered_set<std::string_view> used_schemas;
  std::uint64_t bytes = 0;  // of the nodes made so far
  bool too_large = false;
};

class Interpreter {
 public:
  explicit Interpreter(Session& session) : session_(session) {}

  // Interprets `builder` and resolves the graph that it returns; null when there is none.
  std::shared_ptr<FinishedGraph> Run(const python::FunctionDef& builder);

 private:
  // ---- statements (interpreter.cc)
  GraphDraft* Interpret(const python::FunctionDef& builder);
  void Assign(const python::Assign& assign);
  void CallMethod(const python::Call& call);
  void AddEdge(const python::Call& call, GraphDraft& graph);
  void AddConditionalEdges(const python::Call& call, GraphDraft& graph);
  bool ReadConditionalConfig(const python::Dict& config, ConditionalEdge& edge,
                             ConditionalNames& names, GraphDraft& graph);
  bool ReadMapping(const python::Expr& expr, ConditionalEdge& edge, ConditionalNames& names);
  void SetEntryPoint(const python::Call& call, GraphDraft& graph);
  void SetFinishPoint(const python::Call& call, GraphDraft& graph);
  std::optional<std::string> PointArgument(const python::Call& call, std::string_view method);
  std::optional<std::string> Vertex(const python::Expr& expr);
  void AppendEdge(GraphDraft& graph, Edge edge, SourceSpan span, SourceSpan source,
                  SourceSpan target);
  void WarnEndpoints(std::string_view source, SourceSpan source_span, std::string_view target,
                     SourceSpan target_span);
  void WarnKeywords(const python::Call& call, std::string_view what);
  void NoteRefused(const python::Stmt& statement);
  void NoteRefusedCall(const python::Call& call, GraphDraft& graph);
  GraphDraft* Returned(const python::FunctionDef& builder, const python::Return& statement);

  // A string literal that JSON can hold, else nothing and "<what> must be a string literal".
  std::optional<std::string> Text(const python::Expr& expr, std::string_view what, ErrorCode code);
  bool CheckText(std::string_view text, SourceSpan span);

  // ---- nodes (interpret_node.cc)
  struct NodeArguments {
    std::string_view id;
    SourceSpan id_span;
    const python::Expr* node;
    bool id_from_name;
  };
  void AddNode(const python::Call& call, GraphDraft& graph);
  std::optional<NodeArguments> ReadNodeArguments(const python::Call& call);
  const python::Expr* ResolveNode(const python::Expr& expr, bool& poisoned);
  bool MakeNode(const NodeArguments& arguments, NodeDraft& node, GraphDraft& graph);
  bool MakeCodeNode(CodeClass& cls, const python::Call& call, const NodeArguments& arguments,
                    NodeDraft& node, GraphDraft& graph);
  bool MakeBuiltinNode(std::string_view type, const python::Call& call,
                       const NodeArguments& arguments, NodeDraft& node, GraphDraft& graph);
  void ReportUnknownType(std::string_view type, const python::Call& call, std::string_view id);
  // Null when `expr` is no graph; `failed` when it is one that is used wrongly.
  GraphDraft* GraphReference(const python::Expr& expr, bool& failed);
  bool ReadConfig(const python::Call& call, const NodeArguments& arguments, bool builtin,
                  json::Object& config, NodeDraft& node, GraphDraft& graph);
  void CheckName(const python::Keyword& keyword, const NodeArguments& arguments, bool& seen);
  void CheckSteps(const python::Expr& steps, std::string_view id);
  void CheckStep(const python::Dict& step, std::string_view id);
  void CheckStepType(std::string_view name, SourceSpan span, std::string_view id);
  void NoteStatePaths(const python::Expr& expr, GraphDraft& graph);
  bool Afford(std::size_t bytes, SourceSpan span);

  // ---- workflow tools and schemas (interpret_tool.cc)
  using ToolArguments = std::vector<std::pair<std::string_view, const python::Expr*>>;
  bool ReadTools(const python::Expr& expr, std::string_view node_id, std::vector<ToolDraft>& tools,
                 GraphDraft& graph);
  bool ReadTool(const python::Expr& expr, std::string_view node_id, ToolDraft& tool,
                GraphDraft& graph);
  bool ReadToolArguments(const python::Expr& expr, ToolArguments& arguments);
  bool ReadToolKeywords(const python::Call& call, ToolArguments& arguments);
  bool ReadToolDict(const python::Dict& dict, ToolArguments& arguments);
  bool AddToolArgument(ToolArguments& arguments, std::string_view key, const python::Expr& value,
                       SourceSpan span, std::string_view kind);
  bool ReadToolText(const python::Expr& tool, const ToolArguments& arguments, std::string_view key,
                    json::Object& marker);
  bool ReadToolGraph(const python::Expr& tool, const ToolArguments& arguments, ToolDraft& draft);
  std::shared_ptr<FinishedGraph> Helper(std::string_view name, SourceSpan span);
  std::optional<json::Value> SchemaOrLiteral(const python::Expr& expr);
  std::optional<json::Value> ModelSchema(const python::Name& name, bool& handled);

  std::vector<Diagnostic>& out() { return *session_.out; }

  Session& session_;
  std::unordered_map<std::string_view, GraphDraft> graphs_;
  std::unordered_map<std::string_view, const python::Call*> nodes_;
  std::unordered_set<std::string_view> poisoned_;  // names whose assignment was refused
};

}  // namespace caisson::workflow
