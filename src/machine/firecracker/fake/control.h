// SPDX-License-Identifier: Apache-2.0
// What a test tells the doubles, and hears of them: a directory "control" beside the program, which
// the double of the jailer shows in the jail, too. A file is a wish; its content says more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace caisson::machine::firecracker::fake {

// In a jail; else beside the program that this is.
std::string ControlDirectory();

// The content of the file of this name, without its last line feed; nothing when there is none.
std::optional<std::string> ReadControl(const std::string& name);
std::int64_t ReadNumber(const std::string& name);  // 0 when there is none
// A line more in the file "requests".
void Record(const std::string& line);

}  // namespace caisson::machine::firecracker::fake
