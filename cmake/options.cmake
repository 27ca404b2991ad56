# SPDX-License-Identifier: Apache-2.0
# Warnings, hardening and sanitizers, as one interface target that every module links.
add_library(caisson_options INTERFACE)
target_include_directories(caisson_options INTERFACE "${PROJECT_SOURCE_DIR}/src"
                                                     "${PROJECT_BINARY_DIR}/gen")
target_compile_options(caisson_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                                 -Werror -fno-omit-frame-pointer
                                                 -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside its own optimised standard library.
  target_compile_options(caisson_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized
                                                   -Wno-missing-field-initializers)
else()
  target_compile_options(caisson_options INTERFACE -Wno-missing-field-initializers)
endif()
if(CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo" AND NOT CAISSON_SANITIZE)
  target_compile_definitions(caisson_options INTERFACE _GLIBCXX_ASSERTIONS _FORTIFY_SOURCE=2)
  target_link_options(caisson_options INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(CAISSON_SANITIZE)
  # UBSan's vptr check opens a pipe to see whether memory is readable; a sealed worker is killed for
  # that.
  target_compile_options(caisson_options INTERFACE -fsanitize=${CAISSON_SANITIZE}
                                                   -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_link_options(caisson_options INTERFACE -fsanitize=${CAISSON_SANITIZE})
endif()
if(CAISSON_FUZZ)
  target_compile_options(caisson_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
find_program(CAISSON_MOLD mold)
if(CAISSON_MOLD)
  target_link_options(caisson_options INTERFACE -fuse-ld=mold)
endif()
