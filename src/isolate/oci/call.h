// SPDX-License-Identifier: Apache-2.0
// One script run in a container, supervised from outside.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "isolate/script.h"
#include "isolate/supervision.h"
#include "machine/oci/container.h"
#include "machine/oci/state.h"

namespace caisson::isolate::oci {

struct CallResult {
  ScriptOutcome outcome;
  machine::oci::Container container;  // to be buried
};

// `head` stands before the job on the container's standard input. Blocks. Fails with oci.failed or
// jail.unavailable before anything of the script has run, and as Container::Start does.
Result<CallResult> RunCall(machine::oci::State& state, machine::oci::ContainerStart start,
                           std::string_view head, const ScriptJob& job, ScriptSink& sink,
                           const std::stop_token& stop);

// What a container writes that is given `input` and no script; no more than 64 MiB, and two
// minutes. Fails with oci.failed.
Result<std::string> RunTrusted(machine::oci::State& state, machine::oci::ContainerStart start,
                               std::string_view input);

}  // namespace caisson::isolate::oci
