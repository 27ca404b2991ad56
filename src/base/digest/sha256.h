// SPDX-License-Identifier: Apache-2.0
// SHA-256 as lower-case hex, by OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace caisson::digest {

// Of bytes that come piece by piece. One thread.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view bytes);
  // Of all that came; the last call.
  std::string Hex();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, FreeContext> context_;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace caisson::digest
