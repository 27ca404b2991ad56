// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "errors/isolate.h"
#include "errors/wasm.h"
#include "isolate/micropython/body_cache.h"
#include "isolate/micropython/builtins.h"
#include "isolate/micropython/heap.h"
#include "isolate/micropython/layout.h"
#include "isolate/micropython/object_reader.h"
#include "isolate/micropython/object_writer.h"
#include "isolate/micropython/pins.h"
#include "isolate/micropython/report.h"
#include "isolate/micropython/snapshot.h"
#include "json/reader.h"
#include "json/writer.h"
#include "wasm/artifact.h"
#include "wasm/engine.h"
#include "wasm/module_cache.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;

// What nearly every call writes with a heap of 8 MiB: data, the heap's tables, its first blocks.
// Reset by copying, that costs less than taking the faults again (micropython_bench).
constexpr std::size_t kKeepResident = 352u << 10;
constexpr std::uint64_t kLeastHeap = 256u << 10;
constexpr std::uint64_t kSelfTestFuel = 1'000'000'000;

// The compiler's jumps have 15 bits and a sign.
constexpr std::string_view kBytecodeOverflow = "bytecode overflow";
constexpr std::string_view kBlockTooLong =
    "a loop, branch, try or with block of the body is too long: it compiles to more than the "
    "16,384 "
    "bytes of bytecode that a jump can cross (bytecode overflow); move parts of it into functions";

// At most so many instances at once; the engine has no more slots.
class Slots {
 public:
  explicit Slots(std::uint32_t count) : free_(count) {}

  class Held {
   public:
    explicit Held(Slots& slots) : slots_(slots) {
      std::unique_lock lock(slots_.mutex_);
      slots_.freed_.wait(lock, [this] { return slots_.free_ > 0; });
      --slots_.free_;
    }
    ~Held() {
      {
        std::lock_guard lock(slots_.mutex_);
        ++slots_.free_;
      }
      slots_.freed_.notify_one();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    Slots& slots_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint32_t free_;
};

EncodedOutcome Limit(Fault fault, std::string message, MemoryKind memory = MemoryKind::kNone) {
  EncodedOutcome result;
  result.outcome.fault = fault;
  result.outcome.memory = memory;
  result.outcome.message = std::move(message);
  return result;
}

EncodedOutcome HeapFull(std::uint64_t heap_bytes, std::string_view what) {
  return Limit(Fault::kMemory,
               fmt::format("{} does not fit into the guest's heap of {} bytes", what, heap_bytes),
               MemoryKind::kHeap);
}

// A year is as good as for ever, and does not overflow a clock.
std::chrono::milliseconds WallClock(const Limits& limits) {
  return std::min<std::chrono::milliseconds>(limits.wall_clock, std::chrono::hours(24 * 365));
}

// One call from its instance to its outcome.
class Run {
 public:
  Run(const Snapshot& snapshot, Instance& instance, const EncodedJob& job, Clock::time_point start)
      : snapshot_(snapshot),
        instance_(instance),
        job_(job),
        deadline_(start + WallClock(job.limits)) {}

  // Compiles the body. Nothing when all went well.
  std::optional<EncodedOutcome> Load() {
    ObjectWriter writer(instance_.memory());
    const std::optional<std::uint32_t> source = writer.WriteString(job_.source);
    if (!source) return HeapFull(snapshot_.heap_bytes(), "the source");
    writer.Commit();
    instance_.SetFuel(job_.limits.fuel);
    const CallResult result = instance_.Call(snapshot_.load_function(), {*source});
    if (result.end != CallEnd::kReturned) return Ended(result);
    const Report report = ReadReport(instance_.memory(), result.object);
    if (report.ok) return std::nullopt;
    return Failed(report);
  }

  EncodedOutcome Call(const json::Value& payload) {
    ObjectWriter writer(instance_.memory());
    std::vector<std::uint32_t> arguments;
    for (const std::string_view name : {"self", "state", "config"}) {
      const json::Value* value = payload.Find(name);
      const std::optional<std::uint32_t> object =
          writer.Write(value == nullptr ? json::Value(json::Object()) : *value);
      if (!object) return HeapFull(snapshot_.heap_bytes(), "the input");
      arguments.push_back(*object);
    }
    writer.Commit();
    instance_.SetFuel(job_.limits.fuel);
    const CallResult result = instance_.Call(snapshot_.call_function(), arguments);
    if (result.end != CallEnd::kReturned) return Ended(result);
    const GuestMemory memory = instance_.memory();
    const Report report = ReadReport(memory, result.object);
    return report.ok ? Value(memory, report.value) : Failed(report);
  }

 private:
  EncodedOutcome Value(const GuestMemory& memory, std::uint32_t object) {
    std::expected<std::string, ReadFault> text =
        ReadJson(memory, object, {job_.limits.output_bytes, deadline_});
    if (!text) return Limit(text.error().fault, std::move(text.error().message));
    EncodedOutcome result;
    result.outcome.usage.output_bytes = text->size();
    result.value_text = *std::move(text);
    return result;
  }

  // The guest did not return.
  EncodedOutcome Ended(const CallResult& result) {
    switch (result.end) {
      case CallEnd::kFuel:
        if (HeapIsFull()) return HeapUsedUp();
        return Limit(Fault::kFuel,
                     fmt::format("the code used up its fuel of {}", job_.limits.fuel));
      case CallEnd::kDeadline:
        return Limit(Fault::kWallClock, fmt::format("the code ran longer than its limit of {} ms",
                                                    job_.limits.wall_clock.count()));
      case CallEnd::kStack: {
        // The interpreter checks its own stack, but some of its functions recurse without a look at
        // it and meet the engine's end of the stack.
        EncodedOutcome deep = Limit(Fault::kRaised, "maximum recursion depth exceeded");
        deep.outcome.error_type = "RuntimeError";
        return deep;
      }
      default:
        return Limit(Fault::kArtifact,
                     fmt::format("the interpreter itself failed: {}", result.detail));
    }
  }

  // A heap that is nearly full makes every allocation collect, which spends the fuel long before an
  // allocation fails.
  bool HeapIsFull() {
    const HeapUse use = CountHeap(instance_.memory());
    return use.total != 0 && use.used >= use.total - use.total / 16;
  }

  EncodedOutcome HeapUsedUp() {
    return Limit(
        Fault::kMemory,
        fmt::format("the code used up its heap of {} bytes: it is nearly full, and collecting "
                    "garbage for each allocation used up the fuel of {}",
                    snapshot_.heap_bytes(), job_.limits.fuel),
        MemoryKind::kHeap);
  }

  EncodedOutcome Failed(const Report& report) {
    EncodedOutcome result;
    Outcome& outcome = result.outcome;
    outcome.fault = report.fault;
    outcome.error_type = report.error_type;
    outcome.message = report.message;
    outcome.traceback = report.traceback;
    if (report.fault == Fault::kSyntax && report.message == kBytecodeOverflow) {
      outcome.message = kBlockTooLong;
    }
    const std::uint32_t failed = report.claims_no_memory ? instance_.failed_allocation() : 0;
    if (failed == 0) return result;
    outcome.fault = Fault::kMemory;
    outcome.memory = MemoryKind::kHeap;
    outcome.message = fmt::format(
        "the code used up its heap of {} bytes: there was no room for {} more (memory allocation "
        "failed)",
        snapshot_.heap_bytes(), failed);
    return result;
  }

  const Snapshot& snapshot_;
  Instance& instance_;
  const EncodedJob& job_;
  const Clock::time_point deadline_;
};

class SnapshotExecutor final : public MicroPythonExecutor {
 public:
  explicit SnapshotExecutor(const MicroPythonOptions& options)
      : options_(options),
        slots_(options.max_concurrent_calls),
        bodies_(options.body_cache_bytes) {}

  Result<void> Start();
  Result<EncodedOutcome> Execute(const EncodedJob& job) override;
  json::Value Describe() const override;

 private:
  Result<void> SelfTest();
  Result<void> CheckCollector(const Snapshot& snapshot);
  Result<void> CheckBody(const Snapshot& snapshot);
  Result<void> CheckMemoryErrors(const Snapshot& snapshot);
  const Snapshot* SnapshotFor(std::uint64_t heap_bytes) const;
  Result<EncodedOutcome> RunJob(const Snapshot& snapshot, const EncodedJob& job,
                                const json::Value& payload, std::uint64_t memory_limit,
                                Clock::time_point start);

  MicroPythonOptions options_;
  std::unique_ptr<wasm::Engine> engine_;
  std::vector<std::unique_ptr<Snapshot>> snapshots_;
  Slots slots_;
  BodyCache bodies_;
};

const Snapshot* SnapshotExecutor::SnapshotFor(std::uint64_t heap_bytes) const {
  for (const std::unique_ptr<Snapshot>& snapshot : snapshots_) {
    if (snapshot->heap_bytes() == heap_bytes) return snapshot.get();
  }
  return nullptr;
}

Result<void> SnapshotExecutor::Start() {
  const std::string path =
      options_.artifact.empty() ? DefaultMicroPythonArtifact() : options_.artifact;
  static_assert(layout::kArtifactSha256 == pins::kDerivedSha256,
                "the layout table belongs to another artifact than the pin");
  CAISSON_ASSIGN(const std::string artifact, wasm::LoadArtifact(path, pins::kDerivedSha256));
  const std::string directory =
      options_.cache_dir.empty() ? wasm::DefaultCacheDir() : options_.cache_dir;
  CAISSON_ASSIGN(const wasm::ModuleCache cache, wasm::ModuleCache::Open(directory));
  // Data, stack and the interpreter's own parts come to less than that beside the heap.
  constexpr std::uint64_t kBesideHeap = 2u << 20;
  for (const std::uint64_t heap : options_.heap_sizes) {
    if (heap >= kLeastHeap && heap + kBesideHeap <= options_.max_memory_bytes) continue;
    return Fail(
        errors::kWasmLimitTooLow,
        fmt::format("A heap of {} bytes is not possible: it must have at least {}, and with "
                    "{} more fit into the memory limit of {} bytes.",
                    heap, kLeastHeap, kBesideHeap, options_.max_memory_bytes));
  }
  wasm::EngineOptions engine;
  engine.slots = options_.max_concurrent_calls + 1;
  engine.max_memory_bytes = options_.max_memory_bytes;
  engine.keep_resident_bytes = kKeepResident;
  CAISSON_ASSIGN(engine_, wasm::Engine::Create(engine));
  for (const std::uint64_t heap : options_.heap_sizes) {
    if (SnapshotFor(heap) != nullptr) continue;
    CAISSON_ASSIGN(
        std::unique_ptr<Snapshot> snapshot,
        Snapshot::Make(*engine_, cache, artifact, {heap, !options_.unrestricted_for_probes}));
    snapshots_.push_back(std::move(snapshot));
  }
  return SelfTest();
}

Result<EncodedOutcome> SnapshotExecutor::Execute(const EncodedJob& job) {
  const Snapshot* snapshot = SnapshotFor(job.limits.heap_bytes);
  if (snapshot == nullptr) {
    std::string prepared;
    for (const auto& item : snapshots_) prepared += fmt::format(" {}", item->heap_bytes());
    return Fail(errors::kIsolateHeapNotPrepared,
                fmt::format("No snapshot with a heap of {} bytes was prepared; there are:{}.",
                            job.limits.heap_bytes, prepared));
  }
  const std::uint64_t memory_limit = std::min(job.limits.memory_bytes, options_.max_memory_bytes);
  if (memory_limit < snapshot->memory_bytes()) {
    return Limit(Fault::kMemory,
                 fmt::format("the memory limit of {} bytes is below the {} bytes that the "
                             "interpreter needs with a heap of {} bytes",
                             memory_limit, snapshot->memory_bytes(), snapshot->heap_bytes()),
                 MemoryKind::kLinear);
  }
  json::ReadOptions read;
  read.max_bytes = job.payload.size();
  read.max_depth = json::kMaxWriteDepth + 2;
  CAISSON_ASSIGN(const json::Value payload, json::Read(job.payload, read));
  const Slots::Held slot(slots_);
  const Clock::time_point start = Clock::now();  // waiting for a slot is not the guest's time
  Result<EncodedOutcome> result = RunJob(*snapshot, job, payload, memory_limit, start);
  if (result) result->outcome.usage.wall = Clock::now() - start;
  return result;
}

Result<EncodedOutcome> SnapshotExecutor::RunJob(const Snapshot& snapshot, const EncodedJob& job,
                                                const json::Value& payload,
                                                std::uint64_t memory_limit,
                                                Clock::time_point start) {
  wasm::WasiContext context;
  context.output_limit = job.limits.stdout_bytes;
  CAISSON_ASSIGN(const std::unique_ptr<Instance> instance,
                 Instance::Make(*engine_, snapshot, memory_limit, context));
  const wasm::Engine::Ticking ticking(*engine_);
  instance->SetDeadline(wasm::Engine::EpochsFor(WallClock(job.limits)));
  Run run(snapshot, *instance, job, start);
  std::optional<EncodedOutcome> result;
  if (const auto body = bodies_.Find(snapshot.heap_bytes(), job.source)) {
    instance->Apply(*body);
  } else {
    result = run.Load();
    if (!result) {
      bodies_.Put(snapshot.heap_bytes(), job.source,
                  std::make_shared<const PageDelta>(instance->Difference()));
    }
  }
  if (!result) result = run.Call(payload);
  Outcome& outcome = result->outcome;
  outcome.stdout_text = std::move(context.output);
  outcome.stdout_dropped = context.output_dropped;
  outcome.usage.fuel = (job.limits.fuel == 0 ? UINT64_MAX : job.limits.fuel) - instance->fuel();
  outcome.usage.memory_bytes = instance->memory().size();
  return *std::move(result);
}

std::unexpected<Status> SelfTestFailure(const Snapshot& snapshot, std::string_view what) {
  return Fail(
      errors::kIsolateSelfTest,
      fmt::format("The MicroPython runtime with a heap of {} bytes failed its self-test ({}) "
                  "and is not used; remove the module cache and run ./dev setup.",
                  snapshot.heap_bytes(), what));
}

// Frames of running functions must survive the collector.
Result<void> SnapshotExecutor::CheckCollector(const Snapshot& snapshot) {
  constexpr std::int32_t kDepth = 30;
  wasm::WasiContext context;
  CAISSON_ASSIGN(const std::unique_ptr<Instance> instance,
                 Instance::Make(*engine_, snapshot, options_.max_memory_bytes, context));
  instance->SetFuel(kSelfTestFuel);
  const CallResult result = instance->Call(snapshot.check_function(), {kDepth << 1 | 1});
  if (result.end != CallEnd::kReturned) {
    return SelfTestFailure(snapshot, "its collector: " + result.detail);
  }
  const Report report = ReadReport(instance->memory(), result.object);
  if (!report.ok || SmallInt(report.value) != kDepth + 1) {
    return SelfTestFailure(snapshot, "its collector frees what is in use: " + report.message);
  }
  return {};
}

// A known body through both bridges, and through the cache of bodies.
Result<void> SnapshotExecutor::CheckBody(const Snapshot& snapshot) {
  EncodedJob job;
  job.source =
      "def run(self, state, config):\n"
      "    class Own(list):\n"
      "        pass\n"
      "    words = ['w%d' % i for i in range(100)]\n"
      "    return {'total': sum([len(w) for w in words]), 'name': self.name,\n"
      "            'half': state['n'] / 2, 'big': state['big'] * 3,\n"
      "            'keep': [None, True, config['t']], 'last': words[-1],\n"
      "            'raw': b'xy', 'pair': (1, {}, ()), 'own': Own([False, -1 << 40])}\n";
  job.payload =
      R"({"self":{"name":"caf\u00e9 \ud83d\ude00"},"state":{"n":5,"big":100000000000000000000},)"
      R"("config":{"t":{"deep":[1.5,-7,[]]}}})";
  job.limits.heap_bytes = snapshot.heap_bytes();
  job.limits.fuel = kSelfTestFuel;
  job.limits.memory_bytes = options_.max_memory_bytes;
  CAISSON_ASSIGN(
      const json::Value expected,
      json::Read(R"({"total":290,"name":"caf\u00e9 \ud83d\ude00","half":2.5,)"
                 R"("big":300000000000000000000,"keep":[null,true,{"deep":[1.5,-7,[]]}],)"
                 R"("last":"w99","raw":"xy","pair":[1,{},[]],"own":[false,-1099511627776]})"));
  for (int round = 0; round < 2; ++round) {
    CAISSON_ASSIGN(EncodedOutcome encoded, Execute(job));
    const Outcome outcome = Decode(std::move(encoded));
    if (outcome.ok() && outcome.value == expected) continue;
    return SelfTestFailure(snapshot,
                           fmt::format("a known body: {} {}", outcome.error_type, outcome.message));
  }
  return {};
}

// An allocation that failed must be told from an error that says so.
Result<void> SnapshotExecutor::CheckMemoryErrors(const Snapshot& snapshot) {
  const auto kind_of = [&](std::string_view statement) -> Result<Fault> {
    EncodedJob job;
    job.source = fmt::format("def run(self, state, config):\n    {}\n", statement);
    job.payload = "{}";
    job.limits.heap_bytes = snapshot.heap_bytes();
    job.limits.fuel = kSelfTestFuel;
    job.limits.memory_bytes = options_.max_memory_bytes;
    CAISSON_ASSIGN(const EncodedOutcome encoded, Execute(job));
    return encoded.outcome.fault;
  };
  CAISSON_ASSIGN(const Fault failed, kind_of("return {'a': bytearray(1 << 29)}"));
  CAISSON_ASSIGN(const Fault claimed, kind_of("raise MemoryError('claimed')"));
  if (failed == Fault::kMemory && claimed == Fault::kRaised) return {};
  return SelfTestFailure(snapshot, "failed allocations are not where the layout says");
}

Result<void> SnapshotExecutor::SelfTest() {
  for (const std::unique_ptr<Snapshot>& snapshot : snapshots_) {
    CAISSON_TRY(CheckCollector(*snapshot));
    CAISSON_TRY(CheckBody(*snapshot));
    CAISSON_TRY(CheckMemoryErrors(*snapshot));
  }
  return {};
}

json::Value SnapshotExecutor::Describe() const {
  json::Array heaps;
  for (const std::unique_ptr<Snapshot>& snapshot : snapshots_) {
    heaps.push_back(json::Object{{"heap_bytes", snapshot->heap_bytes()},
                                 {"memory_bytes", snapshot->memory_bytes()}});
  }
  const Limits limits;
  return json::Object{
      {"runtime", "micropython"},
      {"artifact", json::Object{{"package", pins::kPackage},
                                {"version", pins::kVersion},
                                {"sha256", pins::kSha256},
                                {"derived_sha256", pins::kDerivedSha256},
                                {"derived_by", "binaryen wasm-opt --spill-pointers"},
                                {"binaryen_version", pins::kBinaryenVersion}}},
      {"engine", json::Object{{"name", "wasmtime"}, {"version", WASMTIME_VERSION}}},
      {"builtins", json::Object{{"version", kBuiltinsVersion},
                                {"count", static_cast<std::uint64_t>(kAllowedBuiltins.size())}}},
      {"snapshots", std::move(heaps)},
      {"default_limits",
       json::Object{{"memory_bytes", limits.memory_bytes},
                    {"heap_bytes", limits.heap_bytes},
                    {"fuel", limits.fuel},
                    {"wall_clock_ms", static_cast<std::int64_t>(limits.wall_clock.count())},
                    {"output_bytes", limits.output_bytes},
                    {"stdout_bytes", limits.stdout_bytes}}},
      {"max_memory_bytes", options_.max_memory_bytes},
      {"max_concurrent_calls", options_.max_concurrent_calls}};
}

}  // namespace

std::string DefaultMicroPythonArtifact() {
  if (const char* data = std::getenv("CAISSON_DATA_DIR"); data != nullptr && *data != '\0') {
    return std::string(data) + "/micropython/derived.wasm";
  }
  return std::string(pins::kDefaultArtifact);
}

Result<std::unique_ptr<Executor>> MicroPythonExecutor::Create(const MicroPythonOptions& options) {
  auto executor = std::make_unique<SnapshotExecutor>(options);
  CAISSON_TRY(executor->Start());
  return executor;
}

}  // namespace caisson::isolate
