// SPDX-License-Identifier: Apache-2.0
#include "nodes/cron.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "nodes/date_time.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMostBytes = 4096;
constexpr std::int64_t kMostDays = 50L * 366;  // to the next time

enum : int { kMinute, kHour, kMonthDay, kMonth, kWeekday, kSecond, kYear };

struct Bounds {
  int least;
  int most;
};
constexpr std::array<Bounds, 7> kBounds = {
    {{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}, {0, 59}, {1970, 2099}}};
constexpr std::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};

struct Name {
  std::string_view name;
  std::string_view means;
};
constexpr Name kNames[] = {{"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
                           {"@daily", "0 0 * * *"},    {"@weekly", "0 0 * * 0"},
                           {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                           {"@annually", "0 0 1 1 *"}};

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

constexpr int kHuge = 1'000'000;  // beyond every field

int NumberOf(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = std::min(kHuge, value * 10 + (c - '0'));
  return value;
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators,
                                    bool skip_empty) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin || !skip_empty) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<int> NameIn(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<int>(found - names.begin());
}

// A value of that field: a number or a name. Sunday is 0 and 7.
std::optional<int> ValueOf(int field, std::string_view text) {
  std::optional<int> value;
  if (IsDigits(text)) {
    value = NumberOf(text);
  } else if (field == kMonth) {
    value = NameIn(kMonths, text);
    if (value) ++*value;
  } else if (field == kWeekday) {
    value = NameIn(kWeekdays, text);
  }
  return field == kWeekday && value == 7 ? 0 : value;
}

struct RangeText {
  std::string_view low;
  std::string_view high;
  int step = 1;
  bool starts_only = false;  // "5/10": no end was written
};

// "low-high", "low-high/step", "*/step", "low/step"; nullopt when it is none of them.
std::optional<RangeText> ReadRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos && dash > 0) {
    RangeText range{.low = text.substr(0, dash), .high = text.substr(dash + 1)};
    const std::size_t slash = range.high.find('/');
    if (slash != std::string_view::npos) {
      if (!IsDigits(range.high.substr(slash + 1))) return std::nullopt;
      range.step = NumberOf(range.high.substr(slash + 1));
      range.high = range.high.substr(0, slash);
    }
    if (range.high.empty() || range.high.find('-') != std::string_view::npos) return std::nullopt;
    return range;
  }
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos || slash == 0 || !IsDigits(text.substr(slash + 1))) {
    return std::nullopt;
  }
  const std::string_view low = text.substr(0, slash);
  return RangeText{.low = low, .step = NumberOf(text.substr(slash + 1)), .starts_only = low != "*"};
}

// From `low` on to the field's end and from its start to `high`; the steps go on over the end.
std::vector<int> Wrapped(const Bounds& bounds, int low, int high, int step) {
  std::vector<int> values;
  for (int value = low; value <= bounds.most; value += step) values.push_back(value);
  int skip = 0;
  if (!values.empty()) {
    const int passed = bounds.most - values.back();
    const int size = bounds.most - bounds.least + 1;
    if (values.back() - bounds.least + step > size && passed < step) skip = step - passed;
  }
  for (int value = bounds.least + skip; value <= high; value += step) values.push_back(value);
  return values;
}

}  // namespace

// Reads one expression into a Cron; every member is false when the text is none.
class CronReader {
 public:
  bool Read(std::string_view expression) {
    const auto fields = Split(expression, " \t\n\r\f\v", true);
    if (fields.size() < 5 || fields.size() > 7) return false;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!Field(static_cast<int>(i), fields[i])) return false;
    }
    if (fields.size() < 6) cron_.values_[kSecond].set(0);
    if (fields.size() < 7) cron_.any_[kYear] = true;
    // As for everybody who reads them: "5#2" and a plain weekday do not go together.
    if (!cron_.has_nth_ || cron_.any_[kWeekday]) return true;
    for (std::size_t day = 0; day < 7; ++day) {
      if (cron_.values_[kWeekday][day] && cron_.nth_weekday_[day].none()) return false;
    }
    return true;
  }

  const Cron& cron() const { return cron_; }

 private:
  bool Field(int field, std::string_view text) {
    std::string random;
    if (text.starts_with('h') || text.starts_with('r')) {
      if (const auto read = Random(field, text)) {
        random = *read;
        text = random;
      }
    }
    if (text == "?" && (field == kMonthDay || field == kWeekday)) text = "*";
    if (text.find('?') != std::string_view::npos) return false;
    const auto parts = Split(text, ",", false);
    for (const std::string_view part : parts) {
      if (!Part(field, part, parts.size())) return false;
    }
    const Bounds bounds = kBounds[static_cast<std::size_t>(field)];
    auto& values = cron_.values_[static_cast<std::size_t>(field)];
    const bool all = values.count() == static_cast<std::size_t>(bounds.most) -
                                           static_cast<std::size_t>(bounds.least) + 1;
    if (all && field != kMonthDay && field != kWeekday)
      cron_.any_[static_cast<std::size_t>(field)] = true;
    return true;
  }

  // "r", "r(1-5)", "r/10": one value of the range, whichever; here its first.
  static std::optional<std::string> Random(int field, std::string_view text) {
    const Bounds bounds = kBounds[static_cast<std::size_t>(field)];
    if (!text.starts_with('r')) return std::nullopt;
    text.remove_prefix(1);
    std::string low = std::to_string(bounds.least);
    std::string high = std::to_string(bounds.most);
    if (text.starts_with('(')) {
      const std::size_t dash = text.find('-');
      const std::size_t end = text.find(')');
      if (dash == std::string_view::npos || end == std::string_view::npos || dash > end) {
        return std::nullopt;
      }
      low = text.substr(1, dash - 1);
      high = text.substr(dash + 1, end - dash - 1);
      text.remove_prefix(end + 1);
      if (!IsDigits(low) || !IsDigits(high) || NumberOf(low) > NumberOf(high)) return std::nullopt;
    }
    if (text.empty()) return low;
    if (!text.starts_with('/') || !IsDigits(text.substr(1))) return std::nullopt;
    return low + "-" + high + std::string(text);
  }

  bool Part(int field, std::string_view text, std::size_t parts) {
    int nth = -1;
    if (field == kWeekday && !Nth(text, nth)) return false;
    if (field == kMonthDay && (text.ends_with('w') || text.starts_with('w'))) {
      const std::string_view day =
          text.starts_with('w') ? text.substr(1) : text.substr(0, text.size() - 1);
      if (!IsDigits(day) || parts > 1 || NumberOf(day) < 1 || NumberOf(day) > 31) return false;
      cron_.nearest_weekday_ = NumberOf(day);
      return true;
    }
    if (text == "*") {
      cron_.any_[static_cast<std::size_t>(field)] = true;
      return true;
    }
    if (field == kMonthDay && text == "l") return cron_.last_day_ = true;
    if (const auto range = ReadRange(text)) return Range(field, *range, nth);
    const auto value = ValueOf(field, text);
    return value && Add(field, *value, nth);
  }

  // Takes "#2" or a leading "l" off a weekday.
  bool Nth(std::string_view& text, int& nth) {
    if (text.starts_with('l') && IsDigits(text.substr(1))) {
      text.remove_prefix(1);
      nth = 0;
    } else if (const std::size_t hash = text.rfind('#'); hash != std::string_view::npos) {
      const std::string_view digits = text.substr(hash + 1);
      text = text.substr(0, hash);
      // Numbers have no range here, names do.
      const bool numbers = text.find('-') != std::string_view::npos &&
                           text.find_first_of("0123456789") != std::string_view::npos;
      if (!IsDigits(digits) || NumberOf(digits) < 1 || NumberOf(digits) > 5 || numbers)
        return false;
      if (text.find_first_of("/*") != std::string_view::npos) return false;
      nth = NumberOf(digits);
    }
    return true;
  }

  bool Range(int field, const RangeText& text, int nth) {
    const Bounds bounds = kBounds[static_cast<std::size_t>(field)];
    const auto low = text.low == "*" ? std::optional(bounds.least) : ValueOf(field, text.low);
    std::optional<int> high = bounds.most;
    if (text.low == "*" && !text.high.empty()) return false;
    if (field == kMonthDay && text.high == "l") {
      high = 31;
    } else if (!text.high.empty()) {
      high = ValueOf(field, text.high);
    }
    if (!low || !high || text.step == 0 || std::max(*low, *high) > bounds.most) return false;
    std::vector<int> values;
    if (*low == *high && !text.starts_only) {
      values = Wrapped(bounds, bounds.least, bounds.least - 1, text.step);
    } else if (*low <= *high) {
      for (int value = *low; value <= *high; value += text.step) values.push_back(value);
    } else {
      values = Wrapped(bounds, *low, *high, text.step);
    }
    return std::ranges::all_of(values, [&](int value) { return Add(field, value, nth); });
  }

  bool Add(int field, int value, int nth) {
    const Bounds bounds = kBounds[static_cast<std::size_t>(field)];
    if (value < bounds.least || value > bounds.most) return false;
    const auto bit = static_cast<std::size_t>(value - bounds.least);
    cron_.values_[static_cast<std::size_t>(field)].set(bit);
    if (nth >= 0) {
      cron_.nth_weekday_[bit].set(static_cast<std::size_t>(nth));
      cron_.has_nth_ = true;
    }
    return true;
  }

  Cron cron_;
};

std::optional<Cron> Cron::Parse(std::string_view expression) {
  if (expression.size() > kMostBytes) return std::nullopt;
  std::string lower(expression);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto named = std::ranges::find(kNames, std::string_view(lower), &Name::name);
  CronReader reader;
  if (!reader.Read(named != std::end(kNames) ? named->means : std::string_view(lower))) {
    return std::nullopt;
  }
  return reader.cron();
}

bool Cron::IsMonthDay(std::int64_t days) const {
  const Date date = DateOf(days);
  const int last = DaysInMonth(date.year, date.month);
  if (values_[kMonthDay][static_cast<std::size_t>(date.day - 1)]) return true;
  if (last_day_ && date.day == last) return true;
  if (nearest_weekday_ == 0) return false;
  const int wanted = std::min(nearest_weekday_, last);
  const int weekday = WeekdayOf(days + wanted - date.day);
  int nearest = wanted;
  if (weekday == 6) nearest = wanted > 1 ? wanted - 1 : wanted + 2;
  if (weekday == 0) nearest = wanted < last ? wanted + 1 : wanted - 2;
  return date.day == nearest;
}

bool Cron::IsWeekday(std::int64_t days) const {
  const auto weekday = static_cast<std::size_t>(WeekdayOf(days));
  if (!values_[kWeekday][weekday]) return false;
  if (!has_nth_) return true;
  const Date date = DateOf(days);
  const auto& nth = nth_weekday_[weekday];
  if (nth[0] && date.day + 7 > DaysInMonth(date.year, date.month)) return true;
  return nth[(static_cast<std::size_t>(date.day) - 1) / 7 + 1];
}

bool Cron::IsDay(std::int64_t days) const {
  const Date date = DateOf(days);
  if (!any_[kMonth] && !values_[kMonth][static_cast<std::size_t>(date.month - 1)]) return false;
  if (!any_[kYear] && (date.year < 1970 || date.year > 2099 ||
                       !values_[kYear][static_cast<std::size_t>(date.year - 1970)])) {
    return false;
  }
  if (any_[kMonthDay]) return any_[kWeekday] || IsWeekday(days);
  if (any_[kWeekday]) return IsMonthDay(days);
  return IsMonthDay(days) || IsWeekday(days);
}

std::optional<std::int64_t> Cron::Next(std::int64_t seconds) const {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t first = seconds + 1;
  const std::int64_t today = first / kDay;
  for (std::int64_t day = today; day < today + kMostDays; ++day) {
    if (!IsDay(day)) continue;
    const auto from = static_cast<int>(day == today ? first % kDay : 0);
    for (int hour = from / 3600; hour < 24; ++hour) {
      const std::int64_t begin = day * kDay + std::int64_t{hour} * 3600;
      if (!any_[kHour] && !values_[kHour][static_cast<std::size_t>(hour)]) continue;
      for (int second = std::max(from - hour * 3600, 0); second < 3600; ++second) {
        const auto minute = static_cast<std::size_t>(second / 60);
        if (!any_[kMinute] && !values_[kMinute][minute]) continue;
        if (!any_[kSecond] && !values_[kSecond][static_cast<std::size_t>(second % 60)]) continue;
        return begin + second;
      }
    }
  }
  return std::nullopt;
}

}  // namespace caisson::nodes
