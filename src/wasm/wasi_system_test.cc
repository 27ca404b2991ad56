// SPDX-License-Identifier: Apache-2.0
// The calls themselves, on a memory of ours: no engine.
#include "wasm/wasi_system.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace caisson::wasm {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint32_t kMemory = 64u << 10;
// Where the tests put things.
constexpr std::uint32_t kPath = 100;
constexpr std::uint32_t kOther = 5000;
constexpr std::uint32_t kOut = 12000;
constexpr std::uint32_t kVector = 13000;
constexpr std::uint32_t kBuffer = 20000;

constexpr std::uint64_t kAllRights = ~std::uint64_t{0};

class Guest {
 public:
  explicit Guest(WasiSystemOptions options = {}) : memory_(kMemory), system(options) {
    system.set_memory([this] { return MemoryView{memory_.data(), memory_.size()}; });
    system.files().AddView("/usr/lib/python.zip", "zipped bytes");
    system.files().AddDirectory("/tmp", true);
    system.files().AddDirectory("/workspace", true);
    system.OpenRoot();
  }

  template <typename... Arguments>
  Errno Call(std::string_view name, Arguments... arguments) {
    std::vector<wasmtime_val_raw_t> raw(16);
    std::size_t i = 0;
    ((raw[i++].i64 = static_cast<std::int64_t>(arguments)), ...);
    const auto index = WasiSystem::Find(name);
    EXPECT_TRUE(index) << name;
    EXPECT_EQ(i, WasiSystem::argument_count(*index)) << name;
    return system.Call(*index, raw.data());
  }
  template <typename T>
  T Get(std::uint32_t address) const {
    T value;
    std::memcpy(&value, memory_.data() + address, sizeof value);
    return value;
  }
  template <typename T>
  void Set(std::uint32_t address, T value) {
    std::memcpy(memory_.data() + address, &value, sizeof value);
  }
  std::uint32_t Text(std::uint32_t at, std::string_view text) {
    std::memcpy(memory_.data() + at, text.data(), text.size());
    return static_cast<std::uint32_t>(text.size());
  }

  Errno Open(std::string_view path, unsigned how = 0, std::uint64_t rights = kAllRights,
             unsigned flags = 0, std::uint32_t base = 3) {
    return Call("path_open", base, 0, kPath, Text(kPath, path), how, rights, 0, flags, kOut);
  }
  std::uint32_t Opened(std::string_view path, unsigned how = 0, std::uint64_t rights = kAllRights,
                       unsigned flags = 0, std::uint32_t base = 3) {
    EXPECT_EQ(Open(path, how, rights, flags, base), Errno::kSuccess) << path;
    return Get<std::uint32_t>(kOut);
  }
  Errno OnPath(std::string_view function, std::string_view path) {
    return Call(function, 3, kPath, Text(kPath, path));
  }
  Errno Write(std::uint32_t fd, std::string_view text) {
    Set(kVector, kBuffer);
    Set(kVector + 4, Text(kBuffer, text));
    return Call("fd_write", fd, kVector, 1, kOut);
  }
  std::string Read(std::uint32_t fd, std::uint32_t size = 1000) {
    Set(kVector, kBuffer);
    Set(kVector + 4, size);
    EXPECT_EQ(Call("fd_read", fd, kVector, 1, kOut), Errno::kSuccess);
    return {reinterpret_cast<const char*>(memory_.data()) + kBuffer, Get<std::uint32_t>(kOut)};
  }
  Errno Rename(std::string_view from, std::string_view to) {
    return Call("path_rename", 3, kPath, Text(kPath, from), 3, kOther, Text(kOther, to));
  }
  std::uint64_t SizeOf(std::string_view path) {
    EXPECT_EQ(Call("path_filestat_get", 3, 0, kPath, Text(kPath, path), kOut), Errno::kSuccess);
    return Get<std::uint64_t>(kOut + 32);
  }

  std::vector<std::uint8_t> memory_;
  WasiSystem system;
};

constexpr unsigned kCreate = 1, kDirectory = 2, kExclusive = 4, kTruncate = 8;

TEST(WasiSystem, GivesArgumentsAndEnvironment) {
  Guest guest({.arguments = {"python", "x"}, .environment = {"HOME=/tmp"}});
  ASSERT_EQ(guest.Call("args_sizes_get", kOut, kOut + 4), Errno::kSuccess);
  EXPECT_EQ(guest.Get<std::uint32_t>(kOut), 2u);
  EXPECT_EQ(guest.Get<std::uint32_t>(kOut + 4), 9u);
  ASSERT_EQ(guest.Call("args_get", kVector, kBuffer), Errno::kSuccess);
  EXPECT_STREQ(
      reinterpret_cast<char*>(guest.memory_.data()) + guest.Get<std::uint32_t>(kVector + 4), "x");
  ASSERT_EQ(guest.Call("environ_get", kVector, kBuffer), Errno::kSuccess);
  EXPECT_STREQ(reinterpret_cast<char*>(guest.memory_.data()) + kBuffer, "HOME=/tmp");
}

TEST(WasiSystem, ReadsAViewAndRefusesToChangeIt) {
  Guest guest;
  const std::uint32_t fd = guest.Opened("usr/lib/python.zip", 0, 2);
  EXPECT_EQ(guest.Read(fd, 6), "zipped");
  EXPECT_EQ(guest.Read(fd), " bytes");
  EXPECT_EQ(guest.Read(fd), "");
  EXPECT_EQ(guest.Write(fd, "x"), Errno::kBadFd);
  EXPECT_EQ(guest.Open("usr/lib/python.zip"), Errno::kReadOnly) << "opened for writing";
  EXPECT_EQ(guest.Open("usr/lib/python.zip", kTruncate, 2), Errno::kReadOnly);
  EXPECT_EQ(guest.Open("usr/lib/new", kCreate), Errno::kReadOnly);
  EXPECT_EQ(guest.OnPath("path_unlink_file", "usr/lib/python.zip"), Errno::kReadOnly);
  EXPECT_EQ(guest.OnPath("path_remove_directory", "tmp"), Errno::kReadOnly);
  EXPECT_EQ(guest.Rename("tmp", "workspace/tmp"), Errno::kReadOnly);
  EXPECT_EQ(guest.Rename("usr/lib/python.zip", "tmp/z"), Errno::kReadOnly);
  EXPECT_EQ(guest.Call("fd_filestat_set_size", fd, 0), Errno::kBadFd);
}

TEST(WasiSystem, WritesSeeksAppendsAndTruncates) {
  Guest guest;
  const std::uint32_t fd = guest.Opened("tmp/a", kCreate | kExclusive);
  EXPECT_EQ(guest.Open("tmp/a", kCreate | kExclusive), Errno::kExists);
  EXPECT_EQ(guest.Write(fd, "hello"), Errno::kSuccess);
  EXPECT_EQ(guest.Call("fd_seek", fd, -2, 2, kOut), Errno::kSuccess);
  EXPECT_EQ(guest.Get<std::uint64_t>(kOut), 3u);
  EXPECT_EQ(guest.Read(fd), "lo");
  EXPECT_EQ(guest.Call("fd_seek", fd, -9, 0, kOut), Errno::kInvalid);
  EXPECT_EQ(guest.Call("fd_seek", fd, 0, 3, kOut), Errno::kInvalid);
  const std::uint32_t append = guest.Opened("tmp/a", 0, kAllRights, 1);
  EXPECT_EQ(guest.Write(append, "!"), Errno::kSuccess);
  EXPECT_EQ(guest.SizeOf("tmp/a"), 6u);
  EXPECT_EQ(guest.Call("fd_seek", fd, 10, 0, kOut), Errno::kSuccess);
  EXPECT_EQ(guest.Write(fd, "z"), Errno::kSuccess);
  EXPECT_EQ(guest.SizeOf("tmp/a"), 11u) << "a gap is filled with zeros";
  guest.Opened("tmp/a", kTruncate);
  EXPECT_EQ(guest.SizeOf("tmp/a"), 0u);
  EXPECT_EQ(guest.Read(fd), "") << "the position is behind the end now";
}

TEST(WasiSystem, KeepsWithinTheQuotaAndGivesItBack) {
  Guest guest({.files = {.bytes = 1000, .nodes = 3, .descriptors = 8}});
  const std::uint32_t fd = guest.Opened("tmp/a", kCreate);
  EXPECT_EQ(guest.Write(fd, std::string(1000, 'x')), Errno::kSuccess);
  EXPECT_EQ(guest.Write(fd, "y"), Errno::kNoSpace);
  EXPECT_EQ(guest.Call("fd_pwrite", fd, kVector, 1, std::uint64_t{1} << 62, kOut), Errno::kNoSpace);
  EXPECT_EQ(guest.Call("fd_pwrite", fd, kVector, 1, ~std::uint64_t{0}, kOut), Errno::kTooBig);
  EXPECT_EQ(guest.Call("fd_filestat_set_size", fd, ~std::uint64_t{0}), Errno::kNoSpace);
  EXPECT_EQ(guest.Call("fd_allocate", fd, ~std::uint64_t{0}, 2), Errno::kTooBig);
  EXPECT_EQ(guest.OnPath("path_unlink_file", "tmp/a"), Errno::kSuccess);
  EXPECT_EQ(guest.system.files().use().bytes, 1000u) << "open, so still there";
  EXPECT_EQ(guest.Call("fd_close", fd), Errno::kSuccess);
  EXPECT_EQ(guest.system.files().use().bytes, 0u);
  EXPECT_EQ(guest.system.files().use().nodes, 0u);
  for (const char* path : {"tmp/a", "tmp/b", "tmp/c"}) guest.Opened(path, kCreate);
  EXPECT_EQ(guest.Open("tmp/d", kCreate), Errno::kNoSpace);
  EXPECT_EQ(guest.OnPath("path_create_directory", "tmp/d"), Errno::kNoSpace);
  guest.Opened("tmp/a");
  EXPECT_EQ(guest.Open("tmp/a"), Errno::kTooManyOpen);
}

TEST(WasiSystem, NeverLeavesTheTree) {
  Guest guest;
  EXPECT_EQ(guest.Open("../etc/passwd"), Errno::kNotCapable);
  EXPECT_EQ(guest.Open("tmp/../../x", kCreate), Errno::kNotCapable);
  EXPECT_EQ(guest.Open("/etc/passwd"), Errno::kNotCapable);
  EXPECT_EQ(guest.Open(""), Errno::kNoEntry);
  EXPECT_EQ(guest.Open(std::string_view("tmp/a\0b", 7), kCreate), Errno::kInvalid);
  EXPECT_EQ(guest.Open("tmp/" + std::string(256, 'n'), kCreate), Errno::kNameTooLong);
  EXPECT_EQ(guest.Open(std::string(4500, '/')), Errno::kNameTooLong);
  const std::uint32_t tmp = guest.Opened("tmp");
  EXPECT_EQ(guest.Open("../usr", 0, kAllRights, 0, tmp), Errno::kNotCapable);
  EXPECT_EQ(guest.Open("x", kCreate, kAllRights, 0, tmp), Errno::kSuccess);
  EXPECT_EQ(guest.Open("tmp/x/y", kCreate), Errno::kNotDirectory);
  EXPECT_EQ(guest.Open("tmp/x/"), Errno::kNotDirectory);
  EXPECT_EQ(guest.Open("tmp/x", kDirectory), Errno::kNotDirectory);
  EXPECT_EQ(guest.Open("tmp/n/", kCreate), Errno::kIsDirectory);
  EXPECT_EQ(guest.Call("path_symlink", kPath, 1, 3, kPath, 1), Errno::kNotSupported);
  EXPECT_EQ(guest.OnPath("path_unlink_file", "tmp/.."), Errno::kInvalid);
}

TEST(WasiSystem, MakesRenamesAndRemovesDirectories) {
  Guest guest;
  EXPECT_EQ(guest.OnPath("path_create_directory", "tmp/d"), Errno::kSuccess);
  EXPECT_EQ(guest.OnPath("path_create_directory", "tmp/d/e/"), Errno::kSuccess);
  EXPECT_EQ(guest.OnPath("path_create_directory", "tmp/d"), Errno::kExists);
  guest.Opened("tmp/d/e/f", kCreate);
  EXPECT_EQ(guest.OnPath("path_remove_directory", "tmp/d"), Errno::kNotEmpty);
  EXPECT_EQ(guest.OnPath("path_unlink_file", "tmp/d"), Errno::kIsDirectory);
  EXPECT_EQ(guest.OnPath("path_remove_directory", "tmp/d/e/f"), Errno::kNotDirectory);
  EXPECT_EQ(guest.Rename("tmp/d", "tmp/d/e/g"), Errno::kInvalid) << "into itself";
  EXPECT_EQ(guest.Rename("tmp/d/e", "workspace/e"), Errno::kSuccess);
  EXPECT_EQ(guest.SizeOf("workspace/e/f"), 0u);
  EXPECT_EQ(guest.Rename("workspace/e/f", "workspace/e"), Errno::kIsDirectory);
  EXPECT_EQ(guest.Rename("workspace/e", "workspace/e"), Errno::kSuccess);
  EXPECT_EQ(guest.OnPath("path_remove_directory", "tmp/d"), Errno::kSuccess);
}

TEST(WasiSystem, ADirectoryThatWasRemovedTakesNothingIn) {
  Guest guest;
  EXPECT_EQ(guest.OnPath("path_create_directory", "tmp/d"), Errno::kSuccess);
  const std::uint32_t fd = guest.Opened("tmp/d");
  EXPECT_EQ(guest.OnPath("path_remove_directory", "tmp/d"), Errno::kSuccess);
  EXPECT_EQ(guest.Open("x", kCreate, kAllRights, 0, fd), Errno::kNoEntry);
}

TEST(WasiSystem, BoundsTheDepthOfDirectories) {
  Guest guest;
  std::uint32_t fd = guest.Opened("tmp");
  Errno error = Errno::kSuccess;
  int depth = 0;
  for (; error == Errno::kSuccess && depth < 1000; ++depth) {
    error = guest.Call("path_create_directory", fd, kPath, guest.Text(kPath, "d"));
    if (error != Errno::kSuccess) break;
    const std::uint32_t next = guest.Opened("d", 0, kAllRights, 0, fd);
    EXPECT_EQ(guest.Call("fd_close", fd), Errno::kSuccess);
    fd = next;
  }
  EXPECT_EQ(error, Errno::kNameTooLong);
  EXPECT_LT(depth, 200);
}

TEST(WasiSystem, ListsADirectoryInPieces) {
  Guest guest;
  std::set<std::string> wanted;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "file" + std::to_string(i);
    EXPECT_EQ(guest.Call("fd_close", guest.Opened("tmp/" + name, kCreate)), Errno::kSuccess);
    wanted.insert(name);
  }
  const std::uint32_t fd = guest.Opened("tmp");
  std::set<std::string> found;
  std::uint64_t cookie = 0;
  for (int calls = 0; calls < 100; ++calls) {
    ASSERT_EQ(guest.Call("fd_readdir", fd, kBuffer, 100, cookie, kOut), Errno::kSuccess);
    const auto used = guest.Get<std::uint32_t>(kOut);
    std::uint32_t at = 0;
    while (at + 24 <= used) {
      const auto length = guest.Get<std::uint32_t>(kBuffer + at + 16);
      if (at + 24 + length > used) break;
      cookie = guest.Get<std::uint64_t>(kBuffer + at);
      found.insert({reinterpret_cast<char*>(guest.memory_.data()) + kBuffer + at + 24, length});
      at += 24 + length;
    }
    if (used < 100) break;
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(guest.Call("fd_readdir", fd, kBuffer, 100, ~std::uint64_t{0}, kOut), Errno::kSuccess);
  EXPECT_EQ(guest.Get<std::uint32_t>(kOut), 0u);
}

TEST(WasiSystem, StreamsGoToTheEmbedder) {
  Guest guest;
  std::string seen;
  guest.system.set_output([&](WasiSystem::Stream stream, std::string_view text) {
    seen += std::to_string(static_cast<int>(stream)) + ":" + std::string(text) + ";";
  });
  EXPECT_EQ(guest.Write(1, "out"), Errno::kSuccess);
  EXPECT_EQ(guest.Write(2, "err"), Errno::kSuccess);
  EXPECT_EQ(guest.Write(0, "in"), Errno::kBadFd);
  EXPECT_EQ(guest.Read(0), "");
  EXPECT_EQ(seen, "1:out;2:err;");
}

TEST(WasiSystem, TheRootStaysOpenAndHasItsName) {
  Guest guest;
  ASSERT_EQ(guest.Call("fd_prestat_get", 3, kOut), Errno::kSuccess);
  EXPECT_EQ(guest.Get<std::uint32_t>(kOut + 4), 1u);
  EXPECT_EQ(guest.Call("fd_prestat_dir_name", 3, kOut, 1), Errno::kSuccess);
  EXPECT_EQ(guest.memory_[kOut], '/');
  EXPECT_EQ(guest.Call("fd_prestat_get", 4, kOut), Errno::kBadFd);
  EXPECT_EQ(guest.Call("fd_close", 3), Errno::kNotSupported);
  EXPECT_EQ(guest.Call("fd_renumber", 3, 1), Errno::kNotSupported);
}

TEST(WasiSystem, AFixedClockStandsStillAndSleepMovesIt) {
  using std::chrono::seconds;
  Guest guest({.clock = ClockPolicy::kFixed, .fixed_time = seconds(1000)});
  const auto now = [&](int clock) {
    EXPECT_EQ(guest.Call("clock_time_get", clock, 0, kOut), Errno::kSuccess);
    return nanoseconds(guest.Get<std::int64_t>(kOut));
  };
  EXPECT_EQ(now(0), seconds(1000));
  EXPECT_EQ(now(1), seconds(0));
  guest.Set(kBuffer, std::uint64_t{42});
  guest.Set(kBuffer + 8, std::uint8_t{0});
  guest.Set(kBuffer + 16, std::uint32_t{1});
  guest.Set(kBuffer + 24, std::uint64_t{3'600'000'000'000});
  ASSERT_EQ(guest.Call("poll_oneoff", kBuffer, kVector, 1, kOut), Errno::kSuccess);
  EXPECT_EQ(guest.Get<std::uint32_t>(kOut), 1u);
  EXPECT_EQ(guest.Get<std::uint64_t>(kVector), 42u);
  EXPECT_EQ(now(0), seconds(4600));
}

TEST(WasiSystem, SleepEndsAtTheDeadline) {
  Guest guest;
  const auto start = std::chrono::steady_clock::now();
  guest.system.set_time_left(
      [&] { return std::chrono::milliseconds(30) - (std::chrono::steady_clock::now() - start); });
  guest.Set(kBuffer + 16, std::uint32_t{1});
  guest.Set(kBuffer + 24, std::uint64_t{3'600'000'000'000});
  EXPECT_EQ(guest.Call("poll_oneoff", kBuffer, kVector, 1, kOut), Errno::kSuccess);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(WasiSystem, EntropyIsTheKernels) {
  Guest guest;
  ASSERT_EQ(guest.Call("random_get", kBuffer, 32), Errno::kSuccess);
  const auto first = guest.Get<std::array<std::uint64_t, 4>>(kBuffer);
  ASSERT_EQ(guest.Call("random_get", kBuffer, 32), Errno::kSuccess);
  const auto second = guest.Get<std::array<std::uint64_t, 4>>(kBuffer);
  EXPECT_NE(first, second);
  EXPECT_EQ(guest.system.entropy_bytes(), 64u);
}

// Every function with every argument at the edges: nothing may be touched outside the memory (the
// sanitizers see that), and whoever must write a result says that it could not.
TEST(WasiSystem, SurvivesHostileArgumentsInEveryFunction) {
  const std::vector<std::uint64_t> edges = {
      0,           1,          3,          5,          kMemory - 1, kMemory - 8,      kMemory,
      kMemory + 1, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff,  ~std::uint64_t{0}};
  for (std::size_t index = 0; index < WasiSystem::function_count(); ++index) {
    const unsigned count = WasiSystem::argument_count(index);
    unsigned seed = 1;
    for (int round = 0; round < 3000; ++round) {
      Guest guest({.files = {.bytes = 5000, .nodes = 10, .descriptors = 10}});
      guest.system.set_time_left([] { return nanoseconds(0); });
      guest.Opened("tmp/file", kCreate);
      guest.Opened("tmp");
      std::vector<wasmtime_val_raw_t> raw(16);
      for (unsigned i = 0; i < count; ++i) {
        seed = seed * 1664525 + 1013904223;
        raw[i].i64 = static_cast<std::int64_t>(edges[(seed >> 16) % edges.size()]);
      }
      static_cast<void>(guest.system.Call(index, raw.data()));
    }
  }
}

TEST(WasiSystem, AnswersFaultWhenAResultHasNoPlace) {
  const std::uint32_t outside = kMemory - 2;
  Guest guest;
  const std::uint32_t file = guest.Opened("tmp/file", kCreate);
  const std::uint32_t directory = guest.Opened("tmp");
  guest.Set(kVector, kBuffer);
  guest.Set(kVector + 4, std::uint32_t{4});
  const std::uint32_t path = guest.Text(kPath, "tmp/file");
  EXPECT_EQ(guest.Call("args_sizes_get", outside, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("environ_sizes_get", kOut, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("clock_res_get", 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("clock_time_get", 0, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_fdstat_get", file, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_filestat_get", file, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_pread", file, kVector, 1, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_pread", file, outside, 1, 0, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_read", file, kVector, 1, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_pwrite", file, kVector, 1, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_write", file, kVector, 1, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_write", 1, kVector, 1, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_prestat_get", 3, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_prestat_dir_name", 3, kMemory, 1), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_readdir", directory, outside, 100, 0, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_readdir", directory, kBuffer, 100, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_seek", file, 0, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("fd_tell", file, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("path_filestat_get", 3, 0, kPath, path, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("path_filestat_get", 3, 0, outside, path, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("path_open", 3, 0, kPath, path, 0, 2, 0, 0, outside), Errno::kFault);
  EXPECT_EQ(guest.Call("path_open", 3, 0, kPath, ~0u, 0, 2, 0, 0, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("path_rename", 3, kPath, path, 3, outside, 9), Errno::kFault);
  EXPECT_EQ(guest.Call("random_get", outside, 9), Errno::kFault);
  EXPECT_EQ(guest.Call("poll_oneoff", outside, kVector, 1, kOut), Errno::kFault);
  EXPECT_EQ(guest.Call("poll_oneoff", kBuffer, outside, 1, kOut), Errno::kFault);
  EXPECT_EQ(guest.SizeOf("tmp/file"), 0u) << "a call that faults must not have written";
}

}  // namespace
}  // namespace caisson::wasm
