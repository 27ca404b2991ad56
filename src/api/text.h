// SPDX-License-Identifier: Apache-2.0
// Text for the wire: times, UTF-8 that is valid whatever a guest printed, base64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace caisson::api {

store::Milliseconds NowMilliseconds();
std::string Timestamp(store::Milliseconds time);  // "2026-01-31T12:00:00.123Z"

// What is no UTF-8 becomes U+FFFD, as Python's errors="replace" does it, but for one mark per byte.
std::string ValidUtf8(std::string_view bytes);

// Bytes that come in pieces as valid text in pieces: a character that is not whole yet waits.
class Utf8Pieces {
 public:
  std::string Take(std::string_view piece);
  // What is still waiting, which will never be whole.
  std::string Finish();

 private:
  std::string rest_;
};

std::string Base64(std::string_view bytes);
// Strict: the standard alphabet, padded, nothing else.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace caisson::api
