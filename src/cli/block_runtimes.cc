// SPDX-License-Identifier: Apache-2.0
#include "cli/block_runtimes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "block/libraries.h"
#include "block/request.h"
#include "cli/block_cpython.h"
#include "cli/block_oci.h"
#include "cli/held_image.h"
#include "errors/block.h"
#include "errors/isolate.h"
#include "images/store.h"
#include "isolate/native/native.h"

namespace caisson::cli {
namespace {

using block::RuntimeId;

// One process serves one tenant: its operator.
constexpr char kTenant[] = "local";

// What scripts import together; each set costs an interpreter that waits.
std::vector<isolate::native::LibrarySet> NativeSets() {
  return {{.name = "bare", .imports = {}},
          {.name = "pandas", .imports = {"numpy", "pandas", "dateutil"}},
          {.name = "science",
           .imports = {"numpy", "pandas", "dateutil", "scipy", "sympy", "statsmodels", "networkx",
                       "sklearn", "xarray", "pint", "cftime"}},
          {.name = "geo",
           .imports = {"numpy", "pandas", "dateutil", "xarray", "shapely", "pyproj", "geopandas",
                       "rasterio", "rioxarray"}},
          {.name = "all",
           .imports = {"numpy", "pandas", "dateutil", "scipy", "sympy", "statsmodels", "networkx",
                       "sklearn", "xarray", "pint", "cftime", "shapely", "pyproj", "geopandas",
                       "rasterio", "rioxarray", "astropy", "matplotlib"}}};
}

// Only what the list of libraries has: an interpreter that others are forked from runs no module
// that a script could have thought of.
isolate::native::LibrarySet SetOf(const std::vector<std::string>& imports) {
  isolate::native::LibrarySet set{.name = "script", .imports = {}, .warm_up = false};
  for (const std::string& name : imports) {
    const block::ModuleFacts facts = block::FindModule(name);
    if (facts.kind == block::ModuleKind::kLibrary && facts.IsIn(RuntimeId::kNative)) {
      set.imports.push_back(name);
    }
  }
  return set;
}

// A root file system, and what keeps it.
struct Root {
  std::string directory;
  std::optional<images::HeldImage> image;
};

Result<Root> FindRoot(const BlockRuntimeArguments& arguments) {
  if (arguments.root) return Root{*arguments.root, {}};
  CAISSON_ASSIGN(images::HeldImage held, HoldImage(arguments.image.value_or(kDefaultImage)));
  std::string directory = held.image.root;
  return Root{std::move(directory), std::move(held)};
}

// Counts results.
class Counter final : public isolate::ScriptSink {
 public:
  bool Take(const isolate::ScriptMessage& message) override {
    results += message.kind == isolate::MessageKind::kDone ? 1 : 0;
    return true;
  }
  int results = 0;
};

}  // namespace

struct BlockRuntimes::Parts {
  std::unique_ptr<BlockCpython> cpython;
  Root root;  // outlives the interpreters that run in it
  std::unique_ptr<isolate::native::NativeRuntime> native;
  BlockOci oci;
};

BlockRuntimes::BlockRuntimes(Console& console)
    : console_(console), parts_(std::make_unique<Parts>()) {}
BlockRuntimes::~BlockRuntimes() = default;

Result<std::unique_ptr<BlockRuntimes>> BlockRuntimes::Open(const BlockRuntimeArguments& arguments,
                                                           const Need& need, Console& console) {
  std::unique_ptr<BlockRuntimes> runtimes(new BlockRuntimes(console));
  block::RuntimeSet& set = runtimes->set_;
  const RuntimeWish& wish = need.wish;
  set.default_runtime = wish.id;
  set.auto_by_default = set.allow_auto = wish.by_imports;
  auto cpython = runtimes->OpenCpython(arguments, need);
  if (!cpython) set[RuntimeId::kCpython].reason = cpython.error().message;
  auto native = runtimes->OpenNative(arguments, need);
  if (!native) set[RuntimeId::kNative].reason = native.error().message;
  if (need.all || wish.by_imports || wish.id == RuntimeId::kOci) {
    auto oci = runtimes->OpenOci(arguments, need);
    if (!oci) set[RuntimeId::kOci].reason = oci.error().message;
  }
  if (wish.by_imports || set[wish.id].runtime != nullptr) return runtimes;
  return Fail(errors::kBlockRuntimeUnavailable, "the runtime " +
                                                    std::string(block::RuntimeName(wish.id)) +
                                                    " is not available: " + set[wish.id].reason);
}

Result<void> BlockRuntimes::OpenCpython(const BlockRuntimeArguments& arguments, const Need& need) {
  CAISSON_ASSIGN(parts_->cpython,
                 BlockCpython::Open(arguments, need.runs, need.memory_bytes, console_));
  set_[RuntimeId::kCpython].runtime = parts_->cpython.get();
  return {};
}

Result<void> BlockRuntimes::OpenNative(const BlockRuntimeArguments& arguments, const Need& need) {
  CAISSON_ASSIGN(parts_->root, FindRoot(arguments));
  isolate::native::NativeOptions options;
  options.root = parts_->root.directory;
  options.tenant = kTenant;
  options.sets = need.imports ? std::vector{SetOf(*need.imports)} : NativeSets();
  options.cpus = need.wish.cpus;
  CAISSON_ASSIGN(parts_->native, isolate::native::NativeRuntime::Create(std::move(options)));
  set_[RuntimeId::kNative].runtime = parts_->native.get();
  return {};
}

Result<void> BlockRuntimes::Try(RuntimeId id) {
  const block::RuntimeEntry& entry = set_[id];
  if (entry.runtime == nullptr) return Fail(errors::kBlockRuntimeUnavailable, entry.reason);
  isolate::ScriptJob job;
  job.source = "done(1)\n";
  auto inputs = block::MakeInputs({});
  if (!inputs) return Fail(std::move(inputs).error().status);
  job.inputs = *std::move(inputs);
  job.limits.wall_clock = std::chrono::seconds(30);
  Counter sink;
  CAISSON_ASSIGN(const isolate::ScriptOutcome outcome, entry.runtime->Run(job, sink, {}));
  if (!outcome.ok()) return Fail(errors::kIsolateSelfTest, outcome.message);
  if (sink.results != 1) return Fail(errors::kIsolateSelfTest, "a script's result was lost");
  return {};
}

Result<void> BlockRuntimes::OpenOci(const BlockRuntimeArguments& arguments, const Need& need) {
  CAISSON_ASSIGN(parts_->oci, BlockOci::Open(arguments, need.wish.cpus));
  set_[RuntimeId::kOci].runtime = parts_->oci.runtime.get();
  return {};
}

bool BlockRuntimes::MayUse(RuntimeId id) const {
  return set_[id].runtime != nullptr && (set_.default_runtime == id || set_.allow_auto);
}

void BlockRuntimes::Warm(const std::stop_token& stop) {
  if (MayUse(RuntimeId::kCpython)) {
    auto prepared = parts_->cpython->Prepare(stop);
    if (!prepared && !stop.stop_requested()) console_.Warn("cpython: " + prepared.error().message);
  }
  if (MayUse(RuntimeId::kNative) && !stop.stop_requested()) {
    auto prepared = parts_->native->Prepare(stop);
    if (!prepared) console_.Warn("native: " + prepared.error().message);
  }
  if (MayUse(RuntimeId::kOci) && !stop.stop_requested()) {
    auto prepared = parts_->oci.runtime->Prepare();
    if (!prepared) console_.Warn("oci: " + prepared.error().message);
  }
}

}  // namespace caisson::cli
