# SPDX-License-Identifier: Apache-2.0
# One call per source folder. Sources are globbed by name: x.cc builds the library, x_test.cc the
# folder's test program, x_fuzz.cc one fuzzer each (CAISSON_FUZZ), x_bench.cc one bench each.
#
#   caisson_module(NAME python DEPS caisson_base LINK fmt::fmt [TEST_DEPS ...]
#                  [TEST_LABEL unit] [TEST_PROPERTIES ...])
#
# defines caisson_<NAME>, <NAME>_test, <file>_fuzz and <file>_bench. Tests with the label unit (the
# default) run under the sanitizers too.
function(caisson_module)
  cmake_parse_arguments(M "" "NAME;TEST_LABEL" "DEPS;LINK;TEST_DEPS;TEST_PROPERTIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  set(tests ${sources})
  set(fuzzers ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")

  set(target caisson_${M_NAME})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC caisson_options ${M_DEPS} ${M_LINK})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE caisson_options ${M_DEPS} ${M_LINK})
  endif()

  if(NOT M_TEST_LABEL)
    set(M_TEST_LABEL unit)
  endif()
  if(tests)
    add_executable(${M_NAME}_test ${tests})
    target_link_libraries(${M_NAME}_test PRIVATE ${target} ${M_TEST_DEPS} GTest::gtest_main)
    target_compile_definitions(${M_NAME}_test PRIVATE
      CAISSON_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CAISSON_BINARY_DIR="${PROJECT_BINARY_DIR}")
    set_property(GLOBAL APPEND PROPERTY CAISSON_TEST_TARGETS ${M_NAME}_test)
    gtest_discover_tests(${M_NAME}_test TEST_PREFIX "${M_NAME}." DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 600 LABELS ${M_TEST_LABEL}
                         ${M_TEST_PROPERTIES})
  endif()

  if(CAISSON_FUZZ)
    foreach(file ${fuzzers})
      get_filename_component(name ${file} NAME_WE)
      add_executable(${name} ${file})
      target_link_libraries(${name} PRIVATE ${target} ${M_TEST_DEPS})
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY CAISSON_FUZZ_TARGETS ${name})
    endforeach()
  endif()

  if(CAISSON_BENCH)
    foreach(file ${benches})
      get_filename_component(name ${file} NAME_WE)
      add_executable(${name} ${file})
      target_link_libraries(${name} PRIVATE ${target} ${M_TEST_DEPS})
      target_compile_definitions(${name} PRIVATE CAISSON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endforeach()
  endif()
endfunction()
