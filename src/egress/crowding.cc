// SPDX-License-Identifier: Apache-2.0
#include "egress/crowding.h"

#include <charconv>
#include <string>

#include "os/fd.h"

namespace caisson::egress {
namespace {

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const auto text = os::ReadSmallFile(path);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto end = std::from_chars(text->data(), text->data() + text->size(), number);
  if (end.ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<TrackedConnections> ReadTracked() {
  const std::string directory = "/proc/sys/net/netfilter/nf_conntrack_";
  const auto count = ReadNumber(directory + "count");
  const auto most = ReadNumber(directory + "max");
  if (!count || !most) return std::nullopt;
  return TrackedConnections{.count = *count, .most = *most};
}

bool IsCrowded(bool was_crowded, const TrackedConnections& tracked) {
  if (tracked.most == 0) return false;  // no limit
  return was_crowded ? tracked.count >= tracked.most / 2 : tracked.count >= tracked.most / 4 * 3;
}

}  // namespace caisson::egress
