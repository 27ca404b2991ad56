// SPDX-License-Identifier: Apache-2.0
#include "control/shapes.h"

#include <algorithm>
#include <iterator>

namespace caisson::control {
namespace {

constexpr std::int64_t kDiskMib = 10240;

// The ids that clients have built in.
constexpr Shape kShapes[] = {
    {"s-1vcpu-256mb", 1, 256, kDiskMib},  {"s-1vcpu-1gb", 1, 1024, kDiskMib},
    {"s-2vcpu-2gb", 2, 2048, kDiskMib},   {"s-2vcpu-4gb", 2, 4096, kDiskMib},
    {"s-4vcpu-4gb", 4, 4096, kDiskMib},   {"s-4vcpu-8gb", 4, 8192, kDiskMib},
    {"s-4vcpu-16gb", 4, 16384, kDiskMib},
};

}  // namespace

std::span<const Shape> Shapes() { return kShapes; }

const Shape* FindShape(std::string_view id) {
  const auto* found = std::ranges::find(kShapes, id, &Shape::id);
  return found == std::end(kShapes) ? nullptr : found;
}

}  // namespace caisson::control
