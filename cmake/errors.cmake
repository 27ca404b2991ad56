# SPDX-License-Identifier: Apache-2.0
# api/errors.yaml -> gen/errors/<area>.h (one constant per code) and gen/errors/catalogue.inc.
# Files are rewritten only when their content changes, so a new code rebuilds only its own area.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/api/errors.yaml"
                                                               "${PROJECT_SOURCE_DIR}/tools/gen_errors.py")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_errors.py"
          "${PROJECT_SOURCE_DIR}/api/errors.yaml" "${PROJECT_BINARY_DIR}/gen/errors"
  COMMAND_ERROR_IS_FATAL ANY)
