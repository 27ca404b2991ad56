// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kPrompt, kKind, kExpected };
constexpr Field kFields[] = {
    {.name = "prompt", .kind = FieldKind::kString, .default_json = "\"Please respond.\""},
    {.name = "kind", .kind = FieldKind::kString, .default_json = "\"human\""},
    {.name = "expected", .kind = FieldKind::kAny, .nullable = true},
};

// What the person said, when the answer has one of the usual shapes.
std::optional<std::string> Said(const json::Value& answer) {
  if (answer.is_string()) {
    const std::string_view text = Strip(answer.as_string());
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  }
  if (answer.is_number() || answer.is_bool()) return PyStr(answer);
  for (const std::string_view key : {"message", "text", "content"}) {
    const json::Value* member = answer.Find(key);
    if (member == nullptr) continue;
    if (auto said = Said(*member)) return said;
  }
  return std::nullopt;
}

Result<json::Value> RunHumanInput(const Visit& visit) {
  json::Object question{{"message", visit.fields[kPrompt]}, {"kind", visit.fields[kKind]}};
  if (!visit.fields[kExpected].is_null()) question.Set("expected", visit.fields[kExpected]);
  CAISSON_ASSIGN(const json::Value answer, visit.host.Ask(std::move(question)));
  json::Object result{{"response", answer}};
  if (const auto said = Said(answer)) {
    result.Set("messages", json::Array{json::Object{{"role", "user"}, {"content", *said}}});
  }
  return result;
}

}  // namespace

extern constexpr NodeType kHumanInputNode{"HumanInputNode", kFields, RunHumanInput};

}  // namespace caisson::nodes
