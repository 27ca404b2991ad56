// SPDX-License-Identifier: Apache-2.0
// Counters and histograms in the text format of Prometheus. Labels are of our own making (routes,
// statuses, states), never what a client sent. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace caisson::api {

class Metrics {
 public:
  // `labels` as they are printed: `route="GET /v1/sandboxes",status="200"`.
  void Count(const std::string& name, const std::string& labels, std::uint64_t by = 1);
  void Observe(const std::string& name, const std::string& labels, double seconds);
  // caisson_http_requests_total and caisson_http_request_seconds of this route.
  void CountRequest(std::string_view route, int status, double seconds);

  std::string Text() const;

 private:
  static constexpr std::array<double, 12> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,   0.25,   0.5,   1,    5,     30};
  struct Histogram {
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    double sum = 0;
    std::uint64_t count = 0;

    void Add(double value);
  };
  struct Requests {
    std::map<int, std::uint64_t> by_status;
    Histogram seconds;
  };
  static void Print(const std::string& name, const std::string& labels, const Histogram& histogram,
                    std::string& out);

  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::uint64_t>> counters_;
  std::map<std::string, std::map<std::string, Histogram>> histograms_;
  std::map<std::string, Requests, std::less<>> requests_;  // by route
};

// One line of a gauge with its type, for what is measured when it is asked for.
std::string GaugeText(const std::string& name, const std::map<std::string, double>& by_labels);

}  // namespace caisson::api
