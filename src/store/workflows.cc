// SPDX-License-Identifier: Apache-2.0
#include "store/workflows.h"

#include <chrono>

namespace caisson::store {

Milliseconds Now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace caisson::store
