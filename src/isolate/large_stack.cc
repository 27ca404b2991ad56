// SPDX-License-Identifier: Apache-2.0
#include "isolate/large_stack.h"

#include <pthread.h>

#include "os/syscall_error.h"

namespace caisson::isolate {

Result<void> OnLargeStack(std::size_t stack_bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  const int error =
      pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work));
  pthread_attr_destroy(&attributes);
  if (error != 0) return os::SyscallError("start a thread with a large stack", error);
  pthread_join(thread, nullptr);
  return {};
}

}  // namespace caisson::isolate
