// SPDX-License-Identifier: Apache-2.0
#include "wasm/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "os/syscall_error.h"

namespace caisson::wasm {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string ToHex(const Digest& digest) {
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

struct DeleteContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return ToHex(digest);
}

Result<std::string> Sha256HexOfFile(int fd) {
  const std::unique_ptr<EVP_MD_CTX, DeleteContext> context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return os::SyscallError("start a digest", ENOMEM);
  }
  std::vector<char> buffer(1u << 20);
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::SyscallError("read");
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(got));
    at += got;
  }
  Digest digest{};
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  return ToHex(digest);
}

}  // namespace caisson::wasm
