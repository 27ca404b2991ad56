// SPDX-License-Identifier: Apache-2.0
#include "block/service.h"

#include "block/connection.h"
#include "json/writer.h"

namespace caisson::block {

Result<int> Service::Serve(int in, int out, const std::stop_token& stop) {
  Connection connection(runtimes_, options_, queue_);
  return connection.Serve(in, out, stop, Hello());
}

std::string Service::Hello() const {
  const RunQueue::Caps& caps = queue_.caps();
  const json::Value hello =
      json::Object{{"type", "hello"},
                   {"protocol", kProtocolVersion},
                   {"server", "caisson"},
                   {"version", options_.version},
                   {"default_runtime",
                    runtimes_.auto_by_default ? "auto" : RuntimeName(runtimes_.default_runtime)},
                   {"runtimes", DescribeRuntimes(runtimes_)},
                   {"auto", runtimes_.allow_auto},
                   {"max_line_bytes", static_cast<std::uint64_t>(options_.max_line_bytes)},
                   {"max_part_bytes", static_cast<std::uint64_t>(options_.max_part_bytes)},
                   {"max_runs", static_cast<std::uint64_t>(caps.runs)},
                   {"max_waiting", static_cast<std::uint64_t>(caps.waiting)},
                   {"limits", json::Object{{"default", LimitsToJson(options_.limits.defaults)},
                                           {"maximum", LimitsToJson(options_.limits.maximum)}}}};
  auto text = json::Write(hello);
  return text ? *std::move(text) : std::string();
}

}  // namespace caisson::block
