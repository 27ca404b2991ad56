// SPDX-License-Identifier: Apache-2.0
#include "cli/runtime_report.h"

#include <fmt/format.h>

#include <utility>

#include "block/libraries.h"
#include "cli/block_runtimes.h"
#include "cli/cpython_setup.h"

namespace caisson::cli {
namespace {

RuntimeReport ExamineCpython() {
  auto probed = ProbeCpython();
  if (probed) return {.name = "cpython", .ready = true};
  return {.name = "cpython",
          .reason = std::move(probed).error().message,
          .what_to_do = "caisson runtimes install cpython"};
}

}  // namespace

std::vector<RuntimeReport> ExamineRuntimes(Console& console) {
  std::vector<RuntimeReport> reports;
  const auto runtimes = BlockRuntimes::Open({}, {.wish = {.by_imports = true}}, console);
  for (const block::RuntimeId id : block::kRuntimeIds) {
    if (id == block::RuntimeId::kCpython) {
      reports.push_back(ExamineCpython());
      continue;
    }
    RuntimeReport& report = reports.emplace_back();
    report.name = block::RuntimeName(id);
    const Result<void> tried =
        runtimes ? (*runtimes)->Try(id) : Result<void>(Fail(runtimes.error()));
    report.ready = tried.has_value();
    if (!tried) report.reason = tried.error().message;
  }
  return reports;
}

json::Value ToJson(const std::vector<RuntimeReport>& reports) {
  json::Array list;
  for (const RuntimeReport& report : reports) {
    list.push_back(json::Object{{"name", report.name},
                                {"ready", report.ready},
                                {"reason", report.reason},
                                {"what_to_do", report.what_to_do}});
  }
  return list;
}

std::string ToTable(const std::vector<RuntimeReport>& reports) {
  std::string text;
  for (const RuntimeReport& report : reports) {
    text += fmt::format("  {:<8} {:<8} {}\n", report.ready ? "ready" : "missing", report.name,
                        report.reason);
    if (!report.what_to_do.empty()) text += fmt::format("{:20}-> {}\n", "", report.what_to_do);
  }
  return text;
}

}  // namespace caisson::cli
