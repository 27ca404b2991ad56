# SPDX-License-Identifier: Apache-2.0
# `cmake --install build/release`: what docs/operations.md says. Programs that people start are in
# bin/; what caisson starts inside of machines and beside them is in lib/caisson/, where it looks
# when they are not beside it (cli/machine_drivers.h).
include(GNUInstallDirs)
install(TARGETS caisson caisson-isolate caisson-agent RUNTIME)
install(TARGETS caisson-guest-init caisson-container-init caisson-vmm RUNTIME DESTINATION lib/caisson)
install(TARGETS caisson-private-memory LIBRARY DESTINATION lib/caisson)
install(FILES packaging/systemd/caisson-machined.service packaging/systemd/caisson-serve.service
        DESTINATION lib/systemd/system)
install(FILES packaging/systemd/caisson.sysusers DESTINATION lib/sysusers.d RENAME caisson.conf)
install(FILES packaging/systemd/caisson.tmpfiles DESTINATION lib/tmpfiles.d RENAME caisson.conf)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")
