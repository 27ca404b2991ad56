// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "errors/cli.h"
#include "isolate/cpython/pins.h"

namespace caisson::isolate::cpython {
namespace {

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

template <typename T>
bool Number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool Apply(std::string_view name, std::string_view value, CPythonOptions& options) {
  if (name == "directory") {
    options.directory = value;
  } else if (name == "cache") {
    options.cache_dir = value;
  } else if (name == "sets") {
    options.sets = SplitAtCommas(value);
  } else if (name == "tenant") {
    options.tenant = value;
  } else if (name == "max-age-hours") {
    long hours = 0;
    if (!Number(value, hours) || hours <= 0) return false;
    options.max_snapshot_age = std::chrono::hours(hours);
  } else if (name == "max-snapshot-bytes") {
    return Number(value, options.max_snapshot_bytes);
  } else if (name == "checked") {
    options.checked.emplace_back(value);
  } else if (name == "verify") {
    options.verify_resets = value == "1";
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string DefaultDirectory() {
  if (const char* data = std::getenv("CAISSON_DATA_DIR"); data != nullptr && *data != '\0') {
    return std::string(data) + "/cpython";
  }
  return std::string(pins::kDefaultDirectory);
}

bool HasArtifact(const CPythonOptions& options) {
  const std::string directory = options.directory.empty() ? DefaultDirectory() : options.directory;
  std::error_code error;
  return std::ranges::all_of(
      std::array{"/python.wasm", "/stdlib.zip", "/site.zip"},
      [&](const char* name) { return std::filesystem::is_regular_file(directory + name, error); });
}

const std::vector<std::string>& KnownSets() {
  static const std::vector<std::string> sets = {"base", "pandas", "science"};
  return sets;
}

std::string CheckedWord(const std::string& stamp) { return "checked=" + stamp; }

std::vector<std::string> WordsFromOptions(const CPythonOptions& options) {
  std::vector<std::string> words = {
      "directory=" + options.directory,
      "cache=" + options.cache_dir,
      "sets=" + Join(options.sets),
      "tenant=" + options.tenant,
      fmt::format("max-age-hours={}", options.max_snapshot_age.count()),
      fmt::format("max-snapshot-bytes={}", options.max_snapshot_bytes),
      fmt::format("verify={}", options.verify_resets ? 1 : 0)};
  for (const std::string& stamp : options.checked) words.push_back(CheckedWord(stamp));
  return words;
}

Result<CPythonOptions> OptionsFromWords(const std::vector<std::string>& words) {
  CPythonOptions options;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view value = std::string_view(word).substr(std::min(equals + 1, word.size()));
    if (!Apply(std::string_view(word).substr(0, equals), value, options)) {
      return Fail(errors::kCliUsage,
                  fmt::format("\"{}\" is no option of the CPython runtime.", word));
    }
  }
  return options;
}

}  // namespace caisson::isolate::cpython
