// SPDX-License-Identifier: Apache-2.0
// The Python that runs scripts in a container (runtimes/python), as constants of this binary, and
// how it gets there: compiled once by the container's own interpreter, then sent with each job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::isolate::oci {

struct HarnessFile {
  std::string_view module;
  std::string_view source;
};
std::span<const HarnessFile> HarnessFiles();
// JSON text of caisson_guard's policy for this runtime (make_policy.py).
std::string_view GuardPolicy();

// Programs for `python -c`. The first reads CompileInput and writes what ReadCompiled reads; the
// second reads what MakeHead makes, then a job, and runs it (caisson_container.py).
std::string_view CompileProgram();
std::string_view StartProgram();

Result<std::string> CompileInput(bool may_start_processes);

struct Compiled {
  std::string python;  // "3.11.2"
  std::string code;    // version of the interpreter, size, marshalled code
};
// Fails with oci.failed.
Result<Compiled> ReadCompiled(std::string_view output);

// As in caisson_container.py.
enum HeadFlags : std::uint64_t { kUnguarded = 1, kPumpStdout = 2 };
enum ExpectedWalls : std::uint64_t {
  kExpectNoNewPrivileges = 1,
  kExpectNoCapabilities = 2,
  kExpectReadOnlyRoot = 4,
  kExpectNoNetwork = 8,
  kExpectOtherUser = 16,
  kExpectOuterFilter = 32,
  kExpectFilter = 64,
  kExpectFirstProcess = 128,
};
struct Head {
  std::uint64_t channel = 1;  // descriptor
  std::uint64_t flags = 0;
  std::uint64_t expected = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::string_view filter;  // a program for seccomp(2)
};
std::string MakeHead(const Compiled& compiled, const Head& head);

}  // namespace caisson::isolate::oci
