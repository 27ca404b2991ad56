// SPDX-License-Identifier: Apache-2.0
// Small texts without a libc.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace caisson::isolate::native {

// Text of at most N - 1 bytes; what does not fit is cut off.
template <size_t N>
class Text {
 public:
  Text& Add(const char* text) {
    while (*text != '\0' && size_ < N - 1) data_[size_++] = *text++;
    return *this;
  }
  Text& Add(uint64_t number) {
    char digits[21];
    int at = 20;
    digits[at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return Add(digits + at);
  }
  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char data_[N] = {};
  size_t size_ = 0;
};

}  // namespace caisson::isolate::native
