# SPDX-License-Identifier: Apache-2.0
# runtimes/python-packages.toml and runtimes/python-stdlib.json -> gen/block/library_table.inc. The file is
# rewritten only when its content changes.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(library_inputs "${PROJECT_SOURCE_DIR}/runtimes/python-packages.toml"
                   "${PROJECT_SOURCE_DIR}/runtimes/python-stdlib.json")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${library_inputs}
                                                               "${PROJECT_SOURCE_DIR}/tools/gen_libraries.py")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_libraries.py" ${library_inputs}
          "${PROJECT_BINARY_DIR}/gen/block"
  COMMAND_ERROR_IS_FATAL ANY)
