// SPDX-License-Identifier: Apache-2.0
// For tests: a helper with the driver of containers (machine/test_helper.h).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "machine/oci/driver.h"
#include "machine/test_helper.h"
#include "machine/test_helper_world.h"

namespace caisson::machine::oci {

inline HelperProcess::Options OciHelper(const std::string& runtime, bool network = false,
                                        std::size_t prepared = 2) {
  return {.driver = "oci",
          .open = [runtime, prepared](const std::string& state,
                                      SharedParts parts) -> Result<std::unique_ptr<LocalDriver>> {
            CAISSON_ASSIGN(Runtime chosen, ChooseRuntime(runtime));
            return OpenOci({.workshop = {.state = state,
                                         .images = ImagesForTests(),
                                         .agent = CAISSON_TEST_AGENT,
                                         .init = CAISSON_TEST_CONTAINER_INIT},
                            .runtime = std::move(chosen),
                            .prepared = prepared,
                            .threads = 2},
                           std::move(parts));
          },
          .network = network};
}

// Why no machine of this runtime can be made here; empty when it can.
inline std::string WhyNoOci(const std::string& runtime) {
  if (std::string why = WhyNoMachines(); !why.empty()) return why;
  const auto chosen = ChooseRuntime(runtime);
  return chosen ? "" : chosen.error().message;
}

inline MakeWorld OciWith(const std::string& runtime, bool network) {
  return [=]() -> std::unique_ptr<World> {
    return std::make_unique<HelperWorld>(OciHelper(runtime, network), WhyNoOci(runtime));
  };
}

}  // namespace caisson::machine::oci
