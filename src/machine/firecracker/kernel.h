// SPDX-License-Identifier: Apache-2.0
// The kernel as Firecracker wants it on x86: not the distribution's bzImage, but the ELF file that
// is compressed inside of it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::machine::firecracker {

struct Payload {
  std::string_view bytes;  // of the image that was given
  const char* tool;        // that decompresses it from standard input: "lz4"
  const char* package;     // of Debian, that has it
};
// Where the compressed kernel is, by the boot protocol (Documentation/arch/x86/boot.rst). Fails
// with machine.unavailable.
Result<Payload> FindPayload(std::string_view image);

// Writes the kernel of the file `image` to `to`, or copies it when it is an ELF file already. Fails
// with machine.unavailable.
Result<void> ExtractKernel(const std::string& image, const std::string& to);

}  // namespace caisson::machine::firecracker
