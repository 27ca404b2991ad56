// SPDX-License-Identifier: Apache-2.0
#include "wasm/checked_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/digest/sha256.h"
#include "os/fd.h"

namespace caisson::wasm {
namespace {

class CheckedFilesTest : public testing::Test {
 protected:
  CheckedFilesTest() {
    std::string path = testing::TempDir() + "caisson-checked-XXXXXX";
    fd_.Reset(mkstemp(path.data()));
    unlink(path.c_str());
    Write("right");
  }
  void Write(std::string_view text) {
    ASSERT_EQ(pwrite(fd_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  const std::string digest_ = digest::Sha256Hex("right");
  os::UniqueFd fd_;
};

TEST_F(CheckedFilesTest, ComparesTheDigest) {
  CheckedFiles files;
  EXPECT_TRUE(files.Holds(fd_.get(), digest_).value());
  EXPECT_FALSE(files.Holds(fd_.get(), digest::Sha256Hex("other")).value());
  EXPECT_EQ(files.stamps().size(), 1u);
}

TEST_F(CheckedFilesTest, TakesTheWordOfAnotherForAFileThatHasNotChanged) {
  CheckedFiles files;
  ASSERT_TRUE(files.Holds(fd_.get(), digest_).value());
  // That the bytes are not read again shows in a stamp for a digest that they do not have.
  std::string stamp = files.stamps()[0];
  const std::string other = digest::Sha256Hex("other");
  stamp.replace(0, digest_.size(), other);
  CheckedFiles told({stamp});
  EXPECT_TRUE(told.Holds(fd_.get(), other).value());
  Write("Right");
  EXPECT_FALSE(told.Holds(fd_.get(), other).value()) << "it has changed since";
}

TEST_F(CheckedFilesTest, AChangeThatHidesItsTimeIsSeen) {
  CheckedFiles files;
  ASSERT_TRUE(files.Holds(fd_.get(), digest_).value());
  struct stat before{};
  ASSERT_EQ(fstat(fd_.get(), &before), 0);
  Write("wrong");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(futimens(fd_.get(), times), 0);
  EXPECT_FALSE(files.Holds(fd_.get(), digest_).value());
}

}  // namespace
}  // namespace caisson::wasm
