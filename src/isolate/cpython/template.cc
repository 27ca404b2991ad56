// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/template.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <vector>

#include "base/digest/sha256.h"
#include "errors/isolate.h"
#include "isolate/cpython/options.h"
#include "isolate/cpython/pins.h"
#include "isolate/large_stack.h"
#include "wasm/detach.h"
#include "wasm/memory_slots.h"

namespace caisson::isolate::cpython {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTemplateMemory = std::uint64_t{1} << 30;
constexpr auto kTimeout = std::chrono::minutes(15);
constexpr std::size_t kDescriptorsAtRest = 4;  // three streams and the root
constexpr std::size_t kKeptOutput = 16u << 10;
constexpr char kReport = 16;

// What every run begins with; placed in the memory, so that a run need not.
constexpr std::string_view kEntry = "import caisson_host\ncaisson_host.main()\n";

class TemplateSystem final : public GuestSystem {
 public:
  explicit TemplateSystem(const std::stop_token& stop)
      : GuestSystem(SystemOptions(std::uint64_t{16} << 20)), stop_(stop) {
    set_output([this](Stream, std::string_view text) {
      said += text.substr(0, kKeptOutput - std::min(kKeptOutput, said.size()));
    });
  }
  std::optional<std::string> HostCall(std::string_view request) override {
    if (request.size() > 2 && request.front() == kReport) about = request.substr(2);
    return std::string();
  }
  bool MayGoOn() override { return !stop_.stop_requested() && Clock::now() < deadline_; }

  std::string said;
  std::string about;

 private:
  const std::stop_token& stop_;
  const Clock::time_point deadline_ = Clock::now() + kTimeout;
};

std::unexpected<Status> Bad(const std::string& set, std::string_view what) {
  return Fail(errors::kIsolateSelfTest,
              fmt::format("The prepared interpreter \"{}\" cannot be made: {}.", set, what));
}

// The sources of a set: its own after those of all smaller ones.
std::vector<std::string> SourcesOf(const std::string& set) {
  std::vector<std::string> names = {"sets/start.py"};
  for (const std::string& known : KnownSets()) {
    names.push_back("sets/" + known + ".py");
    if (known == set) {
      names.emplace_back("sets/finish.py");
      return names;
    }
  }
  return {};
}

Result<void> RunSource(Guest& guest, TemplateSystem& system, const std::string& set,
                       const std::string& name) {
  const std::string_view source = FindGuestSource(name);
  if (source.empty()) return Bad(set, "its source " + name + " is missing");
  system.said.clear();
  const GuestCall call = guest.Turn(source);
  if (call.ok() && call.value == 0) return {};
  const std::string how = call.ok() ? fmt::format("it returned {}", call.value) : call.detail;
  const std::size_t end = system.said.find_last_not_of(" \n") + 1;
  return Bad(set, fmt::format("{}: {}: {}", name, how, system.said.substr(0, end)));
}

Result<Snapshot> Build(const TemplateInputs& inputs, const std::string& set,
                       const std::stop_token& stop) {
  const std::vector<std::string> sources = SourcesOf(set);
  if (sources.empty()) return Bad(set, "there is no set of that name");
  const wasm::WrittenPages no_search = wasm::WrittenPages::Open(wasm::PageSearch::kNone);
  wasm::SlotPool pool(inputs.first_memory, no_search, {});
  TemplateSystem system(stop);
  FillSystem(system, inputs.files);
  CAISSON_ASSIGN(const std::unique_ptr<Guest> guest,
                 Guest::Make(inputs.module, pool, system, kTemplateMemory));
  if (const GuestCall call = guest->Initialize(); !call.ok()) return Bad(set, call.detail);
  for (const std::string& name : sources) CAISSON_TRY(RunSource(*guest, system, set, name));

  Snapshot snapshot;
  snapshot.set = set;
  snapshot.entry_address = guest->Place(kEntry);
  snapshot.entry_size = static_cast<std::uint32_t>(kEntry.size());
  snapshot.stack_pointer = guest->stack_pointer();
  snapshot.about = system.about;
  snapshot.made = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  if (snapshot.entry_address == 0) return Bad(set, "no memory is left for its entry");
  if (snapshot.about.empty()) return Bad(set, "it did not say what it is");
  if (snapshot.stack_pointer != inputs.stack_pointer) {
    return Bad(set, "its stack is not empty at the end");
  }
  if (system.open_descriptors() != kDescriptorsAtRest) {
    return Bad(set, fmt::format("{} descriptors are open at the end", system.open_descriptors()));
  }
  CAISSON_ASSIGN(snapshot.image, wasm::MemoryImage::Make(guest->memory(), guest->memory().size()));
  return snapshot;
}

}  // namespace

Result<Snapshot> MakeTemplate(const TemplateInputs& inputs, const std::string& set,
                              const std::stop_token& stop) {
  std::optional<Result<Snapshot>> result;
  CAISSON_TRY(OnLargeStack(kThreadStackBytes, [&] { result.emplace(Build(inputs, set, stop)); }));
  return *std::move(result);
}

std::string SnapshotKey(const std::string& set, const std::string& tenant) {
  return digest::Sha256Hex(fmt::format("cpython {} detach {} {}\nset {}\ntenant {}\n{}",
                                       pins::kSha256, wasm::kDetachVersion, LayoutDigest(), set,
                                       digest::Sha256Hex(tenant), kEntry));
}

std::string CodeIdentity() {
  return fmt::format("cpython {} detach {}", pins::kSha256, wasm::kDetachVersion);
}

}  // namespace caisson::isolate::cpython
