// SPDX-License-Identifier: Apache-2.0
#include "base/digest/sha256.h"

#include <gtest/gtest.h>

namespace caisson::digest {
namespace {

// The examples of FIPS 180-4.
TEST(Sha256, hashes_as_the_standard_says) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, takes_bytes_in_pieces) {
  Sha256 sha256;
  for (int i = 0; i < 1000; ++i) sha256.Update("aaaaaaaaaa");
  EXPECT_EQ(sha256.Hex(), Sha256Hex(std::string(10'000, 'a')));
}

}  // namespace
}  // namespace caisson::digest
