// SPDX-License-Identifier: Apache-2.0
// For tests: a helper with the jail (machine/test_helper.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "machine/jail/driver.h"
#include "machine/test_helper.h"
#include "machine/test_helper_world.h"

namespace caisson::machine::jail {

inline HelperProcess::Options JailHelper(bool network = false, std::size_t prepared = 2,
                                         std::size_t threads = 2) {
  return {.driver = "jail",
          .open =
              [=](const std::string& state, SharedParts parts) {
                return OpenJail({.workshop = {.state = state,
                                              .images = ImagesForTests(),
                                              .agent = CAISSON_TEST_AGENT},
                                 .prepared = prepared,
                                 .threads = threads},
                                std::move(parts));
              },
          .network = network};
}

inline MakeWorld JailWith(bool network) {
  return [network]() -> std::unique_ptr<World> {
    return std::make_unique<HelperWorld>(JailHelper(network), WhyNoMachines());
  };
}

}  // namespace caisson::machine::jail
