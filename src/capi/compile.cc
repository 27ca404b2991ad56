// SPDX-License-Identifier: Apache-2.0
#include "capi/compile.h"

#include <utility>

#include "capi/answer.h"
#include "capi/options.h"
#include "workflow/compiler.h"
#include "workflow/loader.h"

namespace caisson::capi {
namespace {

Result<json::Object> Accepted(const workflow::Graph& graph,
                              const std::vector<workflow::Diagnostic>& diagnostics) {
  CAISSON_ASSIGN(std::string id, workflow::ContentId(graph));
  json::Object answer = Success();
  answer.Set("ir", workflow::ToJson(graph));
  answer.Set("content_id", std::move(id));
  answer.Set("diagnostics", ToJson(diagnostics));
  return answer;
}

}  // namespace

json::Object Compile(std::string_view source, std::string_view options) {
  const auto read = ReadCompileOptions(options);
  if (!read) return Failure(read.error());
  const workflow::CompileResult result = workflow::Compile(source, *read);
  if (!result.ok()) return Refusal(result.diagnostics);
  auto answer = Accepted(*result.graph, result.diagnostics);
  if (!answer) return Failure(answer.error());
  answer->Set("index", result.index.json);
  return *std::move(answer);
}

json::Object CheckIr(std::string_view ir, std::string_view options) {
  const auto read = ReadCompileOptions(options);
  if (!read) return Failure(read.error());
  const workflow::LoadResult result = workflow::LoadIr(ir, *read);
  if (result.graph == nullptr) return Refusal(result.diagnostics);
  auto answer = Accepted(*result.graph, result.diagnostics);
  return answer ? *std::move(answer) : Failure(answer.error());
}

}  // namespace caisson::capi
