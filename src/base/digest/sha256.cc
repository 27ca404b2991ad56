// SPDX-License-Identifier: Apache-2.0
#include "base/digest/sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <cstdlib>
#include <new>

namespace caisson::digest {
namespace {

EVP_MD_CTX* ContextOf(void* context) { return static_cast<EVP_MD_CTX*>(context); }

// What is no digest must not pass for one. Only memory can be lacking for this.
void Must(int result) {
  if (result != 1) std::abort();
}

}  // namespace

void Sha256::FreeContext::operator()(void* context) const { EVP_MD_CTX_free(ContextOf(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  Must(EVP_DigestInit_ex(ContextOf(context_.get()), EVP_sha256(), nullptr));
}

void Sha256::Update(std::string_view bytes) {
  Must(EVP_DigestUpdate(ContextOf(context_.get()), bytes.data(), bytes.size()));
}

std::string Sha256::Hex() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  Must(EVP_DigestFinal_ex(ContextOf(context_.get()), digest.data(), nullptr));
  std::string text;
  text.reserve(digest.size() * 2);
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 sha256;
  sha256.Update(bytes);
  return sha256.Hex();
}

}  // namespace caisson::digest
