// SPDX-License-Identifier: Apache-2.0
// What runs inside a zygote, as constants of this binary: the library of guest/ and the Python
// files of runtimes/python.
#pragma once

#include <span>
#include <string_view>

namespace caisson::isolate::native {

struct GuestFile {
  std::string_view name;
  std::string_view content;
};
std::span<const GuestFile> GuestFiles();
// JSON text of caisson_guard's policy for this runtime (make_policy.py).
std::string_view GuardPolicy();

}  // namespace caisson::isolate::native
