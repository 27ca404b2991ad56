// SPDX-License-Identifier: Apache-2.0
// HtmlTextTransformNode.
#include <span>

#include "nodes/families.h"
#include "nodes/html_entities.h"
#include "nodes/path.h"
#include "nodes/python_json.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kOperationNames[] = {"unescape", "escape", "normalize_nbsp"};
enum : std::size_t { kInputData, kOperations, kFields };
constexpr Field kHtmlTextFields[] = {
    {.name = "input_data", .required = true},
    {.name = "operations",
     .kind = FieldKind::kChoiceList,
     .default_json = "[\"unescape\"]",
     .choices = kOperationNames},
    {.name = "fields", .kind = FieldKind::kStringList, .nullable = true},
};

std::string ReplaceNoBreakSpaces(std::string_view text) {
  static constexpr std::string_view kNoBreakSpace = "\xc2\xa0";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(kNoBreakSpace, at), text.size());
    out += text.substr(at, found - at);
    if (found < text.size()) out += ' ';
    at = found + kNoBreakSpace.size();
  }
  return out;
}

// Applies the operations; counts what it writes, so that repeated escapes cannot fill the memory.
class Transformer {
 public:
  explicit Transformer(const json::Array& operations) : operations_(operations) {}

  Result<void> All(json::Value& value) {
    if (value.is_string()) return Text(value);
    if (value.is_array()) {
      for (json::Value& item : value.mutable_array()) CAISSON_TRY(All(item));
    }
    if (value.is_object()) {
      json::Object transformed;
      transformed.Reserve(value.as_object().size());
      for (const auto& [key, member] : value.as_object()) {
        CAISSON_TRY(All(transformed.Set(key, member)));
      }
      value = std::move(transformed);
    }
    return {};
  }

  Result<void> At(json::Value& value, std::span<const std::string> path) {
    if (path.empty()) return All(value);
    if (value.is_array()) {
      for (json::Value& item : value.mutable_array()) CAISSON_TRY(At(item, path));
    }
    if (value.is_object() && value.Find(path[0]) != nullptr) {
      return At(*value.mutable_object().FindMutable(path[0]), path.subspan(1));
    }
    return {};
  }

 private:
  Result<void> Text(json::Value& value) {
    std::string text = value.as_string();
    for (const json::Value& operation : operations_) {
      if (operation.as_string() == "unescape") {
        text = HtmlUnescape(text);
      } else if (operation.as_string() == "escape") {
        text = HtmlEscape(text);
      } else {
        text = ReplaceNoBreakSpaces(text);
      }
      written_ += text.size();
      if (written_ > 16 * kMaxTextBytes || text.size() > kMaxTextBytes) {
        return NodeFailed("the transformed text grows beyond " + std::to_string(kMaxTextBytes) +
                          " bytes; use fewer operations or less data");
      }
    }
    value = std::move(text);
    return {};
  }

  const json::Array& operations_;
  std::size_t written_ = 0;
};

// The path of a field: its non-empty parts, untrimmed.
std::vector<std::string> FieldPath(std::string_view field) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= field.size();) {
    const std::size_t end = std::min(field.find('.', begin), field.size());
    if (end > begin) parts.emplace_back(field.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<json::Value> RunHtmlText(const Visit& visit) {
  json::Value result = visit.fields[kInputData];
  Transformer transformer(visit.fields[kOperations].as_array());
  if (visit.fields[kFields].is_null()) {
    CAISSON_TRY(transformer.All(result));
    return json::Object{{"result", std::move(result)}};
  }
  for (const json::Value& field : visit.fields[kFields].as_array()) {
    if (!field.is_string()) {
      return NodeFailed("fields must be strings, not " + std::string(PyType(field)) +
                        "; a template yielded a value of that type");
    }
    CAISSON_TRY(transformer.At(result, FieldPath(field.as_string())));
  }
  return json::Object{{"result", std::move(result)}};
}

}  // namespace

extern constexpr NodeType kHtmlTextTransformNode{"HtmlTextTransformNode", kHtmlTextFields,
                                                 RunHtmlText};

}  // namespace caisson::nodes
