// SPDX-License-Identifier: Apache-2.0
// Sealing by XChaCha20-Poly1305 (libsodium's crypto_aead_xchacha20poly1305_ietf): a random nonce of
// 24 bytes, then the ciphertext with its tag, as base64. What a sealed text belongs to is
// authenticated with it, so that one cannot be put in the place of another.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "vault/key.h"

namespace caisson::vault {

std::string Seal(const Key& key, std::string_view text, std::string_view belongs_to);
// Fails with vault.sealed when the key is another one or the text was changed.
Result<std::string> Unseal(const Key& key, std::string_view sealed, std::string_view belongs_to);

}  // namespace caisson::vault
