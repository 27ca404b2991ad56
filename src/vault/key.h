// SPDX-License-Identifier: Apache-2.0
// The key of a vault: 256 random bits, written as 64 hexadecimal digits. In memory it lies in pages
// of its own that are locked, guarded, left out of core files, and wiped when it goes
// (sodium_malloc(3)).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::vault {

class Key {
 public:
  static constexpr std::size_t kBytes = 32;

  static Result<Key> Random();
  // From its text; white space around it is left out. Fails with vault.key.
  static Result<Key> Parse(std::string_view text);
  std::string ToText() const;
  std::span<const unsigned char, kBytes> bytes() const {
    return std::span<const unsigned char, kBytes>(bytes_.get(), kBytes);
  }

 private:
  struct Free {
    void operator()(unsigned char* bytes) const;
  };
  Key() = default;
  static Result<Key> Empty();

  std::unique_ptr<unsigned char[], Free> bytes_;
};

// Where a key is: "env:VARIABLE", "@FILE" or "cmd:COMMAND", whose standard output is the key (run
// by sh, with this process's standard error, for a minute at most). Fails with vault.key.
Result<Key> ReadKey(std::string_view place);

// A new file with a new key, for its owner alone. Fails with vault.key when it exists.
Result<void> WriteNewKey(const std::string& path);

}  // namespace caisson::vault
