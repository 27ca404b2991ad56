// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "errors/isolate.h"
#include "isolate/cpython/guest.h"
#include "isolate/cpython/layout.h"
#include "isolate/cpython/pins.h"
#include "isolate/cpython/script_run.h"
#include "isolate/cpython/snapshot.h"
#include "isolate/cpython/template.h"
#include "isolate/large_stack.h"
#include "json/reader.h"
#include "wasm/engine.h"
#include "wasm/module_cache.h"

namespace caisson::isolate::cpython {
namespace {

// What a run needs beyond its snapshot before it has done anything of its own.
constexpr std::uint64_t kLeastHeadroom = 8u << 20;

struct PreparedSet {
  Snapshot snapshot;
  std::set<std::string, std::less<>> modules;
  json::Value versions;
  std::unique_ptr<wasm::SlotPool> pool;
};

std::unexpected<Status> NotPrepared(const std::string& set) {
  return Fail(errors::kIsolateNotPrepared,
              fmt::format("The prepared interpreter \"{}\" is not in the cache. Prepare the "
                          "runtime (caisson runtimes install cpython); that takes some seconds per "
                          "interpreter.",
                          set));
}

// What the template said of itself.
void ReadAbout(PreparedSet& set) {
  const auto about = json::Read(set.snapshot.about);
  if (!about || !about->is_object()) return;
  if (const json::Value* modules = about->Find("modules"); modules && modules->is_array()) {
    for (const json::Value& name : modules->as_array()) {
      if (name.is_string()) set.modules.insert(name.as_string());
    }
  }
  if (const json::Value* versions = about->Find("versions")) set.versions = *versions;
}

class SnapshotExecutor final : public CPythonExecutor {
 public:
  explicit SnapshotExecutor(const CPythonOptions& options)
      : options_(options), checked_(options.checked) {}
  ~SnapshotExecutor() override { Recover(); }

  Result<void> Start();
  Result<ScriptOutcome> Execute(const ScriptJob& job, ScriptSink& sink,
                                const std::function<bool()>& cancelled) override;
  void Recover() override;
  std::size_t stack_bytes() const override { return kThreadStackBytes; }
  json::Value Describe() const override;
  int pagemap_descriptor() const override { return search_.descriptor(); }
  wasm::SlotStats SlotsOf(std::string_view set) const override;
  std::string ChooseSet(const std::vector<std::string>& imports) const override {
    return Choose(imports).snapshot.set;
  }

 private:
  // An ended run whose memory has not been given back yet.
  struct Ended {
    std::unique_ptr<ScriptRun> run;
    std::unique_ptr<Guest> guest;  // goes first
    PreparedSet* set = nullptr;
  };

  Result<void> LoadSet(const std::string& name, const SnapshotStore& store);
  Result<void> SelfTest(PreparedSet& set);
  PreparedSet& Choose(const std::vector<std::string>& imports) const;
  Result<ScriptOutcome> RunIn(PreparedSet& set, const ScriptJob& job, ScriptSink& sink,
                              const std::function<bool()>& cancelled);

  const CPythonOptions options_;
  wasm::CheckedFiles checked_;
  wasm::WrittenPages search_ = wasm::WrittenPages::Open();
  std::unique_ptr<wasm::Engine> engine_;
  GuestFiles files_;
  std::unique_ptr<GuestModule> module_;
  std::vector<std::unique_ptr<PreparedSet>> sets_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

Result<void> SnapshotExecutor::Start() {
  const std::string directory =
      options_.directory.empty() ? DefaultDirectory() : options_.directory;
  const std::string cache_directory =
      options_.cache_dir.empty() ? wasm::DefaultCacheDir() : options_.cache_dir;
  CAISSON_ASSIGN(files_, MapGuestFiles(directory, checked_));
  CAISSON_ASSIGN(const wasm::ModuleCache cache, wasm::ModuleCache::Open(cache_directory));
  CAISSON_ASSIGN(engine_, wasm::Engine::CreateMapped({.max_wasm_stack_bytes = kGuestStackBytes}));
  CAISSON_ASSIGN(wasm::ModuleHandle code, cache.LoadMapped(*engine_, CodeIdentity(), checked_));
  CAISSON_ASSIGN(module_, GuestModule::Make(*engine_, std::move(code)));
  const SnapshotStore store(cache_directory, options_.max_snapshot_bytes);
  for (const std::string& known : KnownSets()) {
    if (std::ranges::find(options_.sets, known) == options_.sets.end()) continue;
    CAISSON_TRY(LoadSet(known, store));
  }
  if (sets_.size() != options_.sets.size() || sets_.empty()) {
    return Fail(errors::kIsolateNotPrepared, "A set of libraries that was asked for is not known.");
  }
  return {};
}

Result<void> SnapshotExecutor::LoadSet(const std::string& name, const SnapshotStore& store) {
  CAISSON_ASSIGN(std::optional<Snapshot> snapshot, store.Load(SnapshotKey(name, options_.tenant),
                                                              options_.max_snapshot_age, checked_));
  if (!snapshot) return NotPrepared(name);
  auto set = std::make_unique<PreparedSet>();
  set->snapshot = *std::move(snapshot);
  ReadAbout(*set);
  set->pool = std::make_unique<wasm::SlotPool>(set->snapshot.image, search_,
                                               wasm::SlotOptions{.verify = options_.verify_resets});
  CAISSON_TRY(SelfTest(*set));
  sets_.push_back(std::move(set));
  return {};
}

// Also a run of the usual kind, so that its pages are there when the first real one comes.
Result<void> SnapshotExecutor::SelfTest(PreparedSet& set) {
  ScriptJob job;
  job.entry = ScriptEntry::kBody;
  job.source = "def run(self, state, config):\n    return {'sum': sum(state['n'])}\n";
  job.inputs = R"({"self":{},"state":{"n":[1,2,3]},"config":{}})";
  if (set.modules.contains("pandas")) {
    job.source =
        "import pandas as pd\ndef run(self, state, config):\n"
        "    f = pd.DataFrame({'n': state['n'], 'k': ['a', 'b', 'a']})\n"
        "    return {'sum': int(f.groupby('k').n.sum().sum())}\n";
  }
  class Expect final : public ScriptSink {
   public:
    bool Take(const ScriptMessage& message) override {
      good |= message.kind == MessageKind::kDone && message.text == R"({"sum":6})";
      return true;
    }
    bool good = false;
  } sink;
  const std::function<bool()> never = [] { return false; };
  std::optional<Result<ScriptOutcome>> outcome;
  CAISSON_TRY(OnLargeStack(stack_bytes(), [&] {
    outcome.emplace(RunIn(set, job, sink, never));
    Recover();
  }));
  CAISSON_TRY(*outcome);
  if (sink.good && (*outcome)->ok()) return {};
  return Fail(errors::kIsolateSelfTest,
              fmt::format("The prepared interpreter \"{}\" did not give the known answer: {} {}. "
                          "Remove the cache directory and prepare the runtime again.",
                          set.snapshot.set, (*outcome)->error_type, (*outcome)->message));
}

PreparedSet& SnapshotExecutor::Choose(const std::vector<std::string>& imports) const {
  PreparedSet* best = sets_.front().get();
  std::ptrdiff_t most = -1;
  for (const auto& set : sets_) {
    const std::ptrdiff_t has = std::ranges::count_if(
        imports, [&](const std::string& name) { return set->modules.contains(name); });
    if (has <= most) continue;
    most = has;
    best = set.get();
  }
  return *best;
}

Result<ScriptOutcome> SnapshotExecutor::Execute(const ScriptJob& job, ScriptSink& sink,
                                                const std::function<bool()>& cancelled) {
  Recover();
  PreparedSet& set = Choose(job.imports);
  const std::uint64_t least = set.snapshot.image->size() + kLeastHeadroom;
  if (job.limits.memory_bytes < least) {
    ScriptOutcome outcome;
    outcome.fault = Fault::kMemory;
    outcome.message = fmt::format(
        "the memory limit of {} bytes is below the {} bytes that the interpreter needs with its "
        "libraries (set \"{}\")",
        job.limits.memory_bytes, least, set.snapshot.set);
    return outcome;
  }
  return RunIn(set, job, sink, cancelled);
}

Result<ScriptOutcome> SnapshotExecutor::RunIn(PreparedSet& set, const ScriptJob& job,
                                              ScriptSink& sink,
                                              const std::function<bool()>& cancelled) {
  CAISSON_ASSIGN(std::string job_text, EncodeJob(job));
  auto run = std::make_unique<ScriptRun>(files_, job, std::move(job_text), sink, cancelled);
  CAISSON_ASSIGN(std::unique_ptr<Guest> guest,
                 Guest::Make(*module_, *set.pool, *run, job.limits.memory_bytes));
  if (guest->stack_pointer() != set.snapshot.stack_pointer) {
    return Fail(errors::kIsolateSelfTest, "A fresh interpreter's stack is not where it should be.");
  }
  const GuestCall call = guest->Turn(set.snapshot.entry_address, set.snapshot.entry_size);
  ScriptOutcome outcome = run->Finish(call, *guest);
  guest->StopTicking();
  const std::lock_guard lock(mutex_);
  ended_.push_back({std::move(run), std::move(guest), &set});
  return outcome;
}

void SnapshotExecutor::Recover() {
  std::vector<Ended> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  for (Ended& one : ended) {
    one.guest.reset();
    // Where that fails, the next run makes what it needs, or says why it cannot.
    (void)one.set->pool->Prepare(1);
  }
}

wasm::SlotStats SnapshotExecutor::SlotsOf(std::string_view name) const {
  for (const auto& set : sets_) {
    if (set->snapshot.set == name) return set->pool->stats();
  }
  return {};
}

std::string_view NameOf(wasm::PageSearch way) {
  switch (way) {
    case wasm::PageSearch::kScan:
      return "copied back (PAGEMAP_SCAN)";
    case wasm::PageSearch::kRead:
      return "copied back (pagemap)";
    default:
      return "dropped (MADV_DONTNEED)";
  }
}

json::Value SnapshotExecutor::Describe() const {
  json::Object about;
  about.Set("name", "cpython");
  about.Set("artifact", fmt::format("{}=={}", pins::kPackage, pins::kVersion));
  about.Set("sha256", std::string(pins::kSha256));
  about.Set("python", std::string(pins::kPython));
  about.Set("engine", engine_->fingerprint());
  about.Set("reset", std::string(NameOf(search_.way())));
  json::Array sets;
  for (const auto& set : sets_) {
    json::Object entry;
    entry.Set("name", set->snapshot.set);
    entry.Set("memory_bytes", static_cast<std::int64_t>(set->snapshot.image->size()));
    entry.Set("versions", set->versions);
    sets.push_back(std::move(entry));
  }
  about.Set("sets", std::move(sets));
  json::Array checked;
  for (const std::string& stamp : checked_.stamps()) checked.emplace_back(stamp);
  about.Set("checked", std::move(checked));
  return about;
}

}  // namespace

Result<std::unique_ptr<CPythonExecutor>> CPythonExecutor::Create(const CPythonOptions& options) {
  auto executor = std::make_unique<SnapshotExecutor>(options);
  CAISSON_TRY(executor->Start());
  return executor;
}

}  // namespace caisson::isolate::cpython
