// SPDX-License-Identifier: Apache-2.0
#include "api/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace caisson::api {
namespace {

std::string Braced(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

}  // namespace

void Metrics::Count(const std::string& name, const std::string& labels, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  counters_[name][labels] += by;
}

void Metrics::Observe(const std::string& name, const std::string& labels, double seconds) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_[name][labels];
  const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  ++histogram.buckets[static_cast<std::size_t>(bucket)];
  histogram.sum += seconds;
  ++histogram.count;
}

std::string Metrics::Text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, series] : counters_) {
    out += fmt::format("# TYPE {} counter\n", name);
    for (const auto& [labels, value] : series) {
      out += fmt::format("{}{} {}\n", name, Braced(labels), value);
    }
  }
  for (const auto& [name, series] : histograms_) {
    out += fmt::format("# TYPE {} histogram\n", name);
    for (const auto& [labels, histogram] : series) {
      const std::string before = labels.empty() ? "" : labels + ",";
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < kBounds.size(); ++i) {
        sum += histogram.buckets[i];
        out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, before, kBounds[i], sum);
      }
      out += fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n", name, before, histogram.count);
      out += fmt::format("{}_sum{} {}\n", name, Braced(labels), histogram.sum);
      out += fmt::format("{}_count{} {}\n", name, Braced(labels), histogram.count);
    }
  }
  return out;
}

std::string GaugeText(const std::string& name, const std::map<std::string, double>& by_labels) {
  std::string out = fmt::format("# TYPE {} gauge\n", name);
  for (const auto& [labels, value] : by_labels) {
    out += fmt::format("{}{} {}\n", name, Braced(labels), value);
  }
  return out;
}

}  // namespace caisson::api
