// SPDX-License-Identifier: Apache-2.0
// Any lines as a policy: no crash; what is accepted is echoed verbatim, means the same when it is
// parsed again, and opens nothing of a closed range; what is refused names the rule.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/policy.h"

namespace {

using namespace caisson::egress;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void RequireOpen(const std::vector<Range>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Require(ranges[i].first <= ranges[i].last);
    Require(i == 0 || ranges[i - 1].last < ranges[i].first);
    for (const ClosedRange& closed : ClosedRanges()) {
      Require(closed.range.last < ranges[i].first || closed.range.first > ranges[i].last);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> lines =
      Lines(std::string_view(reinterpret_cast<const char*>(data), size));
  const auto policy = Policy::Parse(lines);
  if (!policy) {
    Require(policy.error().message.starts_with("egress"));
    return 0;
  }
  Require(policy->rules() == lines);
  Require(Policy::Parse(policy->rules()).value() == *policy);
  RequireOpen(policy->OpenOnAllPorts());
  for (const auto& port : policy->OpenOnPorts()) RequireOpen(port.ranges);
  Require(policy->Effective().Find("rules")->as_array().size() == lines.size());
  return 0;
}
