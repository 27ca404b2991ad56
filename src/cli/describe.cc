// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/isolation.h"

namespace caisson::cli {
namespace {

json::Value LimitsToJson(const isolate::Limits& limits) {
  return json::Object{{"memory_bytes", limits.memory_bytes},
                      {"heap_bytes", limits.heap_bytes},
                      {"fuel", limits.fuel},
                      {"wall_clock_ms", static_cast<std::int64_t>(limits.wall_clock.count())},
                      {"output_bytes", limits.output_bytes},
                      {"stdout_bytes", limits.stdout_bytes}};
}

}  // namespace

ExitCode Describe(const DescribeArguments& arguments, Console& console) {
  auto runtime = OpenIsolation(arguments.isolation);
  if (!runtime) return console.Complain(runtime.error());
  auto warm = (*runtime)->Warm();
  if (!warm) return console.Complain(warm.error());
  return PrintJson(json::Object{{"version", CAISSON_VERSION},
                                {"limits", LimitsToJson(arguments.isolation.limits)},
                                {"runtime", (*runtime)->Describe()}},
                   console);
}

}  // namespace caisson::cli
