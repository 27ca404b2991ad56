// SPDX-License-Identifier: Apache-2.0
// System calls without a libc: the library runs in interpreters of root file systems whose libc may
// be older or another than the one that we are built with. A call gives its result or -errno.
#pragma once

#include <asm/unistd.h>

namespace caisson::isolate::native {

#if defined(__x86_64__)
inline long Call6(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long Call6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}
#else
#error "no system call sequence for this architecture"
#endif

template <typename T>
long Word(T value) {
  return static_cast<long>(value);
}
template <typename T>
long Word(T* value) {
  return reinterpret_cast<long>(value);
}
inline long Word(decltype(nullptr)) { return 0; }

template <typename... T>
long Kernel(long number, T... arguments) {
  static_assert(sizeof...(T) <= 6);
  long words[6] = {Word(arguments)...};
  return Call6(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // namespace caisson::isolate::native
