// SPDX-License-Identifier: Apache-2.0
// The program that makes containers: runc or gVisor's runsc directly, by a bundle of ours, or the
// command of Docker or Podman. Looked at before it is used: what it does not enforce is refused.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "machine/oci/names.h"
#include "machine/oci/policy.h"

namespace caisson::machine::oci {

enum class RuntimeKind : unsigned char { kRunc, kRunsc, kDocker, kPodman };
inline constexpr std::array kRuntimeKinds = {RuntimeKind::kRunc, RuntimeKind::kRunsc,
                                             RuntimeKind::kDocker, RuntimeKind::kPodman};
std::string_view NameOf(RuntimeKind kind);
std::optional<RuntimeKind> FindRuntimeKind(std::string_view name);
// Runs a root file system of ours and not an image of its own.
constexpr bool TakesBundles(RuntimeKind kind) {
  return kind == RuntimeKind::kRunc || kind == RuntimeKind::kRunsc;
}

struct Runtime {
  RuntimeKind kind = RuntimeKind::kRunc;
  std::string program;  // absolute path
  std::string version;  // its own words, one line
};

// `program`: empty to look in PATH. Fails with oci.unavailable, which says what is missing: the
// program, seccomp, a cgroup controller, root.
Result<Runtime> ProbeRuntime(RuntimeKind kind, const std::string& program = "");

// What `docker info` (or `podman info`) as JSON says it does not enforce; empty: everything.
std::vector<std::string> FindGaps(RuntimeKind kind, const json::Value& info);

// The id under which the engine has the image. Never fetches. Fails with oci.unavailable.
Result<std::string> FindEngineImage(const Runtime& runtime, const ImageReference& image);

// The command line of `run` for Docker and Podman. `policy.root` is not used.
struct EngineRun {
  std::string name;
  std::string owner;         // a label, for those who reap
  std::string image;         // an id, or a reference that has been checked
  std::string seccomp_file;  // absolute path of SeccompProfile's text
};
std::vector<std::string> EngineCommand(const Runtime& runtime, const ContainerPolicy& policy,
                                       const EngineRun& run);

}  // namespace caisson::machine::oci
