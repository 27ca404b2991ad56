// SPDX-License-Identifier: Apache-2.0
// The `oci` runtime: CPython of an image in a container of its own for each run, made by runc,
// gVisor's runsc, Docker or Podman. The harness looks at the walls from inside before it runs
// anything of a script, so that a container runtime that leaves one out is refused and not
// believed.
#pragma once

#include <linux/filter.h>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "isolate/oci/graveyard.h"
#include "isolate/oci/harness.h"
#include "isolate/oci/options.h"
#include "isolate/script.h"
#include "machine/oci/state.h"

namespace caisson::isolate::oci {

class OciRuntime final : public ScriptRuntime {
 public:
  // Removes what dead processes have left; starts nothing yet. Fails with oci.state, os.syscall.
  static Result<std::unique_ptr<OciRuntime>> Create(OciOptions options);
  // Waits until nothing is left of the last containers.
  ~OciRuntime() override;

  // Has the image's interpreter compile the harness; without it the first job does. Fails with
  // oci.failed, which tells the runtime's last words.
  Result<void> Prepare();
  // Fails also with oci.unavailable (a limit that this container runtime cannot count) and
  // jail.unavailable (a wall that does not stand, as seen from inside).
  Result<ScriptOutcome> Run(const ScriptJob& job, ScriptSink& sink, std::stop_token stop) override;
  json::Value Describe() const override;

 private:
  OciRuntime(OciOptions options, machine::oci::State state);
  Result<std::shared_ptr<const Compiled>> GetCompiled();
  Result<Compiled> Compile();
  machine::oci::ContainerPolicy MakePolicy(const ScriptLimits& limits,
                                           std::string_view program) const;
  std::string MakeStart(const ScriptLimits& limits, const Compiled& compiled) const;

  OciOptions options_;
  machine::oci::State state_;
  std::vector<os::SyscallRule> syscalls_;  // of the container, until the script's filter
  std::vector<sock_filter> filter_;        // of the script
  mutable std::mutex mutex_;               // of what follows
  std::shared_ptr<const Compiled> compiled_;
  std::size_t reaped_ = 0;
  Graveyard graveyard_;  // last: its containers use the others
};

}  // namespace caisson::isolate::oci
