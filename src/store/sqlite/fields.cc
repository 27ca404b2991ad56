// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/fields.h"

#include "json/reader.h"
#include "json/writer.h"

namespace caisson::store::sqlite {

std::string ToJson(const Texts& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    out += json::Quote(text);
  }
  return out + "]";
}

std::string ToJson(const TextMap& map) {
  std::string out = "{";
  for (const auto& [key, text] : map) {
    if (out.size() > 1) out += ',';
    out += json::Quote(key) + ":" + json::Quote(text);
  }
  return out + "}";
}

void FromJson(const std::string& json, Texts& texts) {
  texts.clear();
  if (json == "[]") return;
  const auto value = json::Read(json);
  if (!value || !value->is_array()) return;
  for (const json::Value& item : value->as_array()) {
    if (item.is_string()) texts.push_back(item.as_string());
  }
}

void FromJson(const std::string& json, TextMap& map) {
  map.clear();
  if (json == "{}") return;
  const auto value = json::Read(json);
  if (!value || !value->is_object()) return;
  for (const auto& [key, item] : value->as_object()) {
    if (item.is_string()) map.emplace(key, item.as_string());
  }
}

}  // namespace caisson::store::sqlite
