// SPDX-License-Identifier: Apache-2.0
// ParseIsoTime of date_time.h.
#include <algorithm>
#include <array>

#include "nodes/date_time.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::int64_t kDay = 86400;

// The number that the first `count` characters make, which are taken off.
std::optional<int> Digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool Take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// The week whose Thursday is the year's first is its first.
std::optional<std::int64_t> WeekDate(int year, int week, int day) {
  const std::int64_t fourth = DaysOf(year, 1, 4);
  const std::int64_t monday = fourth - (WeekdayOf(fourth) + 6) % 7;
  const int weekday = WeekdayOf(DaysOf(year, 1, 1));
  const bool is_leap = DaysInMonth(year, 2) == 29;
  const int weeks = weekday == 4 || (weekday == 3 && is_leap) ? 53 : 52;
  if (week < 1 || week > weeks || day < 1 || day > 7) return std::nullopt;
  return monday + (week - 1) * 7L + day - 1;
}

std::optional<std::int64_t> TakeWeekDate(std::string_view& text, int year, bool dashes) {
  const auto week = Digits(text, 2);
  if (!week) return std::nullopt;
  int day = 1;
  const bool has_day = dashes
                           ? text.size() >= 2 && text[0] == '-' && text[1] >= '0' && text[1] <= '9'
                           : !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (has_day) {
    if (dashes) text.remove_prefix(1);
    day = *Digits(text, 1);
  }
  return WeekDate(year, *week, day);
}

std::optional<std::int64_t> TakeDate(std::string_view& text) {
  const auto year = Digits(text, 4);
  if (!year || *year == 0) return std::nullopt;
  const bool dashes = Take(text, '-');
  if (Take(text, 'W')) return TakeWeekDate(text, *year, dashes);
  const auto month = Digits(text, 2);
  if (!month || *month < 1 || *month > 12 || (dashes && !Take(text, '-'))) return std::nullopt;
  const auto day = Digits(text, 2);
  if (!day || *day < 1 || *day > DaysInMonth(*year, *month)) return std::nullopt;
  return DaysOf(*year, *month, *day);
}

struct Clock {
  std::array<int, 3> parts{};  // hours, minutes, seconds
  int microseconds = 0;
};

// "10", "10:30", "103015.5": the whole of `text`.
std::optional<Clock> ReadClock(std::string_view text) {
  Clock clock;
  bool colons = false;
  for (std::size_t i = 0; i < clock.parts.size(); ++i) {
    const auto part = Digits(text, 2);
    if (!part) return std::nullopt;
    clock.parts[i] = *part;
    if (text.empty()) return clock;
    if (i == 0) colons = text.front() == ':';
    if (i + 1 < clock.parts.size() && colons && !Take(text, ':')) return std::nullopt;
  }
  if (!Take(text, '.') && !Take(text, ',')) return std::nullopt;
  std::size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
    if (digits < 6) clock.microseconds = clock.microseconds * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0 || !text.empty()) return std::nullopt;
  for (; digits < 6; ++digits) clock.microseconds *= 10;
  return clock;
}

int SecondsOf(const Clock& clock) {
  return clock.parts[0] * 3600 + clock.parts[1] * 60 + clock.parts[2];
}

std::optional<int> ReadOffset(std::string_view text) {
  if (text == "Z") return 0;
  const bool minus = text.starts_with('-');
  const auto clock = ReadClock(text.substr(1));
  if (!clock || SecondsOf(*clock) >= kDay) return std::nullopt;
  return minus ? -SecondsOf(*clock) : SecondsOf(*clock);
}

}  // namespace

std::optional<DateTime> ParseIsoTime(std::string_view text) {
  const auto days = TakeDate(text);
  if (!days) return std::nullopt;
  DateTime time{*days * kDay, 0, std::nullopt};
  if (text.empty()) return time;
  std::size_t separator = 0;
  NextCharacter(text, separator);
  text.remove_prefix(separator);
  const std::size_t zone = text.find_first_of("Z+-");
  const auto clock = ReadClock(text.substr(0, zone));
  if (!clock || clock->parts[0] > 23 || clock->parts[1] > 59 || clock->parts[2] > 59) {
    return std::nullopt;
  }
  time.seconds += SecondsOf(*clock);
  time.microseconds = clock->microseconds;
  if (zone == std::string_view::npos) return time;
  time.offset = ReadOffset(text.substr(zone));
  return time.offset ? std::optional(time) : std::nullopt;
}

}  // namespace caisson::nodes
