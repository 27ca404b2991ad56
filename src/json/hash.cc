// SPDX-License-Identifier: Apache-2.0
#include "json/hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

#include <bit>
#include <cstring>

namespace caisson::json {
namespace {

struct SipKey {
  std::uint64_t k0;
  std::uint64_t k1;
};

SipKey DrawKey() {
  SipKey key{};
  if (getrandom(&key, sizeof key, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof key)) {
    // Early boot, or a sandbox without the call: the kernel gave every process 16 random bytes.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the auxiliary vector holds pointers as integers
    const auto* random = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
    if (random != nullptr) std::memcpy(&key, random, sizeof key);
  }
  return key;
}

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(std::uint64_t word) {
    v3 ^= word;
    Round();
    v0 ^= word;
  }
};

std::uint64_t LoadWord(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

}  // namespace

std::uint64_t HashKey(std::string_view key) {
  static const SipKey secret = DrawKey();
  SipState state{secret.k0 ^ 0x736f6d6570736575, secret.k1 ^ 0x646f72616e646f6d,
                 secret.k0 ^ 0x6c7967656e657261, secret.k1 ^ 0x7465646279746573};
  std::size_t at = 0;
  for (; at + 8 <= key.size(); at += 8) state.Absorb(LoadWord(key.data() + at, 8));
  state.Absorb(LoadWord(key.data() + at, key.size() - at) | static_cast<std::uint64_t>(key.size())
                                                                << 56);
  state.v2 ^= 0xff;
  state.Round();
  state.Round();
  state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace caisson::json
