// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace caisson::workflow::migrate {
namespace {

constexpr int kMaxEdits = 1500;
constexpr std::size_t kContext = 3;

// Myers' shortest edit script over the part in which the texts differ.
class Script {
 public:
  Script(const std::vector<std::string_view>& before, const std::vector<std::string_view>& after,
         std::size_t head, std::size_t tail)
      : before_(before),
        after_(after),
        head_(head),
        n_(static_cast<int>(before.size() - head - tail)),
        m_(static_cast<int>(after.size() - head - tail)) {}

  // Pairs of equal lines; false when there would be too many edits.
  bool Find(std::vector<std::pair<std::size_t, std::size_t>>& equal) {
    const int most = std::min(n_ + m_, kMaxEdits);
    std::vector<int> furthest(2 * static_cast<std::size_t>(most) + 3, 0);
    const int middle = most + 1;
    for (int edits = 0; edits <= most; ++edits) {
      trace_.push_back(furthest);
      for (int k = -edits; k <= edits; k += 2) {
        const bool down =
            k == -edits || (k != edits && furthest[middle + k - 1] < furthest[middle + k + 1]);
        int x = down ? furthest[middle + k + 1] : furthest[middle + k - 1] + 1;
        while (x < n_ && x - k < m_ && Same(x, x - k)) ++x;
        furthest[middle + k] = x;
        if (x >= n_ && x - k >= m_) {
          Trace(edits, middle, equal);
          return true;
        }
      }
    }
    return false;
  }

 private:
  bool Same(int x, int y) const { return y >= 0 && before_[head_ + x] == after_[head_ + y]; }

  void Trace(int edits, int middle, std::vector<std::pair<std::size_t, std::size_t>>& equal) const {
    int x = n_, y = m_;
    for (int d = edits; d >= 0; --d) {
      const std::vector<int>& furthest = trace_[d];
      const int k = x - y;
      const bool down = k == -d || (k != d && furthest[middle + k - 1] < furthest[middle + k + 1]);
      const int from = down ? k + 1 : k - 1;
      const int x0 = d == 0 ? 0 : furthest[middle + from], y0 = d == 0 ? 0 : x0 - from;
      while (x > x0 && y > y0) equal.emplace_back(head_ + --x, head_ + --y);
      x = x0;
      y = y0;
    }
    std::ranges::reverse(equal);
  }

  const std::vector<std::string_view>& before_;
  const std::vector<std::string_view>& after_;
  std::size_t head_;
  int n_, m_;
  std::vector<std::vector<int>> trace_;
};

std::string Painted(char sign, std::string_view line, bool color) {
  const std::string_view paint = sign == '+' ? "\033[32m" : sign == '-' ? "\033[31m" : "";
  if (!color || paint.empty()) return fmt::format("{}{}\n", sign, line);
  return fmt::format("{}{}{}\033[0m\n", paint, sign, line);
}

std::string Place(std::size_t first, std::size_t count) {
  const std::size_t line = count == 0 ? first : first + 1;
  return count == 1 ? fmt::format("{}", line) : fmt::format("{},{}", line, count);
}

}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<Change> Changes(const std::vector<std::string_view>& before,
                            const std::vector<std::string_view>& after) {
  std::size_t head = 0, tail = 0;
  while (head < before.size() && head < after.size() && before[head] == after[head]) ++head;
  while (tail < before.size() - head && tail < after.size() - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<std::pair<std::size_t, std::size_t>> equal;
  if (!Script(before, after, head, tail).Find(equal)) equal.clear();
  equal.emplace_back(before.size() - tail, after.size() - tail);
  std::vector<Change> changes;
  std::size_t x = head, y = head;
  for (const auto& [next_x, next_y] : equal) {
    if (next_x > x || next_y > y) changes.push_back({x, next_x - x, y, next_y - y});
    x = next_x + 1;
    y = next_y + 1;
  }
  return changes;
}

std::string UnifiedDiff(std::string_view before_text, std::string_view after_text,
                        std::string_view name, bool color) {
  if (before_text == after_text) return {};
  const auto before = SplitLines(before_text), after = SplitLines(after_text);
  const std::vector<Change> changes = Changes(before, after);
  std::string text = fmt::format("--- {0}\n+++ {0} (migrated)\n", name);
  for (std::size_t i = 0; i < changes.size();) {
    std::size_t last = i;
    while (last + 1 < changes.size() &&
           changes[last + 1].before - (changes[last].before + changes[last].removed) <=
               2 * kContext) {
      ++last;
    }
    const std::size_t lead = std::min(kContext, changes[i].before);
    const std::size_t end = changes[last].before + changes[last].removed;
    const std::size_t trail = std::min(kContext, before.size() - end);
    const std::size_t first = changes[i].before - lead, first_after = changes[i].after - lead;
    const std::size_t end_after = changes[last].after + changes[last].added;
    text += fmt::format("@@ -{} +{} @@\n", Place(first, end + trail - first),
                        Place(first_after, end_after + trail - first_after));
    std::size_t at = first;
    for (std::size_t c = i; c <= last; ++c) {
      for (; at < changes[c].before; ++at) text += Painted(' ', before[at], color);
      for (std::size_t k = 0; k < changes[c].removed; ++k)
        text += Painted('-', before[at++], color);
      for (std::size_t k = 0; k < changes[c].added; ++k)
        text += Painted('+', after[changes[c].after + k], color);
    }
    for (; at < end + trail; ++at) text += Painted(' ', before[at], color);
    i = last + 1;
  }
  return text;
}

}  // namespace caisson::workflow::migrate
