// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/kernel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "errors/machine.h"
#include "os/run_program.h"

namespace caisson::machine::firecracker {
namespace {

namespace fs = std::filesystem;

std::string Elf() {
  return std::string(
             "\x7f"
             "ELF\x02\x01",
             6) +
         std::string(1000, 'k');
}

// As the kernel's build makes one: two sectors of setup after the first, and the payload at 0x100
// of what follows them.
std::string BzImage(const std::string& payload) {
  std::string image(3 * 512 + 0x100, '\0');
  image[0x1f1] = 2;
  image.replace(0x202, 4, "HdrS");
  const std::uint16_t version = 0x20f;
  const std::uint32_t offset = 0x100;
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::memcpy(image.data() + 0x206, &version, sizeof version);
  std::memcpy(image.data() + 0x248, &offset, sizeof offset);
  std::memcpy(image.data() + 0x24c, &length, sizeof length);
  return image + payload;
}

class GuestKernel : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/caisson-kernel-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << bytes;
    return directory_ + "/" + name;
  }
  std::string Packed(const std::string& tool, const std::string& bytes) const {
    os::Program program;
    program.arguments = {tool, "-c"};
    if (tool == "lz4") program.arguments = {tool, "-l", "-c"};
    program.input = Write("plain", bytes);
    return os::RunProgram(program).value().output;
  }
  std::string Read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string directory_;
};

TEST_F(GuestKernel, IsTakenOutOfAnImageHoweverItIsPacked) {
  for (const char* tool : {"gzip", "xz", "zstd", "lz4"}) {
    if (os::FindProgram(tool).empty()) continue;
    // All but gzip have the size after them.
    const std::string payload =
        Packed(tool, Elf()) + (std::string(tool) == "gzip" ? "" : std::string("\x10\x27\0\0", 4));
    const std::string to = directory_ + "/vmlinux";
    const auto done = ExtractKernel(Write("vmlinuz", BzImage(payload) + "what follows"), to);
    ASSERT_TRUE(done) << tool << done.error().message;
    EXPECT_EQ(Read(to), Elf()) << tool;
    fs::remove(to);
  }
}

TEST_F(GuestKernel, ThatIsOneAlreadyIsTakenAsItIs) {
  ASSERT_TRUE(ExtractKernel(Write("vmlinux.in", Elf()), directory_ + "/vmlinux"));
  EXPECT_EQ(Read(directory_ + "/vmlinux"), Elf());
}

TEST_F(GuestKernel, WhatIsNoneIsToldAndLeavesNothing) {
  const auto why = [&](const std::string& bytes) {
    const auto done = ExtractKernel(Write("vmlinuz", bytes), directory_ + "/vmlinux");
    EXPECT_FALSE(done);
    EXPECT_EQ(done.error().code, errors::kMachineUnavailable);
    EXPECT_FALSE(fs::exists(directory_ + "/vmlinux"));
    return done.error().message;
  };
  EXPECT_NE(why("").find("no bzImage"), std::string::npos);
  EXPECT_NE(why(std::string(4096, 'x')).find("no bzImage"), std::string::npos);
  const std::string cut = BzImage(std::string(1000, 'x'));
  EXPECT_NE(why(cut.substr(0, cut.size() - 1)).find("ends before"), std::string::npos);
  EXPECT_NE(why(BzImage("what is this")).find("not known here"), std::string::npos);
  EXPECT_NE(why(BzImage(Packed("gzip", "no kernel"))).find("no ELF"), std::string::npos);
  EXPECT_NE(why(BzImage("\x1f\x8b broken")).find("gzip"), std::string::npos);
}

}  // namespace
}  // namespace caisson::machine::firecracker
