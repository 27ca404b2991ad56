# SPDX-License-Identifier: Apache-2.0
# `cmake --install build/release`: what docs/operations.md says. Programs that people start are in
# bin/; what caisson starts inside of machines and beside them is in lib/caisson/, where it looks
# when they are not beside it (cli/machine_drivers.h).
include(GNUInstallDirs)
install(TARGETS caisson caisson-agent RUNTIME)
install(TARGETS caisson-guest-init caisson-container-init caisson-vmm RUNTIME DESTINATION lib/caisson)
# What MicroPython's isolates and programs that use the library need: component `library`.
set_target_properties(caisson-isolate PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib/caisson")
install(TARGETS caisson-isolate RUNTIME COMPONENT library)
install(FILES "${CAISSON_DEPS_DIR}/wasmtime/lib/libwasmtime.so" DESTINATION lib/caisson COMPONENT library)
install(FILES "${CAISSON_DEPS_DIR}/micropython/derived.wasm" DESTINATION share/caisson/micropython COMPONENT library)
if(TARGET libcaisson)
  install(TARGETS libcaisson LIBRARY DESTINATION lib COMPONENT library)
  install(FILES include/caisson.h include/caisson.hpp DESTINATION include COMPONENT library)
endif()
install(TARGETS caisson-private-memory LIBRARY DESTINATION lib/caisson)
install(FILES packaging/systemd/caisson-machined.service packaging/systemd/caisson-serve.service
        DESTINATION lib/systemd/system)
install(FILES packaging/systemd/caisson.sysusers DESTINATION lib/sysusers.d RENAME caisson.conf)
install(FILES packaging/systemd/caisson.tmpfiles DESTINATION lib/tmpfiles.d RENAME caisson.conf)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")
