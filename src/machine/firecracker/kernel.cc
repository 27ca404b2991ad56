// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/kernel.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "errors/machine.h"
#include "images/files.h"
#include "os/fd.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::machine::firecracker {
namespace {

using namespace std::string_view_literals;

// Of the setup header.
constexpr std::size_t kSetupSectors = 0x1f1;
constexpr std::size_t kMagic = 0x202;
constexpr std::size_t kVersion = 0x206;
constexpr std::size_t kPayloadOffset = 0x248;
constexpr std::size_t kPayloadLength = 0x24c;
constexpr std::size_t kHeaderEnd = 0x250;
constexpr std::uint16_t kHasPayload = 0x0208;

struct Compression {
  std::string_view magic;
  const char* tool;
  const char* package;
  std::size_t after;  // bytes at the end that are not the tool's: the size
};
constexpr std::array<Compression, 4> kCompressions = {
    Compression{"\x02\x21\x4c\x18"sv, "lz4", "lz4", 4},
    Compression{"\x28\xb5\x2f\xfd"sv, "zstd", "zstd", 4},
    Compression{"\xfd"
                "7zXZ\0"sv,
                "xz", "xz-utils", 4},
    Compression{"\x1f\x8b"sv, "gzip", "gzip", 0}};
constexpr std::string_view kElf =
    "\x7f"
    "ELF\x02\x01"sv;  // 64 bits, little-endian

template <typename Number>
Number At(std::string_view bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::unexpected<Status> NoKernel(const std::string& what) {
  return Fail(errors::kMachineUnavailable, "the kernel for Firecracker: " + what);
}

bool IsElf(const std::string& path) {
  std::array<char, kElf.size()> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return file && std::string_view(head.data(), head.size()) == kElf;
}

Result<void> Decompress(const Payload& payload, const std::string& to) {
  const std::string packed = to + ".packed";
  CAISSON_TRY(images::WriteFile(packed, std::string(payload.bytes)));
  os::Program program;
  program.arguments = {payload.tool, "-dc"};
  program.input = packed;
  program.output = to;
  const auto end = os::RunProgram(program);
  (void)::unlink(packed.c_str());
  if (!end) return std::unexpected(end.error());
  if (!end->succeeded()) {
    return NoKernel(std::string(payload.tool) + " " + os::ToText(end->status) + ": " +
                    end->messages.substr(0, 200));
  }
  return {};
}

}  // namespace

Result<Payload> FindPayload(std::string_view image) {
  if (image.size() < kHeaderEnd || image.substr(kMagic, 4) != "HdrS" ||
      At<std::uint16_t>(image, kVersion) < kHasPayload) {
    return NoKernel("this is no bzImage of a kernel since 2.6.26; give one of the distribution's");
  }
  const auto sectors = static_cast<unsigned char>(image[kSetupSectors]);
  const std::uint64_t begin = (std::uint64_t{sectors == 0 ? 4u : sectors} + 1) * 512 +
                              At<std::uint32_t>(image, kPayloadOffset);
  const std::uint64_t length = At<std::uint32_t>(image, kPayloadLength);
  if (begin > image.size() || length > image.size() - begin) {
    return NoKernel("it ends before what its header announces; fetch it anew");
  }
  const std::string_view bytes = image.substr(begin, length);
  for (const Compression& each : kCompressions) {
    if (!bytes.starts_with(each.magic) || bytes.size() < each.magic.size() + each.after) continue;
    return Payload{.bytes = bytes.substr(0, bytes.size() - each.after),
                   .tool = each.tool,
                   .package = each.package};
  }
  return NoKernel("it is compressed in a way that is not known here (lz4, zstd, xz and gzip are)");
}

Result<void> ExtractKernel(const std::string& image, const std::string& to) {
  CAISSON_ASSIGN(const std::string bytes, images::ReadFile(image));
  const std::string draft = to + "." + std::to_string(::getpid());
  if (bytes.starts_with(kElf)) {
    CAISSON_TRY(images::WriteFile(draft, bytes));
  } else {
    CAISSON_ASSIGN(const Payload payload, FindPayload(bytes));
    if (os::FindProgram(payload.tool).empty()) {
      return NoKernel(std::string("there is no ") + payload.tool + " to unpack it (Debian's " +
                      payload.package + ")");
    }
    if (auto done = Decompress(payload, draft); !done) {
      (void)::unlink(draft.c_str());
      return done;
    }
  }
  if (!IsElf(draft)) {
    (void)::unlink(draft.c_str());
    return NoKernel("what is packed in " + image + " is no ELF file of 64 bits");
  }
  ::chmod(draft.c_str(), 0444);
  if (::rename(draft.c_str(), to.c_str()) != 0) return os::SyscallError("make " + to);
  return {};
}

}  // namespace caisson::machine::firecracker
