# SPDX-License-Identifier: Apache-2.0
# api/nodes.json, api/models.json and runtimes/micropython/capabilities.json -> gen/workflow/*.inc.
# Files are rewritten only when their content changes.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(node_inputs "${PROJECT_SOURCE_DIR}/api/nodes.json" "${PROJECT_SOURCE_DIR}/api/models.json"
                "${PROJECT_SOURCE_DIR}/runtimes/micropython/capabilities.json")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${node_inputs}
                                                               "${PROJECT_SOURCE_DIR}/tools/gen_nodes.py")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_nodes.py" ${node_inputs}
          "${PROJECT_BINARY_DIR}/gen/workflow"
  COMMAND_ERROR_IS_FATAL ANY)
