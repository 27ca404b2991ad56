// SPDX-License-Identifier: Apache-2.0
#include "capi/answer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "errors/internal.h"
#include "json/writer.h"
#include "workflow/diagnostic_format.h"

namespace caisson::capi {
namespace {

using workflow::internal::ValidUtf8;

json::Object ErrorOf(ErrorCode code, std::string_view message, std::string_view hint) {
  json::Object error{{"code", code.name}, {"message", ValidUtf8(message)}};
  if (!hint.empty()) error.Set("hint", ValidUtf8(hint));
  return error;
}

json::Object ToJson(const workflow::Diagnostic& diagnostic) {
  const bool is_error = diagnostic.severity == workflow::Severity::kError;
  return {{"code", diagnostic.code.name},
          {"severity", is_error ? "error" : "warning"},
          {"message", ValidUtf8(diagnostic.message)},
          {"hint", ValidUtf8(diagnostic.hint)},
          {"path", ValidUtf8(diagnostic.path)},
          {"line", diagnostic.span.line},
          {"column", diagnostic.span.column},
          {"end_line", diagnostic.span.end_line},
          {"end_column", diagnostic.span.end_column},
          {"peer_line", diagnostic.peer_line},
          {"peer_accepts", diagnostic.peer_accepts}};
}

}  // namespace

json::Object Success() { return {{"ok", true}}; }

json::Object Failure(const Status& status) {
  return {{"ok", false}, {"error", ErrorOf(status.code, status.message, status.details)}};
}

json::Array ToJson(const std::vector<workflow::Diagnostic>& diagnostics) {
  json::Array all;
  all.reserve(diagnostics.size());
  for (const workflow::Diagnostic& each : diagnostics) all.emplace_back(ToJson(each));
  return all;
}

json::Object Refusal(const std::vector<workflow::Diagnostic>& diagnostics) {
  const auto first =
      std::ranges::find(diagnostics, workflow::Severity::kError, &workflow::Diagnostic::severity);
  json::Object answer =
      first == diagnostics.end()
          ? Failure({.code = errors::kInternalFailed, .message = "refused without a diagnostic"})
          : json::Object{{"ok", false},
                         {"error", ErrorOf(first->code, first->message, first->hint)}};
  answer.Set("diagnostics", ToJson(diagnostics));
  return answer;
}

char* Give(const json::Object& answer) {
  Result<std::string> text = json::Write(answer);
  if (!text) text = json::Write(Failure(text.error()));
  if (!text) return nullptr;
  auto* out = static_cast<char*>(std::malloc(text->size() + 1));
  if (out != nullptr) std::memcpy(out, text->c_str(), text->size() + 1);
  return out;
}

}  // namespace caisson::capi
