// SPDX-License-Identifier: Apache-2.0
#include "nodes/date_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kFirst = -62135596800;  // 0001-01-01
constexpr std::int64_t kLast = 253402300799;   // 9999-12-31T23:59:59

bool IsLeap(std::int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsDate(std::int64_t year, int month, int day) {
  return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
         day <= DaysInMonth(year, month);
}

// Takes pieces off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool done() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_.front(); }
  std::string_view rest() const { return text_; }
  bool Take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Take(std::string_view prefix) {
    if (!text_.starts_with(prefix)) return false;
    text_.remove_prefix(prefix.size());
    return true;
  }
  // Exactly `count` digits.
  std::optional<int> Digits(std::size_t count) {
    if (text_.size() < count) return std::nullopt;
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!IsDigit(text_[i])) return std::nullopt;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }
  // Digits after a point, as microseconds; further ones are dropped.
  std::optional<int> Fraction(std::size_t most_digits) {
    std::size_t count = 0;
    int value = 0;
    for (; !text_.empty() && IsDigit(text_.front()); text_.remove_prefix(1), ++count) {
      if (count < 6) value = value * 10 + (text_.front() - '0');
    }
    if (count == 0 || count > most_digits) return std::nullopt;
    for (; count < 6; ++count) value *= 10;
    return value;
  }

 private:
  std::string_view text_;
};

struct Clock {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int microsecond = 0;
  bool valid() const { return hour <= 23 && minute <= 59 && second <= 59; }
};

DateTime Join(std::int64_t days, const Clock& clock, std::optional<int> offset) {
  return {days * kDay + clock.hour * 3600L + clock.minute * 60L + clock.second, clock.microsecond,
          offset};
}

// "Z", "+05:30", "+0530", with a minus sign of either kind; the whole of the rest.
std::optional<int> ConfiguredOffset(Scanner& scanner) {
  if (scanner.Take('Z') || scanner.Take('z'))
    return scanner.done() ? std::optional(0) : std::nullopt;
  const bool minus = scanner.Take('-') || scanner.Take("\u2212");
  if (!minus && !scanner.Take('+')) return std::nullopt;
  const auto hours = scanner.Digits(2);
  if (!hours) return std::nullopt;
  scanner.Take(':');
  const auto minutes = scanner.Digits(2);
  if (!minutes || *hours > 23 || *minutes > 59 || !scanner.done()) return std::nullopt;
  const int offset = *hours * 3600 + *minutes * 60;
  return minus ? -offset : offset;
}

std::optional<DateTime> ConfiguredClock(Scanner scanner, std::int64_t days) {
  Clock clock;
  const auto hour = scanner.Digits(2);
  if (!hour || !scanner.Take(':')) return std::nullopt;
  const auto minute = scanner.Digits(2);
  if (!minute) return std::nullopt;
  clock.hour = *hour;
  clock.minute = *minute;
  if (scanner.Take(':')) {
    const auto second = scanner.Digits(2);
    if (!second) return std::nullopt;
    clock.second = *second;
    if (scanner.Take('.') || scanner.Take(',')) {
      const auto fraction = scanner.Fraction(9);
      if (!fraction) return std::nullopt;
      clock.microsecond = *fraction;
    }
  }
  if (!clock.valid()) return std::nullopt;
  if (scanner.done()) return Join(days, clock, std::nullopt);
  const auto offset = ConfiguredOffset(scanner);
  if (!offset) return std::nullopt;
  return Join(days, clock, offset);
}

std::string Pad(std::int64_t value, int width) {
  std::string text = std::to_string(value);
  return text.size() >= static_cast<std::size_t>(width)
             ? text
             : std::string(static_cast<std::size_t>(width) - text.size(), '0') + text;
}

std::string FormatWall(std::int64_t seconds, int microseconds) {
  std::int64_t days = seconds / kDay;
  std::int64_t rest = seconds % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  const Date date = DateOf(days);
  std::string text = Pad(date.year, 4) + "-" + Pad(date.month, 2) + "-" + Pad(date.day, 2) + "T" +
                     Pad(rest / 3600, 2) + ":" + Pad(rest / 60 % 60, 2) + ":" + Pad(rest % 60, 2);
  if (microseconds != 0) text += "." + Pad(microseconds, 6);
  return text;
}

}  // namespace

std::int64_t DaysOf(std::int64_t year, int month, int day) {
  // From March on, so that the leap day is the year's last.
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

Date DateOf(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t day_of_era = days - era * 146097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const int day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

int DaysInMonth(std::int64_t year, int month) {
  constexpr std::array kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

int WeekdayOf(std::int64_t days) { return static_cast<int>(((days + 4) % 7 + 7) % 7); }

std::optional<DateTime> TimeOfNumber(double number) {
  constexpr double kMilliseconds = 2e10;
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) > kMilliseconds) number /= 1000;
  const double whole = std::floor(number);
  if (whole < static_cast<double>(kFirst) || whole > static_cast<double>(kLast))
    return std::nullopt;
  DateTime time{static_cast<std::int64_t>(whole), 0, 0};
  time.microseconds = static_cast<int>(std::min(std::round((number - whole) * 1e6), 999999.0));
  return time;
}

std::optional<DateTime> ParseConfiguredTime(std::string_view text) {
  std::string_view number = text;
  if (number.starts_with('+') || number.starts_with('-')) number.remove_prefix(1);
  const bool is_number = !number.empty() && std::ranges::count(number, '.') <= 1 &&
                         IsDigit(number.front()) && IsDigit(number.back()) &&
                         std::ranges::all_of(number, [](char c) { return IsDigit(c) || c == '.'; });
  if (is_number) {
    const auto value = ParseFloat(text);
    return value ? TimeOfNumber(*value) : std::nullopt;
  }
  Scanner scanner(text);
  const auto year = scanner.Digits(4);
  if (!year || !scanner.Take('-')) return std::nullopt;
  const auto month = scanner.Digits(2);
  if (!month || !scanner.Take('-')) return std::nullopt;
  const auto day = scanner.Digits(2);
  if (!day || !IsDate(*year, *month, *day)) return std::nullopt;
  const std::int64_t days = DaysOf(*year, *month, *day);
  if (scanner.done()) return Join(days, {}, std::nullopt);
  if (!scanner.Take('T') && !scanner.Take('t') && !scanner.Take(' ') && !scanner.Take('_')) {
    return std::nullopt;
  }
  return ConfiguredClock(scanner, days);
}

std::string FormatConfiguredTime(const DateTime& time) {
  std::string text = FormatWall(time.seconds, time.microseconds);
  if (!time.offset) return text;
  if (*time.offset == 0) return text + "Z";
  const int minutes = std::abs(*time.offset) / 60;
  return text + (*time.offset < 0 ? "-" : "+") + Pad(minutes / 60, 2) + ":" + Pad(minutes % 60, 2);
}

std::optional<std::string> FormatUtc(const DateTime& time) {
  const std::int64_t seconds = time.utc_seconds();
  if (seconds < kFirst || seconds > kLast) return std::nullopt;
  return FormatWall(seconds, time.microseconds) + "+00:00";
}

}  // namespace caisson::nodes
