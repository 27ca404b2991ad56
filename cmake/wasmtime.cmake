# SPDX-License-Identifier: Apache-2.0
# The Wasmtime C API: the shared library of the PyPI wheel and the headers of the crate, both put
# into CAISSON_DEPS_DIR/wasmtime by tools/setup. The library has no SONAME, so it is imported as such.
set(wasmtime_dir "${CAISSON_DEPS_DIR}/wasmtime")
if(NOT EXISTS "${wasmtime_dir}/lib/libwasmtime.so" OR NOT EXISTS "${wasmtime_dir}/include/wasmtime.h")
  message(FATAL_ERROR "The Wasmtime library or its headers are missing in ${wasmtime_dir}; run ./dev setup")
endif()
add_library(wasmtime::wasmtime SHARED IMPORTED)
set_target_properties(wasmtime::wasmtime PROPERTIES
  IMPORTED_LOCATION "${wasmtime_dir}/lib/libwasmtime.so"
  IMPORTED_NO_SONAME TRUE
  INTERFACE_INCLUDE_DIRECTORIES "${wasmtime_dir}/include")
