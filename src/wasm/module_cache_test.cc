// SPDX-License-Identifier: Apache-2.0
#include "wasm/module_cache.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/digest/sha256.h"
#include "wasm/artifact.h"

namespace caisson::wasm {
namespace {

namespace fs = std::filesystem;

class ModuleCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "caisson-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    engine_ = *Engine::Create({.slots = 1});
  }
  void TearDown() override { fs::remove_all(root_); }

  // Loads one module under `identity`; counts how often it had to be made.
  Result<CachedModule> Load(const ModuleCache& cache, std::string_view identity = "one") {
    return cache.Load(*engine_, identity, [this]() -> Result<ModuleSource> {
      ++made_;
      return ModuleSource{std::string("\0asm\1\0\0\0", 8), "a note\n"};
    });
  }
  fs::path OnlyEntry() {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(root_ / "cache")) found = entry.path();
    return found;
  }
  ModuleCache Opened() { return *ModuleCache::Open(root_ / "cache"); }

  fs::path root_;
  std::unique_ptr<Engine> engine_;
  int made_ = 0;
};

TEST_F(ModuleCacheTest, TheSecondLoadComesFromTheFile) {
  const ModuleCache cache = Opened();
  EXPECT_TRUE(Load(cache)->compiled);
  const Result<CachedModule> again = Load(cache);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->compiled);
  EXPECT_EQ(again->note, "a note\n");
  EXPECT_NE(again->module, nullptr);
  EXPECT_EQ(made_, 1);
  EXPECT_TRUE(Load(cache, "two")->compiled);
}

TEST_F(ModuleCacheTest, DirectoryAndFilesAreTheOwnersAlone) {
  Load(Opened()).value();
  struct stat info{};
  ASSERT_EQ(stat((root_ / "cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(OnlyEntry().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(ModuleCacheTest, ADamagedEntryIsMadeAnew) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  const fs::path entry = OnlyEntry();
  const auto size = fs::file_size(entry);
  for (const std::uintmax_t at : {std::uintmax_t{0}, std::uintmax_t{30}, size / 2, size - 1}) {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    EXPECT_TRUE(Load(cache)->compiled) << at;
    EXPECT_FALSE(Load(cache)->compiled) << at;
  }
  fs::resize_file(entry, size / 2);
  EXPECT_TRUE(Load(cache)->compiled);
  fs::resize_file(entry, 0);
  EXPECT_TRUE(Load(cache)->compiled);
}

TEST_F(ModuleCacheTest, DamagedMappedCodeIsMissing) {
  const ModuleCache cache = Opened();
  const auto engine = *Engine::CreateMapped({.max_wasm_stack_bytes = 1u << 20});
  const auto has = [&] {
    CheckedFiles checked;  // as in a process that has checked nothing yet
    return cache.HasMapped(*engine, "one", checked);
  };
  const auto compile = [&] {
    ASSERT_TRUE(cache.CompileMapped(*engine, "one", std::string_view("\0asm\1\0\0\0", 8)));
    ASSERT_TRUE(has());
  };
  compile();
  fs::path code;
  for (const auto& file : fs::directory_iterator(root_ / "cache")) {
    if (file.path().extension() == ".code") code = file.path();
  }
  fs::resize_file(code, fs::file_size(code) / 2);
  EXPECT_FALSE(has());
  compile();
  std::fstream(code, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('\1');
  EXPECT_FALSE(has());
}

TEST_F(ModuleCacheTest, AnEntryThatOthersMayWriteIsNotTrusted) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  ASSERT_EQ(chmod(OnlyEntry().c_str(), 0666), 0);
  EXPECT_TRUE(Load(cache)->compiled);
  struct stat info{};
  ASSERT_EQ(stat(OnlyEntry().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u) << "the fresh entry replaces it";
}

TEST_F(ModuleCacheTest, ALinkInPlaceOfAnEntryIsNotFollowed) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  const fs::path entry = OnlyEntry();
  fs::rename(entry, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", entry);
  EXPECT_TRUE(Load(cache)->compiled);
}

TEST_F(ModuleCacheTest, WhateverElseStandsInPlaceOfAnEntryIsReplacedAndNotWaitedFor) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  const fs::path entry = OnlyEntry();
  const auto replace = [&](auto&& make) {
    fs::remove(entry);
    make();
    EXPECT_TRUE(Load(cache)->compiled);
    EXPECT_FALSE(Load(cache)->compiled) << "it has been replaced";
  };
  replace([&] { ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0); });
  replace([&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = root_ / "s";  // an entry's own is too long
    ASSERT_LT(name.size(), sizeof address.sun_path);
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    close(listener);
    fs::rename(name, entry);
  });
  if (geteuid() == 0) {
    replace([&] {
      if (mknod(entry.c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) std::ofstream(entry) << "x";
    });
  }
}

TEST_F(ModuleCacheTest, AnEntryOfAnySizeIsNotReadBeforeItIsKnownToBeOne) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  const fs::path entry = OnlyEntry();
  // All zeros; then with the right beginning.
  for (const std::string_view start : {"", "caisson-module-1\n"}) {
    std::ofstream(entry, std::ios::binary) << start;
    ASSERT_EQ(truncate(entry.c_str(), off_t{1} << 40), 0);
    EXPECT_TRUE(Load(cache)->compiled);
  }
}

TEST_F(ModuleCacheTest, ADirectoryInPlaceOfAnEntryIsNamed) {
  const ModuleCache cache = Opened();
  Load(cache).value();
  const fs::path entry = OnlyEntry();
  fs::remove(entry);
  fs::create_directory(entry);
  const auto loaded = Load(cache);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code.name, "wasm.cache");
  EXPECT_NE(loaded.error().message.find("the directory " + entry.string()), std::string::npos)
      << loaded.error().message;
}

TEST_F(ModuleCacheTest, ADirectoryThatOthersMayWriteIsRefused) {
  Opened();
  for (const mode_t mode : {0770, 0707, 0777}) {
    ASSERT_EQ(chmod((root_ / "cache").c_str(), mode), 0);
    const Result<ModuleCache> cache = ModuleCache::Open(root_ / "cache");
    ASSERT_FALSE(cache);
    EXPECT_EQ(cache.error().code.name, "wasm.cache");
  }
}

TEST_F(ModuleCacheTest, AForeignDirectoryIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  Opened();
  ASSERT_EQ(chown((root_ / "cache").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(ModuleCache::Open(root_ / "cache"));
}

TEST_F(ModuleCacheTest, WhatIsNoDirectoryIsRefused) {
  std::ofstream(root_ / "cache") << "x";
  EXPECT_FALSE(ModuleCache::Open(root_ / "cache"));
  EXPECT_FALSE(ModuleCache::Open(""));
}

TEST_F(ModuleCacheTest, AFailedMakeLeavesNothing) {
  const ModuleCache cache = Opened();
  const auto bad = [] { return Result<ModuleSource>(ModuleSource{"no module", ""}); };
  EXPECT_FALSE(cache.Load(*engine_, "bad", bad));
  EXPECT_TRUE(fs::is_empty(root_ / "cache"));
}

TEST_F(ModuleCacheTest, TheDefaultDirectoryFollowsTheEnvironment) {
  setenv("CAISSON_CACHE_DIR", "/a", 1);
  EXPECT_EQ(DefaultCacheDir(), "/a");
  unsetenv("CAISSON_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/b", 1);
  EXPECT_EQ(DefaultCacheDir(), "/b/caisson");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/c", 1);
  EXPECT_EQ(DefaultCacheDir(), "/c/.cache/caisson");
}

TEST_F(ModuleCacheTest, AnArtifactMustHaveItsPinnedBytes) {
  std::ofstream(root_ / "file") << "abc";
  constexpr std::string_view kAbc =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(LoadArtifact(root_ / "file", kAbc), "abc");
  std::ofstream(root_ / "file") << "abd";
  const Result<std::string> other = LoadArtifact(root_ / "file", kAbc);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code.name, "wasm.artifact");
  EXPECT_FALSE(LoadArtifact(root_ / "missing", kAbc));
  EXPECT_FALSE(LoadArtifact(root_, kAbc));
  ASSERT_EQ(mkfifo((root_ / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(LoadArtifact(root_ / "fifo", kAbc)) << "and is not waited for";
  ASSERT_EQ(truncate((root_ / "file").c_str(), off_t{1} << 40), 0);
  EXPECT_FALSE(LoadArtifact(root_ / "file", kAbc)) << "and is not read";
}

}  // namespace
}  // namespace caisson::wasm
