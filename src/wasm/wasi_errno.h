// SPDX-License-Identifier: Apache-2.0
// The error numbers of WASI preview 1 that we answer with.
#pragma once

#include <cstdint>

namespace caisson::wasm {

enum class Errno : std::uint16_t {
  kSuccess = 0,
  kBadFd = 8,
  kExists = 20,
  kFault = 21,
  kTooBig = 22,
  kInvalid = 28,
  kIo = 29,
  kIsDirectory = 31,
  kTooManyOpen = 33,
  kNameTooLong = 37,
  kNoEntry = 44,
  kNoSpace = 51,
  kNoSys = 52,
  kNotDirectory = 54,
  kNotEmpty = 55,
  kNotSupported = 58,
  kNotPermitted = 63,
  kReadOnly = 69,
  kNoSeek = 70,
  kNotCapable = 76,
};

}  // namespace caisson::wasm
