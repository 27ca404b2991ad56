// SPDX-License-Identifier: Apache-2.0
// How the members of rows go into columns and come back: lists and maps as JSON, states by name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/store.h"

namespace caisson::store::sqlite {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

std::string ToJson(const Texts& texts);
std::string ToJson(const TextMap& map);
// What this program wrote reads back; anything else reads as empty.
void FromJson(const std::string& json, Texts& texts);
void FromJson(const std::string& json, TextMap& map);

inline void Put(Statement& to, int i, const std::string& value) { to.Bind(i, value); }
inline void Put(Statement& to, int i, std::int64_t value) { to.Bind(i, value); }
inline void Put(Statement& to, int i, double value) { to.Bind(i, value); }
inline void Put(Statement& to, int i, bool value) { to.Bind(i, std::int64_t{value}); }
inline void Put(Statement& to, int i, const Texts& value) { to.Bind(i, ToJson(value)); }
inline void Put(Statement& to, int i, const TextMap& value) { to.Bind(i, ToJson(value)); }
inline void Put(Statement& to, int i, SandboxState value) { to.Bind(i, ToText(value)); }
inline void Put(Statement& to, int i, TemplateState value) { to.Bind(i, ToText(value)); }
inline void Put(Statement& to, int i, PoolPlace value) { to.Bind(i, ToText(value)); }
template <typename Value>
void Put(Statement& to, int i, const std::optional<Value>& value) {
  value ? Put(to, i, *value) : to.BindNull(i);
}

inline void Take(const Statement& from, int i, std::string& value) { value = from.Text(i); }
inline void Take(const Statement& from, int i, std::int64_t& value) { value = from.Integer(i); }
inline void Take(const Statement& from, int i, double& value) { value = from.Real(i); }
inline void Take(const Statement& from, int i, bool& value) { value = from.Integer(i) != 0; }
inline void Take(const Statement& from, int i, Texts& value) { FromJson(from.Text(i), value); }
inline void Take(const Statement& from, int i, TextMap& value) { FromJson(from.Text(i), value); }
inline void Take(const Statement& from, int i, SandboxState& value) {
  value = ParseSandboxState(from.Text(i)).value_or(SandboxState::kError);
}
inline void Take(const Statement& from, int i, TemplateState& value) {
  value = ParseTemplateState(from.Text(i)).value_or(TemplateState::kFailed);
}
// What cannot be read is handed to nobody.
inline void Take(const Statement& from, int i, PoolPlace& value) {
  value = ParsePoolPlace(from.Text(i)).value_or(PoolPlace::kParent);
}
template <typename Value>
void Take(const Statement& from, int i, std::optional<Value>& value) {
  if (from.IsNull(i)) {
    value.reset();
  } else {
    Take(from, i, value.emplace());
  }
}

}  // namespace caisson::store::sqlite
