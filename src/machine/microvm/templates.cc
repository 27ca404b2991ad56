// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/templates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/digest/sha256.h"
#include "errors/machine.h"
#include "images/files.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/microvm/command_line.h"
#include "machine/microvm/process.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* kDescription = "/template.json";
constexpr std::array<const char*, 2> kFiles = {"memory", "state"};
constexpr milliseconds kSavePatience{180'000};
constexpr milliseconds kKillPatience{20'000};
// What one takes at least until it is known: a kernel, the agent and what they have read.
constexpr std::uint64_t kExpectedBytes = 160ull << 20;
// A template has no disk; QEMU wants to see something where one will be.
constexpr std::uint64_t kPlaceholderBytes = 1 << 20;
// Of the service's connections to the helper, others have something to do as well.
constexpr std::size_t kMaxWaiters = 16;
constexpr std::size_t kMaxQueued = 32;
constexpr std::chrono::minutes kCleanEvery{30};

Result<std::string> Digests(const std::string& directory) {
  std::string text;
  for (const char* file : kFiles) {
    CAISSON_ASSIGN(const std::string digest, images::DigestOfFile(directory + "/" + file));
    text += digest;
  }
  return digest::Sha256Hex(text);
}

std::uint64_t BytesOf(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const char* file : kFiles) {
    struct stat info{};
    if (::stat((directory + "/" + file).c_str(), &info) == 0) {
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
  }
  return bytes;
}

std::string TextIn(const json::Value& value, const char* key) {
  const json::Value* found = value.Find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

// Under another name first: half removed it is no template any more.
void RemoveTemplate(const std::string& directory) {
  std::error_code error;
  const std::string draft = directory + ".removed";
  fs::rename(directory, draft, error);
  fs::remove_all(draft, error);
}

}  // namespace

// --- what is held ---

Templates::Held::Held(Templates& templates, std::string key)
    : templates_(&templates), key_(std::move(key)), directory_(templates.DirectoryOf(key_)) {}

Templates::Held::Held(Held&& other) noexcept
    : templates_(std::exchange(other.templates_, nullptr)),
      key_(std::move(other.key_)),
      directory_(std::move(other.directory_)) {}

Templates::Held::~Held() {
  if (templates_ != nullptr) templates_->Release(key_);
}

Templates::Held Templates::Hold(const std::string& key, Entry& entry) {
  ++entry.holds;
  entry.used = std::time(nullptr);
  // For the next helper.
  (void)::utimensat(AT_FDCWD, (DirectoryOf(key) + kDescription).c_str(), nullptr, 0);
  return {*this, key};
}

void Templates::Release(const std::string& key) {
  const std::lock_guard lock(mutex_);
  --entries_[key].holds;
}

// --- whoever wants one ---

std::string Templates::KeyOf(const Shape& shape) const {
  return digest::Sha256Hex(fmt::format("2 {} {} {} {} {} {} {}", yard_.boot_id(), shape.image,
                                       shape.memory_bytes, shape.processors, shape.network,
                                       KindOfComputer(yard_.accelerator()), yard_.monitor()))
      .substr(0, 40);
}

std::string Templates::DirectoryOf(const std::string& key) const {
  return yard_.TemplatesDirectory() + "/" + key;
}

void Templates::Ask(const std::string& key, Entry& entry, const Shape& shape) {
  if (entry.state == State::kWaits || entry.state == State::kIsMade) return;
  entry.shape = shape;
  entry.state = State::kWaits;
  queue_.push_back(key);
  changed_.notify_all();
}

std::optional<Templates::Held> Templates::Find(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  const std::string key = KeyOf(shape);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.state != State::kReady) return std::nullopt;
  return Hold(key, found->second);
}

Result<Templates::Held> Templates::Get(const Shape& shape) {
  const auto preparing = [&shape] {
    return Fail(
        errors::kMachinePreparing,
        fmt::format("virtual machines of {} MiB and {} processors from this image are being "
                    "prepared; ask again in a few seconds",
                    shape.memory_bytes >> 20, shape.processors));
  };
  std::unique_lock lock(mutex_);
  const std::string key = KeyOf(shape);
  if (!entries_.contains(key) && queue_.size() >= kMaxQueued) return preparing();
  Entry& entry = entries_[key];  // stays where it is
  if (entry.state == State::kReady) return Hold(key, entry);
  Ask(key, entry, shape);
  if (waiters_ >= kMaxWaiters) return preparing();
  const std::uint64_t attempt = entry.attempts;
  ++waiters_;
  const bool over = changed_.wait_for(lock, yard_.options().template_patience,
                                      [&] { return entry.attempts != attempt; });
  --waiters_;
  if (!over) return preparing();
  if (entry.state == State::kReady) return Hold(key, entry);
  return Fail(entry.failure);
}

// --- whoever makes them ---

Templates::~Templates() { worker_.request_stop(); }

void Templates::Begin() {
  Clean();
  Prepare();
  worker_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
}

void Templates::Clean() {
  yard_.CleanImages();
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(yard_.TemplatesDirectory(), error)) {
    names.push_back(entry.path().filename());
  }
  for (const std::string& name : names) Adopt(name);
}

// Takes note of one that an earlier helper made, or removes it.
void Templates::Adopt(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known = entries_.find(key);
  const bool is_known = known != entries_.end() && known->second.state != State::kNone;
  const std::string directory = DirectoryOf(key);
  const auto text = os::ReadSmallFile(directory + kDescription);
  const auto value = text ? json::Read(*text) : std::unexpected(Status{});
  const std::string image = value ? TextIn(*value, "image") : "";
  // No key has a dot: what has one was being removed.
  const bool is_ours =
      value && TextIn(*value, "boot") == yard_.boot_id() && key.find('.') == std::string::npos;
  if (is_ours && yard_.store().Find(image)) {
    if (is_known) return;
    struct stat info{};
    (void)::stat((directory + kDescription).c_str(), &info);
    entries_[key] = {.state = State::kFound,
                     .shape = {},
                     .bytes = BytesOf(directory),
                     .used = info.st_mtim.tv_sec};
    return;
  }
  if (is_known && (known->second.holds > 0 || known->second.state != State::kReady)) return;
  if (is_known) known->second.state = State::kNone;
  std::error_code error;
  fs::remove_all(directory, error);
}

void Templates::Prepare() {
  for (const PreparedShape& wanted : yard_.options().prepared) {
    const auto image = yard_.store().Find(wanted.image);
    if (!image) continue;  // not made yet; whoever asks for it is told
    const Shape shape{.image = image->id,
                      .memory_bytes = wanted.memory_bytes,
                      .processors = ProcessorsOf(wanted.cpus),
                      .network = yard_.networks().enforces()};
    const std::lock_guard lock(mutex_);
    const std::string key = KeyOf(shape);
    Ask(key, entries_[key], shape);
  }
}

void Templates::Work(const std::stop_token& stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    const bool wanted =
        changed_.wait_for(lock, stop, kCleanEvery, [this] { return !queue_.empty(); });
    if (stop.stop_requested()) return;
    if (!wanted) {
      lock.unlock();
      Clean();
      continue;
    }
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    Entry& entry = entries_[key];
    entry.state = State::kIsMade;
    const Shape shape = entry.shape;
    lock.unlock();
    const auto made = Make(key, shape, stop);
    const std::uint64_t bytes = BytesOf(DirectoryOf(key));
    lock.lock();
    entry.state = made ? State::kReady : State::kNone;
    entry.bytes = made ? bytes : 0;
    entry.used = std::time(nullptr);
    entry.failure = made ? Status{} : made.error();
    ++entry.attempts;
    changed_.notify_all();
    lock.unlock();
    // It may be larger than was expected.
    if (made) (void)MakeRoom(key, 0);
  }
}

Result<void> Templates::Make(const std::string& key, const Shape& shape,
                             const std::stop_token& stop) {
  const std::string directory = DirectoryOf(key);
  // One of an earlier helper is looked at once; a damaged one is made anew.
  if (Check(directory)) return {};
  RemoveTemplate(directory);
  {
    const std::lock_guard lock(mutex_);
    entries_[key].bytes = 0;
  }
  CAISSON_TRY(MakeRoom(key, kExpectedBytes));
  return Build(shape, directory, stop);
}

Result<void> Templates::Check(const std::string& directory) const {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory + kDescription));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  CAISSON_ASSIGN(const std::string has, Digests(directory));
  if (TextIn(value, "digest") == has) return {};
  return Fail(errors::kMachineDamaged, "the template " + directory + " is not what was written");
}

// Its memory has other names where machines go on from it.
bool Templates::IsInUse(const std::string& key, const Entry& entry) const {
  struct stat info{};
  return entry.holds > 0 ||
         (::stat((DirectoryOf(key) + "/memory").c_str(), &info) == 0 && info.st_nlink > 1);
}

// For `key`, which is to take so many bytes more than it does.
Result<void> Templates::MakeRoom(const std::string& key, std::uint64_t bytes) {
  const MicrovmOptions& options = yard_.options();
  for (;;) {
    std::string oldest;
    {
      const std::lock_guard lock(mutex_);
      std::size_t count = 1;
      std::uint64_t sum = bytes;
      const Entry* victim = nullptr;
      for (const auto& [name, entry] : entries_) {
        sum += entry.bytes;
        if (name == key) continue;
        count += entry.bytes > 0 ? 1 : 0;
        const bool may_go = entry.bytes > 0 && !IsInUse(name, entry) &&
                            (entry.state == State::kReady || entry.state == State::kFound);
        if (!may_go || (victim != nullptr && victim->used <= entry.used)) continue;
        victim = &entry;
        oldest = name;
      }
      if (count <= options.max_templates && sum <= options.max_template_bytes) return {};
      if (victim == nullptr) {
        return Fail(errors::kMachineFull,
                    fmt::format("{} templates of virtual machines, {} MiB, are in use by machines, "
                                "and no more may be kept; remove machines of other shapes and "
                                "images, or let machined have more (--max-vm-templates, "
                                "--max-vm-template-bytes)",
                                count - 1, sum >> 20));
      }
      Entry& gone = entries_[oldest];
      gone.state = State::kNone;
      gone.bytes = 0;
      RemoveTemplate(DirectoryOf(oldest));
    }
  }
}

Result<void> Templates::Build(const Shape& shape, const std::string& directory,
                              const std::stop_token& stop) {
  MachineSpec spec;
  spec.image = shape.image;
  spec.cpus = shape.processors;
  spec.memory_bytes = shape.memory_bytes;
  spec.disk_bytes = kMinDiskBytes;
  CAISSON_ASSIGN(const std::unique_ptr<Slot> slot, yard_.NewSlot(shape.image, spec));
  const auto build = [&]() -> Result<void> {
    CAISSON_TRY(Yard::NewFile(slot->disk(), *slot, kPlaceholderBytes));
    CAISSON_TRY(yard_.StartTemplate(*slot));
    // Whoever ends the helper does not wait for a kernel to boot.
    Groups groups = slot->record.groups;
    const std::stop_callback kill(stop, [&groups] { (void)groups.Kill(kKillPatience); });
    return Save(*slot, shape, directory);
  };
  auto built = build();
  const auto removed = yard_.Remove(*slot);
  return built ? removed : built;
}

Result<void> Templates::Save(Slot& slot, const Shape& shape, const std::string& directory) {
  const std::string draft = slot.directory + "/template";
  const auto ask = [&](Operation operation, milliseconds patience) {
    return AskVmm(slot.directory, {.operation = operation}, patience);
  };
  CAISSON_TRY(ask(Operation::kAwaitAgent, yard_.options().boot_patience + milliseconds(10'000)));
  CAISSON_TRY(ask(Operation::kStop, kSavePatience));
  for (const char* file : kFiles) {
    CAISSON_TRY(Yard::NewFile(slot.own() + "/" + file, slot, 0));
  }
  CAISSON_TRY(ask(Operation::kSave, kSavePatience));
  CAISSON_TRY(yard_.Stop(slot));
  if (::mkdir(draft.c_str(), 0755) != 0) return os::SyscallError("mkdir " + draft);
  for (const char* file : kFiles) {
    const std::string to = draft + "/" + file;
    if (::rename((slot.own() + "/" + file).c_str(), to.c_str()) != 0) {
      return os::SyscallError("move " + to);
    }
    CAISSON_TRY(Yard::TakeBack(to));
  }
  CAISSON_ASSIGN(const std::string digest, Digests(draft));
  CAISSON_ASSIGN(const std::string text,
                 json::Write(json::Object{{"boot", yard_.boot_id()},
                                          {"image", shape.image},
                                          {"memory_bytes", shape.memory_bytes},
                                          {"processors", shape.processors},
                                          {"digest", digest}}));
  CAISSON_TRY(images::WriteFile(draft + kDescription, text));
  // Another helper with the same cache may have been faster.
  if (::rename(draft.c_str(), directory.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return os::SyscallError("make " + directory);
  }
  return {};
}

}  // namespace caisson::machine::microvm
