// SPDX-License-Identifier: Apache-2.0
// ParseMailTime of date_time.h.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "nodes/date_time.h"
#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kWeekdays[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr std::string_view kMonths[] = {
    "jan", "feb",  "mar",  "apr",    "may",       "jun",      "jul",      "aug",
    "sep", "oct",  "nov",  "dec",    "january",   "february", "march",    "april",
    "may", "june", "july", "august", "september", "october",  "november", "december"};
struct Zone {
  std::string_view name;
  int offset;  // as it is written: -430 are four and a half hours
};
constexpr Zone kZones[] = {{"UT", 0},     {"UTC", 0},    {"GMT", 0},    {"Z", 0},
                           {"AST", -400}, {"ADT", -300}, {"EST", -500}, {"EDT", -400},
                           {"CST", -600}, {"CDT", -500}, {"MST", -700}, {"MDT", -600},
                           {"PST", -800}, {"PDT", -700}};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    if (!IsSpace(NextCharacter(text, position))) {
      word += text.substr(begin, position - begin);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<int> MonthOf(const std::string& name) {
  const auto found = std::ranges::find(kMonths, std::string_view(name));
  if (found == std::end(kMonths)) return std::nullopt;
  return static_cast<int>((found - std::begin(kMonths)) % 12) + 1;
}

// A number as int() reads it, if it is one that a date may have.
std::optional<std::int64_t> NumberOf(std::string_view text) {
  const auto digits = ParseInt(text);
  if (!digits || digits->size() > 9) return std::nullopt;
  return std::strtoll(digits->c_str(), nullptr, 10);
}

void DropComma(std::string& word) {
  if (word.ends_with(',')) word.pop_back();
}

// Day, month, year, time and zone, whatever is joined or left out.
std::optional<std::array<std::string, 5>> FiveWords(std::string_view text) {
  std::vector<std::string> words = Words(text);
  if (words.empty()) return std::nullopt;
  if (words[0].ends_with(',') ||
      std::ranges::find(kWeekdays, std::string_view(Lower(words[0]))) != std::end(kWeekdays)) {
    words.erase(words.begin());
  } else if (const std::size_t comma = words[0].rfind(','); comma != std::string::npos) {
    words[0].erase(0, comma + 1);
  }
  if (words.size() == 3) {
    std::vector<std::string> date = Split(words[0], '-');
    if (date.size() == 3) {
      words.erase(words.begin());
      words.insert(words.begin(), date.begin(), date.end());
    }
  }
  if (words.size() == 4) {
    std::size_t sign = words[3].find('+');
    if (sign == std::string::npos) sign = words[3].find('-');
    const bool joined = sign != std::string::npos && sign > 0;
    words.push_back(joined ? words[3].substr(sign) : "");
    if (joined) words[3].resize(sign);
  }
  if (words.size() < 5) return std::nullopt;
  return std::array{words[0], words[1], words[2], words[3], words[4]};
}

// Seconds since midnight.
std::optional<std::int64_t> ClockOf(std::string text) {
  DropComma(text);
  std::vector<std::string> parts = Split(text, ':');
  if (parts.size() == 1 && text.find('.') != std::string::npos) parts = Split(text, '.');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  parts.resize(3, "0");
  const auto hours = NumberOf(parts[0]);
  const auto minutes = NumberOf(parts[1]);
  const auto seconds = NumberOf(parts[2]);
  const auto within = [](const std::optional<std::int64_t>& value, int most) {
    return value && *value >= 0 && *value <= most;
  };
  if (!within(hours, 23) || !within(minutes, 59) || !within(seconds, 59)) return std::nullopt;
  return *hours * 3600 + *minutes * 60 + *seconds;
}

struct Offset {
  bool valid = true;
  std::optional<int> seconds;
};

Offset OffsetOf(const std::string& text) {
  const std::string name = Upper(text);
  std::optional<std::int64_t> written;
  const auto* zone = std::ranges::find(kZones, std::string_view(name), &Zone::name);
  if (zone != std::end(kZones)) {
    written = zone->offset;
  } else {
    written = NumberOf(name);
    if (written == 0 && name.starts_with('-')) written.reset();
  }
  if (!written) return {};
  const std::int64_t size = std::abs(*written);
  const std::int64_t seconds = size / 100 * 3600 + size % 100 * 60;
  if (seconds >= 86400) return {.valid = false};
  return {.seconds = static_cast<int>(*written < 0 ? -seconds : seconds)};
}

}  // namespace

std::optional<DateTime> ParseMailTime(std::string_view text) {
  if (text.size() > 1000) return std::nullopt;
  auto words = FiveWords(text);
  if (!words) return std::nullopt;
  auto& [day_text, month_text, year_text, clock_text, zone_text] = *words;
  if (day_text.empty() || month_text.empty() || year_text.empty()) return std::nullopt;
  month_text = Lower(month_text);
  if (!MonthOf(month_text)) {
    std::swap(day_text, month_text);
    month_text = Lower(month_text);
  }
  const auto month = MonthOf(month_text);
  if (!month) return std::nullopt;
  DropComma(day_text);
  if (const std::size_t colon = year_text.find(':'); colon != std::string::npos && colon > 0) {
    std::swap(year_text, clock_text);
  }
  DropComma(year_text);
  if (year_text.empty()) return std::nullopt;
  std::size_t next = 0;
  const std::uint32_t first = NextCharacter(year_text, next);
  if (!IsDigits(std::string_view(year_text).substr(0, next)) && first != 0) {
    std::swap(year_text, zone_text);
  }
  const auto clock = ClockOf(clock_text);
  auto year = NumberOf(year_text);
  const auto day = NumberOf(day_text);
  if (!clock || !year || !day) return std::nullopt;
  if (*year < 100) *year += *year > 68 ? 1900 : 2000;
  const Offset offset = OffsetOf(zone_text);
  if (*year < 1 || *year > 9999 || *day < 1 || *day > DaysInMonth(*year, *month) || !offset.valid) {
    return std::nullopt;
  }
  return DateTime{DaysOf(*year, *month, static_cast<int>(*day)) * 86400 + *clock, 0,
                  offset.seconds};
}

}  // namespace caisson::nodes
