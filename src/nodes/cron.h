// SPDX-License-Identifier: Apache-2.0
// Cron expressions: five fields (minute, hour, day, month, weekday), a sixth for seconds, a seventh
// for years, names, ranges that wrap, steps, "l", "15w", "5#2", "l5" and the @ names. In UTC.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace caisson::nodes {

class Cron {
 public:
  // nullopt when it is no cron expression.
  static std::optional<Cron> Parse(std::string_view expression);

  // The first time after `seconds` (since 1970), nullopt when there is none within 50 years.
  std::optional<std::int64_t> Next(std::int64_t seconds) const;

 private:
  friend class CronReader;
  static constexpr int kFields = 7;
  bool IsDay(std::int64_t days) const;
  bool IsMonthDay(std::int64_t days) const;
  bool IsWeekday(std::int64_t days) const;

  std::array<std::bitset<130>, kFields> values_;  // from the field's least value on
  std::array<bool, kFields> any_{};
  bool last_day_ = false;
  int nearest_weekday_ = 0;                    // to that day of the month; 0: not asked for
  std::array<std::bitset<6>, 7> nth_weekday_;  // bits 1 to 5; bit 0: the month's last
  bool has_nth_ = false;
};

}  // namespace caisson::nodes
