// SPDX-License-Identifier: Apache-2.0
#include "cli/block_oci.h"

#include <utility>

#include "cli/block_policy.h"
#include "cli/held_image.h"
#include "errors/oci.h"
#include "machine/oci/names.h"
#include "machine/oci/runtime.h"
#include "machine/oci/state.h"

namespace caisson::cli {
namespace {

using machine::oci::RuntimeKind;

Result<machine::oci::Runtime> FindRuntime(const BlockRuntimeArguments& arguments) {
  if (arguments.container_runtime) {
    const auto kind = machine::oci::FindRuntimeKind(*arguments.container_runtime);
    if (!kind) {
      return Fail(errors::kOciUnavailable,
                  "there is no container runtime of the name " + *arguments.container_runtime);
    }
    return machine::oci::ProbeRuntime(*kind);
  }
  auto runc = machine::oci::ProbeRuntime(RuntimeKind::kRunc);
  if (runc) return runc;
  auto runsc = machine::oci::ProbeRuntime(RuntimeKind::kRunsc);
  if (runsc) return runsc;
  return Fail(errors::kOciUnavailable, runc.error().message + "; " + runsc.error().message +
                                           "; for Docker or Podman say --container-runtime");
}

// The name in our own store that a reference stands for: its last part, as `images build` names it.
Result<std::string> NameInStore(const machine::oci::ImageReference& image) {
  if (!image.registry.empty() || image.repository.find('/') != std::string::npos) {
    return Fail(errors::kOciUnavailable,
                "the image " + image.ToText() +
                    " is one of an engine; runc and runsc run images of `caisson images`. Say "
                    "--container-runtime docker or podman, or another image");
  }
  if (!image.digest.empty()) return image.digest.substr(image.digest.find(':') + 1);
  return image.repository;
}

Result<BlockOci> OpenBundles(BlockOci oci, isolate::oci::OciOptions& options,
                             const BlockRuntimeArguments& arguments,
                             const machine::oci::ImageReference& image) {
  options.root = arguments.root.value_or("");
  if (arguments.root) return oci;
  CAISSON_ASSIGN(const std::string name, NameInStore(image));
  CAISSON_ASSIGN(oci.image, HoldImage(name));
  options.root = oci.image->image.root;
  return oci;
}

}  // namespace

Result<BlockOci> BlockOci::Open(const BlockRuntimeArguments& arguments, double cpus) {
  CAISSON_ASSIGN(const block::Environment environment, ReadBlockEnvironment());
  isolate::oci::OciOptions options;
  CAISSON_ASSIGN(options.runtime, FindRuntime(arguments));
  options.state = machine::oci::State::DefaultDirectory();
  options.cpus = cpus;
  std::string wish(kDefaultImage);
  if (environment.image) wish = *environment.image;
  if (arguments.image) wish = *arguments.image;
  CAISSON_ASSIGN(const auto image, machine::oci::ParseImageReference(wish));
  BlockOci oci;
  if (TakesBundles(options.runtime.kind)) {
    CAISSON_ASSIGN(oci, OpenBundles(std::move(oci), options, arguments, image));
  } else {
    CAISSON_ASSIGN(options.image, FindEngineImage(options.runtime, image));
  }
  CAISSON_ASSIGN(oci.runtime, isolate::oci::OciRuntime::Create(std::move(options)));
  return oci;
}

}  // namespace caisson::cli
