// SPDX-License-Identifier: Apache-2.0
#include "vault/seal.h"

#include <sodium.h>

#include <vector>

#include "errors/vault.h"

namespace caisson::vault {
namespace {

constexpr std::size_t kNonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kTag = crypto_aead_xchacha20poly1305_ietf_ABYTES;
static_assert(Key::kBytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::unexpected<Status> NotOurs() {
  return Fail(errors::kVaultSealed,
              "a secret of the vault cannot be opened: the key is another one, or the store was "
              "changed");
}

}  // namespace

std::string Seal(const Key& key, std::string_view text, std::string_view belongs_to) {
  std::vector<unsigned char> sealed(kNonce + text.size() + kTag);
  randombytes_buf(sealed.data(), kNonce);
  unsigned long long length = 0;
  crypto_aead_xchacha20poly1305_ietf_encrypt(sealed.data() + kNonce, &length, Bytes(text),
                                             text.size(), Bytes(belongs_to), belongs_to.size(),
                                             nullptr, sealed.data(), key.bytes().data());
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string shown(sodium_base64_encoded_len(sealed.size(), kVariant), '\0');
  sodium_bin2base64(shown.data(), shown.size(), sealed.data(), sealed.size(), kVariant);
  shown.pop_back();
  return shown;
}

Result<std::string> Unseal(const Key& key, std::string_view sealed, std::string_view belongs_to) {
  if (sealed.empty()) return NotOurs();
  std::vector<unsigned char> bytes(sealed.size());
  std::size_t length = 0;
  if (sodium_base642bin(bytes.data(), bytes.size(), sealed.data(), sealed.size(), nullptr, &length,
                        nullptr, sodium_base64_VARIANT_ORIGINAL) != 0 ||
      length < kNonce + kTag) {
    return NotOurs();
  }
  std::string text(length - kNonce - kTag, '\0');
  unsigned long long text_length = 0;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          reinterpret_cast<unsigned char*>(text.data()), &text_length, nullptr,
          bytes.data() + kNonce, length - kNonce, Bytes(belongs_to), belongs_to.size(),
          bytes.data(), key.bytes().data()) != 0) {
    return NotOurs();
  }
  return text;
}

}  // namespace caisson::vault
