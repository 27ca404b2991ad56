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

void Metrics::Histogram::Add(double value) {
  const auto bucket = std::ranges::lower_bound(kBounds, value) - kBounds.begin();
  ++buckets[static_cast<std::size_t>(bucket)];
  sum += value;
  ++count;
}

void Metrics::Observe(const std::string& name, const std::string& labels, double seconds) {
  const std::lock_guard lock(mutex_);
  histograms_[name][labels].Add(seconds);
}

void Metrics::CountRequest(std::string_view route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  auto found = requests_.find(route);
  if (found == requests_.end()) found = requests_.emplace(route, Requests()).first;
  ++found->second.by_status[status];
  found->second.seconds.Add(seconds);
}

void Metrics::Print(const std::string& name, const std::string& labels, const Histogram& histogram,
                    std::string& out) {
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
    for (const auto& [labels, histogram] : series) Print(name, labels, histogram, out);
  }
  if (requests_.empty()) return out;
  out += "# TYPE caisson_http_requests_total counter\n";
  for (const auto& [route, requests] : requests_) {
    for (const auto& [status, count] : requests.by_status) {
      out += fmt::format("caisson_http_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", route,
                         status, count);
    }
  }
  out += "# TYPE caisson_http_request_seconds histogram\n";
  for (const auto& [route, requests] : requests_) {
    Print("caisson_http_request_seconds", fmt::format("route=\"{}\"", route), requests.seconds,
          out);
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
