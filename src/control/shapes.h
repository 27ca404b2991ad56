// SPDX-License-Identifier: Apache-2.0
// The sizes in which sandboxes come.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace caisson::control {

struct Shape {
  std::string_view id;
  std::int64_t vcpus;
  std::int64_t memory_mib;
  std::int64_t default_disk_mib;
};

// Smallest first; static storage.
std::span<const Shape> Shapes();
const Shape* FindShape(std::string_view id);

}  // namespace caisson::control
