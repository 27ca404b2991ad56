// SPDX-License-Identifier: Apache-2.0
// The words in which a violation of a schema is told to a model or an author. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace caisson::json {

// A value as JSON on one line, cut after some 80 bytes.
std::string ShortJson(const Value& value);

// "string", "integer", "an object" needs no article here: the name that schemas have for it.
std::string_view SchemaTypeName(const Value& value);

// "string", "string or null", "object, array or null" for the bits of SchemaRule::types.
std::string TypeList(std::uint8_t bits);

// The first few choices of an enum.
std::string ChoiceList(const Array& choices);

// "1 item", "3 items".
std::string Counted(std::uint64_t count, std::string_view one, std::string_view many);

}  // namespace caisson::json
