// SPDX-License-Identifier: Apache-2.0
// For tests: a helper with virtual machines (machine/test_helper.h). Emulated, wherever KVM cannot
// be had. Needs the kernel that the test images.guest_kernel has fetched.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "machine/microvm/driver.h"
#include "machine/test_helper.h"
#include "machine/test_helper_world.h"
#include "os/run_program.h"

namespace caisson::machine::microvm {

inline std::string KernelForTests() {
  const char* place = std::getenv("CAISSON_GUEST_KERNEL");
  return place != nullptr ? place : CAISSON_TEST_GUEST_KERNEL;
}

// Why no virtual machine can be made here; empty when it can.
inline std::string WhyNoVirtualMachines() {
  if (std::string why = WhyNoMachines(); !why.empty()) return why;
  if (os::FindProgram("qemu-system-x86_64").empty()) return "needs qemu-system-x86_64";
  if (os::FindProgram("mkfs.erofs").empty()) return "needs mkfs.erofs (erofs-utils)";
  if (!std::filesystem::exists(KernelForTests() + "/vmlinuz")) {
    return "there is no kernel for guests; the test images.guest_kernel says why";
  }
  return "";
}

inline MicrovmOptions OptionsForTests(const std::string& state) {
  const std::string programs = CAISSON_TEST_PROGRAMS;
  // Templates are made once for all tests.
  const std::string cache = CAISSON_TEST_VM_CACHE;
  std::filesystem::create_directories(cache);
  return {.state = state,
          .cache = cache,
          .images = ImagesForTests(),
          .kernel = KernelForTests(),
          .agent = programs + "/caisson-agent",
          .init = programs + "/caisson-guest-init",
          .vmm = programs + "/caisson-vmm",
          .preload = programs + "/caisson-private-memory.so",
          .qemu = {},
          .allow_emulation = true,
          .try_kvm = std::getenv("CAISSON_TEST_KVM") != nullptr,
          .template_patience = std::chrono::minutes(2),
          .waiting = 0};
}

inline HelperProcess::Options MicrovmHelper(bool network = false) {
  return {.driver = "microvm",
          .open =
              [](const std::string& state, SharedParts parts) {
                return OpenMicrovm(OptionsForTests(state), std::move(parts));
              },
          .network = network};
}

inline MakeWorld MicrovmWith(bool network) {
  return [=]() -> std::unique_ptr<World> {
    return std::make_unique<HelperWorld>(MicrovmHelper(network), WhyNoVirtualMachines());
  };
}

}  // namespace caisson::machine::microvm
