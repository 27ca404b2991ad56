// SPDX-License-Identifier: Apache-2.0
// From types to JSON Schema text. Internal to schema*.cc.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"
#include "workflow/schema_model.h"

namespace caisson::workflow::schema {

// The models of a lowering in the order in which they were built, each with its schema.
using Models = std::vector<std::pair<std::string_view, json::Object>>;

// References between models carry a mark until the end, so that one that an author wrote cannot be
// taken for them.
std::string InternalReference(std::string_view model);
// The model that a marked reference names; null for any other text.
const json::Object* FindModelSchema(const Models& models, std::string_view reference);

// JSON Schema of one model, its keys unsorted, its references marked. `applied` are the fields'
// types with their options worked in.
json::Object ModelSchema(std::string_view name, const std::vector<Field>& fields,
                         const std::vector<TypePtr>& applied, const Models& models);

// The schema of the last of `models`, with $defs, sorted. Nothing when an author's own "$ref" (put
// into `stray`) points nowhere.
std::optional<json::Value> Finish(const Models& models, std::string& stray);

// The title that a property gets from its name: "snake_case" -> "Snake Case".
std::string TitleOf(std::string_view name);

}  // namespace caisson::workflow::schema
