// SPDX-License-Identifier: Apache-2.0
// Writing all of it to a descriptor that blocks.
#pragma once

#include <string_view>

namespace caisson::os {

// write(2) until everything is out, also after signals. 0, or the errno that stopped it; then a
// part may be out. Makes system calls only.
int WriteAll(int fd, std::string_view bytes) noexcept;

}  // namespace caisson::os
