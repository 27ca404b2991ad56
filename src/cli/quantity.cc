// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace caisson::cli {
namespace {

using Unit = std::pair<std::string_view, std::uint64_t>;

// The number before the unit and what the unit stands for; 0 when there is no such unit.
template <typename Number>
std::pair<Number, std::uint64_t> Split(std::string_view text, std::span<const Unit> units) {
  Number number{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc{}) return {number, 0};
  const std::string_view suffix(stop, end);
  for (const auto& [name, factor] : units) {
    if (name == suffix) return {number, factor};
  }
  return {number, 0};
}

std::expected<std::uint64_t, std::string> ParseWhole(std::string_view text,
                                                     std::span<const Unit> units,
                                                     const char* examples) {
  const auto [number, factor] = Split<std::uint64_t>(text, units);
  if (factor == 0) {
    return std::unexpected("'" + std::string(text) + "' is no such quantity; write " + examples);
  }
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / factor) {
    return std::unexpected("'" + std::string(text) + "' is too large");
  }
  return number * factor;
}

}  // namespace

std::expected<std::uint64_t, std::string> ParseBytes(std::string_view text) {
  static constexpr Unit kUnits[] = {{"", 1},           {"B", 1},         {"K", 1u << 10},
                                    {"KiB", 1u << 10}, {"M", 1u << 20},  {"MiB", 1u << 20},
                                    {"G", 1u << 30},   {"GiB", 1u << 30}};
  return ParseWhole(text, kUnits, "bytes, or 512KiB, 64MiB, 1GiB");
}

std::expected<std::uint64_t, std::string> ParseCount(std::string_view text) {
  static constexpr Unit kUnits[] = {{"", 1}, {"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
  return ParseWhole(text, kUnits, "a number, or 500K, 200M, 2G");
}

std::expected<std::chrono::milliseconds, std::string> ParseDuration(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  const auto [number, factor] = Split<double>(text, kUnits);
  if (factor == 0 || !std::isfinite(number)) {
    return std::unexpected("'" + std::string(text) +
                           "' is no duration; write 500ms, 30s, 5m or 2h");
  }
  const double milliseconds = number * static_cast<double>(factor);
  if (milliseconds < 1 || milliseconds > 3'600'000e3) {
    return std::unexpected("'" + std::string(text) +
                           "' is out of range; write a value from 1ms to 1000h");
  }
  return std::chrono::milliseconds(std::llround(milliseconds));
}

}  // namespace caisson::cli
