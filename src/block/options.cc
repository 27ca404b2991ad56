// SPDX-License-Identifier: Apache-2.0
// The options of the serializer that a request may set.
#include <algorithm>
#include <array>

#include "block/request.h"
#include "errors/block.h"
#include "json/path.h"
#include "json/writer.h"

namespace caisson::block {
namespace {

struct Option {
  std::string_view name;
  std::array<std::string_view, 2> values;
};

constexpr std::array kOptions = {
    Option{"geometry", {"geojson", "wkt"}},
    Option{"surrogates", {"error", "replace"}},
};

InputError Wrong(const std::string& key, std::string message) {
  json::PathBuilder path;
  if (!key.empty()) path.PrependKey(key);
  path.PrependKey("options");
  return {{.code = errors::kBlockRequest, .message = std::move(message)}, path.Finish()};
}

std::optional<InputError> CheckOption(const std::string& key, const json::Value& value) {
  const auto* option = std::ranges::find(kOptions, key, &Option::name);
  if (option == kOptions.end()) {
    return Wrong(key, "there is no such option; geometry and surrogates are there");
  }
  if (value.is_string() &&
      std::ranges::find(option->values, value.as_string()) != option->values.end()) {
    return std::nullopt;
  }
  return Wrong(key, "the option " + key + " is \"" + std::string(option->values[0]) + "\" or \"" +
                        std::string(option->values[1]) + "\"");
}

}  // namespace

std::expected<std::string, InputError> MakeOptions(const json::Value& options) {
  if (!options.is_object()) return std::unexpected(Wrong("", "options must be an object"));
  for (const auto& [key, value] : options.as_object()) {
    if (auto wrong = CheckOption(key, value)) return std::unexpected(*std::move(wrong));
  }
  auto text = json::Write(options);
  if (text) return *std::move(text);
  return std::unexpected(InputError{std::move(text).error(), "$.options"});
}

}  // namespace caisson::block
