// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "errors/cli.h"

namespace caisson::cli {
namespace {

constexpr std::array<const char*, 4> kVariables = {"CAISSON_DATA_DIR", "CAISSON_CACHE_DIR",
                                                   "XDG_CACHE_HOME", "HOME"};

bool ParseNumber(std::string_view text, std::uint64_t& number) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc{} && stop == end;
}

bool Apply(const std::string& name, const std::string& value, WorkerSetup& setup) {
  if (name == "memory") return ParseNumber(value, setup.limits.memory_bytes);
  if (name == "heap") return ParseNumber(value, setup.limits.heap_bytes);
  if (!name.starts_with("env:")) return false;
  const std::string variable = name.substr(4);
  if (std::ranges::find(kVariables, variable) == kVariables.end()) return false;
  setup.variables.emplace_back(variable, value);
  return true;
}

}  // namespace

std::vector<std::string> WorkerWords(const isolate::Limits& limits) {
  std::vector<std::string> words = {"memory=" + std::to_string(limits.memory_bytes),
                                    "heap=" + std::to_string(limits.heap_bytes)};
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr) words.push_back(std::string("env:") + name + "=" + value);
  }
  return words;
}

Result<WorkerSetup> ParseWorkerWords(const std::vector<std::string>& words) {
  WorkerSetup setup;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos ||
        !Apply(word.substr(0, equals), word.substr(equals + 1), setup)) {
      return Fail(errors::kCliUsage, "caisson-isolate does not understand '" + word + "'");
    }
  }
  return setup;
}

}  // namespace caisson::cli
