// SPDX-License-Identifier: Apache-2.0
// Builds a template: a machine of its base, the steps of its Dockerfile as commands in it, and a
// snapshot of its disk, from which machines are restored. Code of the template runs nowhere but in
// that machine, with the tenant's network policy; it is gone when this returns, whatever happened.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "images/dockerfile.h"
#include "machine/driver.h"

namespace caisson::control {

struct TemplateBuild {
  // Its id and image, and what the build may use; the network is the policy of the build.
  machine::MachineSpec machine;
  std::string snapshot;  // the id of what comes out, as of machines
  images::Dockerfile file;
  std::chrono::milliseconds time_limit =
      std::chrono::minutes(30);          // for all steps; for the machine, too
  std::size_t max_log_bytes = 4u << 20;  // what is beyond is left out, and that is said
};

struct TemplateLog {
  enum class Level : std::uint8_t { kInfo, kError };
  Level level = Level::kInfo;
  std::string line;  // fit to be shown; without its end
};

// Blocks until the build is over. `log` gets lines as they come, on this thread. Fails with
// control.template_failed (a step failed, or ran out of time: the message names line and exit
// code), control.template_stopped, and as the driver does; on failure there is no snapshot.
Result<machine::Snapshot> BuildTemplate(machine::Driver& driver, const TemplateBuild& build,
                                        const std::function<void(const TemplateLog&)>& log,
                                        const std::stop_token& stop);

}  // namespace caisson::control
