// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/templates.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/digest/sha256.h"
#include "errors/machine.h"
#include "images/files.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/microvm/process.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* kDescription = "/template.json";
constexpr std::array<const char*, 3> kFiles = {"memory", "state", "disk.img"};
constexpr milliseconds kSavePatience{180'000};

Result<std::string> Digests(const std::string& directory) {
  std::string text;
  for (const char* file : kFiles) {
    CAISSON_ASSIGN(const std::string digest, images::DigestOfFile(directory + "/" + file));
    text += digest;
  }
  return digest::Sha256Hex(text);
}

}  // namespace

std::string Templates::KeyOf(const Shape& shape, std::uint64_t disk_bytes) const {
  return digest::Sha256Hex(fmt::format("1 {} {} {} {} {} {} {} {}", yard_.boot_id(), shape.image,
                                       shape.memory_bytes, shape.processors, shape.network,
                                       disk_bytes, NameOf(yard_.accelerator()), yard_.monitor()))
      .substr(0, 40);
}

void Templates::Clean() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(yard_.TemplatesDirectory(), error)) {
    const auto text = os::ReadSmallFile(entry.path().string() + kDescription);
    const auto value = text ? json::Read(*text) : std::unexpected(Status{});
    const json::Value* boot = value ? value->Find("boot") : nullptr;
    if (boot != nullptr && boot->is_string() && boot->as_string() == yard_.boot_id()) continue;
    fs::remove_all(entry.path(), error);
  }
}

Result<void> Templates::Check(const std::string& directory) const {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory + kDescription));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  const json::Value* digest = value.Find("digest");
  CAISSON_ASSIGN(const std::string has, Digests(directory));
  if (digest != nullptr && digest->is_string() && digest->as_string() == has) return {};
  return Fail(errors::kMachineDamaged, "the template " + directory + " is not what was written");
}

Result<std::string> Templates::Get(const Shape& shape, std::uint64_t disk_bytes) {
  const std::string key = KeyOf(shape, disk_bytes);
  std::string directory = yard_.TemplatesDirectory() + "/" + key;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !entries_[key].being_made; });
  if (entries_[key].checked && fs::exists(directory + kDescription)) return directory;
  entries_[key].being_made = true;
  lock.unlock();
  // One of an earlier helper is looked at once; a damaged one is made anew.
  Result<void> ready = Check(directory);
  if (!ready) {
    std::error_code error;
    fs::remove_all(directory, error);
    ready = Build(shape, disk_bytes, directory);
  }
  lock.lock();
  entries_[key].being_made = false;
  entries_[key].checked = ready.has_value();
  changed_.notify_all();
  if (!ready) return Fail(std::move(ready).error());
  return directory;
}

Result<void> Templates::Build(const Shape& shape, std::uint64_t disk_bytes,
                              const std::string& directory) {
  MachineSpec spec;
  spec.image = shape.image;
  spec.cpus = shape.processors;
  spec.memory_bytes = shape.memory_bytes;
  spec.disk_bytes = disk_bytes;
  CAISSON_ASSIGN(const std::unique_ptr<Slot> slot, yard_.NewSlot(shape.image, spec));
  const std::string draft = slot->directory + "/template";
  const auto build = [&]() -> Result<void> {
    CAISSON_TRY(yard_.MakeDisk(disk_bytes, slot->disk()));
    CAISSON_TRY(Yard::GiveTo(slot->disk(), *slot));
    CAISSON_TRY(yard_.Start(*slot, "", false, true));
    const auto ask = [&](Operation operation, milliseconds patience) {
      return AskVmm(slot->directory, {.operation = operation}, patience);
    };
    CAISSON_TRY(ask(Operation::kAwaitAgent, yard_.options().boot_patience + milliseconds(10'000)));
    CAISSON_TRY(ask(Operation::kStop, kSavePatience));
    for (const char* file : {"/memory", "/state"}) {
      CAISSON_TRY(Yard::NewFile(slot->own() + file, *slot, 0));
    }
    CAISSON_TRY(ask(Operation::kSave, kSavePatience));
    CAISSON_TRY(yard_.Stop(*slot));
    if (::mkdir(draft.c_str(), 0755) != 0) return os::SyscallError("mkdir " + draft);
    for (const char* file : kFiles) {
      const std::string to = draft + "/" + file;
      if (::rename((slot->own() + "/" + file).c_str(), to.c_str()) != 0) {
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
                                            {"disk_bytes", disk_bytes},
                                            {"digest", digest}}));
    CAISSON_TRY(images::WriteFile(draft + kDescription, text));
    // Another helper with the same cache may have been faster.
    if (::rename(draft.c_str(), directory.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
      return os::SyscallError("make " + directory);
    }
    return {};
  };
  auto built = build();
  const auto removed = yard_.Remove(*slot);
  return built ? removed : built;
}

}  // namespace caisson::machine::microvm
