// SPDX-License-Identifier: Apache-2.0
#include "control/secret.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "base/digest/sha256.h"

namespace caisson::control {
namespace {

// Never fails for so few bytes once the system has started; a guess instead would be a hole.
template <std::size_t kCount>
std::array<unsigned char, kCount> RandomBytes() {
  static_assert(kCount <= 256);
  std::array<unsigned char, kCount> bytes;
  if (getrandom(bytes.data(), kCount, 0) != static_cast<ssize_t>(kCount)) std::abort();
  return bytes;
}

}  // namespace

std::string MakeSecret(std::string_view prefix) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const auto bytes = RandomBytes<32>();
  std::string out(prefix);
  std::uint32_t bits = 0;
  int held = 0;
  for (const unsigned char byte : bytes) {
    bits = (bits << 8) | byte;
    for (held += 8; held >= 6; held -= 6) out += kAlphabet[(bits >> (held - 6)) & 63];
  }
  return out + kAlphabet[(bits << (6 - held)) & 63];
}

std::string HashOf(std::string_view text) { return digest::Sha256Hex(text); }

std::string MakeUlid(store::Milliseconds now) {
  constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  std::string out(26, '0');
  auto time = static_cast<std::uint64_t>(now);
  for (std::size_t i = 10; i-- > 0; time >>= 5) out[i] = kAlphabet[time & 31];
  const auto bytes = RandomBytes<16>();
  for (std::size_t i = 0; i < 16; ++i) out[10 + i] = kAlphabet[bytes[i] & 31];
  return out;
}

std::size_t RandomBelow(std::size_t bound) {
  // 64 bits against bounds of some hundreds: the bias is beyond measure.
  std::uint64_t number = 0;
  for (const unsigned char byte : RandomBytes<8>()) number = (number << 8) | byte;
  return static_cast<std::size_t>(number % bound);
}

}  // namespace caisson::control
