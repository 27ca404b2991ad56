// SPDX-License-Identifier: Apache-2.0
#include "wasm/sha256.h"

#include <openssl/sha.h>

#include <array>

namespace caisson::wasm {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  hex.reserve(2 * digest.size());
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace caisson::wasm
