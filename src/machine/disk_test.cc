// SPDX-License-Identifier: Apache-2.0
#include "machine/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "errors/machine.h"
#include "machine/loop_devices.h"
#include "os/run_program.h"

namespace caisson::machine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 64u << 20;

class Disks : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "disks are mounted by root";
    if (os::FindProgram("mkfs.ext4").empty()) GTEST_SKIP() << "needs mkfs.ext4 (e2fsprogs)";
    char name[] = "/var/tmp/caisson-disks-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override {
    if (directory_.empty()) return;
    for (const char* file : {"/a", "/b"}) EXPECT_TRUE(AwaitReleased(directory_ + file, 10s));
    std::filesystem::remove_all(directory_);
  }
  std::string Path(const char* name) const { return directory_ + name; }
  static std::uint64_t FreeBytes(int mount) {
    struct statfs info{};
    EXPECT_EQ(::fstatfs(mount, &info), 0);
    return info.f_bavail * static_cast<std::uint64_t>(info.f_bsize);
  }
  static bool Write(int mount, const char* name, const std::string& text) {
    const os::UniqueFd file(::openat(mount, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  static std::string Read(int mount, const char* name) {
    const os::UniqueFd file(::openat(mount, name, O_RDONLY | O_CLOEXEC));
    char buffer[64];
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    return {buffer, n > 0 ? static_cast<std::size_t>(n) : 0};
  }

  std::string directory_;
};

TEST_F(Disks, AreSparseAndAsLargeAsTheirQuota) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  struct stat info{};
  ASSERT_EQ(::stat(Path("/a").c_str(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
  const auto mount = MountDisk(Path("/a"));
  ASSERT_TRUE(mount) << mount.error().message;
  EXPECT_LE(FreeBytes(mount->get()), kBytes);
  EXPECT_GT(FreeBytes(mount->get()), kBytes * 3 / 4);
  EXPECT_FALSE(MakeDisk(directory_, kBytes, Path("/a"))) << "it is there";
}

TEST_F(Disks, AreGrownWhetherOrNotTheyAreMounted) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  ASSERT_TRUE(GrowDisk(Path("/a"), 2 * kBytes));
  ASSERT_TRUE(AwaitReleased(Path("/a"), 10s));
  const auto mount = MountDisk(Path("/a"));
  ASSERT_TRUE(mount);
  EXPECT_GT(FreeBytes(mount->get()), kBytes * 3 / 2);
  ASSERT_TRUE(GrowDisk(Path("/a"), 4 * kBytes));
  EXPECT_GT(FreeBytes(mount->get()), kBytes * 7 / 2);
  ASSERT_TRUE(GrowDisk(Path("/a"), kBytes)) << "nothing to do";
  EXPECT_GT(FreeBytes(mount->get()), kBytes * 7 / 2);
}

TEST_F(Disks, AFrozenDiskIsCopiedWithAllThatWasWritten) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  auto mount = MountDisk(Path("/a"));
  ASSERT_TRUE(mount);
  ASSERT_TRUE(Write(mount->get(), "upper/file", "kept"));
  {
    const auto frozen = FrozenDisk::Freeze(Path("/a"));
    ASSERT_TRUE(frozen) << frozen.error().message;
    ASSERT_TRUE(CopyDisk(Path("/a"), Path("/b")));
  }
  ASSERT_TRUE(Write(mount->get(), "upper/file", "then")) << "it is thawed";
  const auto copy = MountDisk(Path("/b"));
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(Read(copy->get(), "upper/file"), "kept");
  EXPECT_FALSE(CopyDisk(Path("/a"), Path("/b"))) << "it is there";
}

TEST_F(Disks, WhatAKilledProcessFrozeIsThawed) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  auto mount = MountDisk(Path("/a"));
  ASSERT_TRUE(mount);
  const pid_t freezer = ::fork();
  if (freezer == 0) {
    const auto frozen = FrozenDisk::Freeze(Path("/a"));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(freezer, nullptr, 0);
  const pid_t writer = ::fork();
  if (writer == 0) ::_exit(Write(mount->get(), "upper/file", "x") ? 0 : 1);
  ::usleep(200'000);
  EXPECT_EQ(::waitpid(writer, nullptr, WNOHANG), 0) << "it should wait";
  ThawDisk(Path("/a"));
  int status = -1;
  EXPECT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
}

TEST_F(Disks, ALoopDeviceGoesWithTheLastMount) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  {
    const auto mount = MountDisk(Path("/a"));
    ASSERT_TRUE(mount);
    const auto again = MountDisk(Path("/a"));
    ASSERT_TRUE(again);
    const auto released = AwaitReleased(Path("/a"), 50ms);
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, errors::kMachineUnavailable);
  }
  EXPECT_TRUE(AwaitReleased(Path("/a"), 10s));
}

TEST_F(Disks, AreFoundUnderEachOfTheirNames) {
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/a")));
  ASSERT_TRUE(MakeDisk(directory_, kBytes, Path("/c")));
  EXPECT_EQ(FindLoop(Path("/a")), "");
  auto mount = MountDisk(Path("/a"));
  ASSERT_TRUE(mount);
  const std::string device = FindLoop(Path("/a"));
  EXPECT_TRUE(device.starts_with("/dev/loop")) << device;
  ASSERT_EQ(::rename(Path("/a").c_str(), Path("/b").c_str()), 0);
  EXPECT_EQ(FindLoop(Path("/b")), device);
  ASSERT_EQ(::rename(Path("/c").c_str(), Path("/a").c_str()), 0);
  EXPECT_EQ(FindLoop(Path("/a")), "") << "another file of that name";
  *mount = os::UniqueFd();
  EXPECT_TRUE(AwaitReleased(Path("/b"), 10s));
  EXPECT_EQ(FindLoop(Path("/b")), "");
}

}  // namespace
}  // namespace caisson::machine
