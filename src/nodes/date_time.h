// SPDX-License-Identifier: Apache-2.0
// Points in time as text: the forms that configurations, feeds and mail use. Years 1 to 9999 of the
// Gregorian calendar. Pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::nodes {

// A wall clock's time, and how far that clock is ahead of UTC, where that is known.
struct DateTime {
  std::int64_t seconds = 0;   // of the wall clock, since 1970-01-01T00:00:00 on it
  int microseconds = 0;       // 0 .. 999999
  std::optional<int> offset;  // seconds

  // Taken as UTC when the offset is not known.
  std::int64_t utc_seconds() const { return seconds - offset.value_or(0); }
};

// Days since 1970-01-01; the date must exist.
std::int64_t DaysOf(std::int64_t year, int month, int day);
struct Date {
  std::int64_t year;
  int month;
  int day;
};
Date DateOf(std::int64_t days);
int DaysInMonth(std::int64_t year, int month);
// 0 is Sunday.
int WeekdayOf(std::int64_t days);

// What configurations take: "2024-01-31T10:00:00Z", with a space or "_" for the T, fractions, an
// offset; a date alone; or the number of seconds (beyond 2e10: milliseconds) since 1970 as text.
std::optional<DateTime> ParseConfiguredTime(std::string_view text);
// The same of a number. nullopt beyond the year 9999.
std::optional<DateTime> TimeOfNumber(double number);
// What ISO 8601 allows and Python's datetime.fromisoformat takes, week dates among it.
std::optional<DateTime> ParseIsoTime(std::string_view text);
// A date of a mail or feed (RFC 2822), read as forgivingly as Python's email.utils does.
std::optional<DateTime> ParseMailTime(std::string_view text);

// "2024-01-31T10:00:00Z", "...+05:30", "...10.000500Z"; without an offset when there is none.
std::string FormatConfiguredTime(const DateTime& time);
// In UTC: "2024-01-31T10:00:00+00:00". nullopt when UTC's year is outside of 1 to 9999.
std::optional<std::string> FormatUtc(const DateTime& time);

}  // namespace caisson::nodes
