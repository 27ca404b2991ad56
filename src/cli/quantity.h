// SPDX-License-Identifier: Apache-2.0
// Quantities as people write them on a command line: "64MiB", "500ms", "1.5s". Whole results only;
// what does not fit is an error and never a surprise.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson::cli {

// Digits with an optional unit B, KiB, MiB, GiB (K, M, G mean the same). The error is a sentence.
std::expected<std::uint64_t, std::string> ParseBytes(std::string_view text);

// A number with ms, s, m or h; without a unit, seconds. At least 1 ms, at most 1,000 hours.
std::expected<std::chrono::milliseconds, std::string> ParseDuration(std::string_view text);

// Digits with an optional K, M or G for thousands, millions, thousand millions.
std::expected<std::uint64_t, std::string> ParseCount(std::string_view text);

}  // namespace caisson::cli
