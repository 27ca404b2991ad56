// SPDX-License-Identifier: Apache-2.0
// The last step of a lowering: which models are referred to, their place in $defs, sorted keys.
#include <algorithm>
#include <map>
#include <set>

#include "workflow/schema_json.h"

namespace caisson::workflow::schema {
namespace {

constexpr std::string_view kMark = "\x01model:";
constexpr std::string_view kDefinitions = "#/$defs/";

// As the library names a definition: what is not a plain character becomes "_".
std::string DefinitionName(std::string_view model) {
  std::string name;
  for (std::size_t at = 0; at < model.size(); ++at) {
    const char c = model[at];
    if ((c & 0xC0) == 0x80) continue;  // the rest of a character that is "_" already
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  return name;
}

// All texts of "$ref" members below `value`; those under "examples" do not count.
void CollectReferences(const json::Value& value, std::vector<std::string>& out) {
  if (value.is_array()) {
    for (const json::Value& item : value.as_array()) CollectReferences(item, out);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      if (key == "examples" && member.is_array()) continue;
      if (key == "$ref" && member.is_string()) {
        out.push_back(member.as_string());
      } else {
        CollectReferences(member, out);
      }
    }
  }
}

// Keys by code point, save right under "properties" and "default", where they keep their order;
// marked references become final ones.
json::Value Sorted(const json::Value& value, std::string_view parent) {
  if (value.is_array()) {
    json::Array items;
    items.reserve(value.as_array().size());
    for (const json::Value& item : value.as_array()) items.push_back(Sorted(item, parent));
    return items;
  }
  if (value.is_string() && parent == "$ref" && value.as_string().starts_with(kMark)) {
    return std::string(kDefinitions) + DefinitionName(value.as_string().substr(kMark.size()));
  }
  if (!value.is_object()) return value;
  std::vector<const json::Object::Member*> members;
  for (const auto& member : value.as_object()) members.push_back(&member);
  if (parent != "properties" && parent != "default") {
    std::ranges::sort(members, {},
                      [](const auto* member) -> const std::string& { return member->first; });
  }
  json::Object sorted;
  sorted.Reserve(members.size());
  for (const auto* member : members) {
    sorted.Set(member->first, Sorted(member->second, member->first));
  }
  return sorted;
}

}  // namespace

std::string InternalReference(std::string_view model) {
  return std::string(kMark) + std::string(model);
}

const json::Object* FindModelSchema(const Models& models, std::string_view reference) {
  if (!reference.starts_with(kMark)) return nullptr;
  const auto found = std::ranges::find(models, reference.substr(kMark.size()),
                                       &std::pair<std::string_view, json::Object>::first);
  return found == models.end() ? nullptr : &found->second;
}

std::optional<json::Value> Finish(const Models& models, std::string& stray) {
  std::map<std::string, const json::Object*> definitions;
  std::set<std::string> seen;
  std::vector<std::string> pending;
  CollectReferences(models.back().second, pending);
  while (!pending.empty()) {
    const std::string reference = std::move(pending.back());
    pending.pop_back();
    if (!seen.insert(reference).second) continue;
    if (const json::Object* model = FindModelSchema(models, reference)) {
      definitions[DefinitionName(reference.substr(kMark.size()))] = model;
      CollectReferences(*model, pending);
    } else if (!reference.starts_with("http://") && !reference.starts_with("https://")) {
      stray = reference;
      return std::nullopt;
    }
  }
  json::Object schema = models.back().second;
  if (!definitions.empty()) {
    json::Object sorted;
    for (const auto& [name, model] : definitions) sorted.Set(name, *model);
    schema.Set("$defs", std::move(sorted));
  }
  return Sorted(schema, "");
}

}  // namespace caisson::workflow::schema
