// SPDX-License-Identifier: Apache-2.0
#include "graph/delta_redaction.h"

#include <utility>

namespace caisson::graph {
namespace {

// Whether anything is left to show but the number of a call.
bool SaysSomething(const json::Object& piece) {
  for (const auto& [key, value] : piece) {
    if (value.is_object() ? SaysSomething(value.as_object()) : key != "index") return true;
  }
  return false;
}

}  // namespace

DeltaRedaction::Text& DeltaRedaction::TextOf(const std::string& outer, const json::Value& index,
                                             const std::string& member) {
  for (Text& text : texts_) {
    if (text.outer == outer && text.index == index && text.member == member) return text;
  }
  return texts_.emplace_back(outer, index, member, std::string());
}

// The piece with what can be shown of it now.
json::Object DeltaRedaction::Hold(const std::string& outer, const json::Object& piece) {
  const json::Value* index = piece.Find("index");
  json::Object shown;
  for (const auto& [key, value] : piece) {
    if (value.is_object()) {
      shown.Set(key, Hold(key, value.as_object()));
    } else if (!value.is_string() || value.as_string().empty()) {
      shown.Set(key, value);
    } else {
      Text& text = TextOf(outer, index == nullptr ? json::Value() : *index, key);
      text.held += value.as_string();
      const std::size_t settled = secrets_.Settled(text.held);
      if (settled == 0) continue;
      shown.Set(key, secrets_.Redact(text.held.substr(0, settled)));
      text.held.erase(0, settled);
    }
  }
  return shown;
}

void DeltaRedaction::Take(nodes::DeltaKind kind, json::Value data) {
  const std::lock_guard lock(mutex_);
  if (kind != nodes::DeltaKind::kMessage) GiveHeld();
  if (kind != nodes::DeltaKind::kMessage || !data.is_object() || secrets_.secrets().empty()) {
    return give_(kind, secrets_.Redact(std::move(data)));
  }
  json::Object shown = Hold("", data.as_object());
  if (SaysSomething(shown)) give_(kind, json::Value(std::move(shown)));
}

void DeltaRedaction::Finish() {
  const std::lock_guard lock(mutex_);
  GiveHeld();
}

void DeltaRedaction::GiveHeld() {
  for (Text& text : texts_) {
    if (text.held.empty()) continue;
    json::Object piece;
    if (!text.index.is_null()) piece.Set("index", text.index);
    piece.Set(text.member, secrets_.Redact(std::move(text.held)));
    if (!text.outer.empty()) piece = json::Object{{text.outer, std::move(piece)}};
    give_(nodes::DeltaKind::kMessage, json::Value(std::move(piece)));
  }
  texts_.clear();
}

}  // namespace caisson::graph
