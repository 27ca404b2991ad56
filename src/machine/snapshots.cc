// SPDX-License-Identifier: Apache-2.0
#include "machine/snapshots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "errors/machine.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/spec.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDraft = ".making-";  // no id begins so
constexpr const char* kFile = "/snapshot.json";

std::unexpected<Status> StateError(const std::string& what, const std::string& why) {
  return Fail(errors::kMachineState, what + ": " + why);
}

Result<void> WriteDescription(const std::string& directory, uid_t owner, const Snapshot& snapshot) {
  CAISSON_ASSIGN(
      const std::string text,
      json::Write(json::Object{
          {"owner", owner}, {"image", snapshot.image}, {"disk_bytes", snapshot.disk_bytes}}));
  const std::string path = directory + kFile;
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return StateError("write " + path, os::ErrnoText(errno));
  }
  return {};
}

Result<void> Sync(const std::string& path, int flags) {
  const os::UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) {
    return StateError("sync " + path, os::ErrnoText(errno));
  }
  return {};
}

// What is in it survives a power failure.
Result<void> SyncAll(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) CAISSON_TRY(Sync(it->path(), O_RDONLY));
  }
  if (error) return StateError("list " + directory, error.message());
  return Sync(directory, O_RDONLY | O_DIRECTORY);
}

std::uint64_t StoredBytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(directory, error)) {
    struct stat info{};
    if (::stat(file.path().c_str(), &info) == 0) {
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
  }
  return bytes;
}

}  // namespace

class Snapshots::Entry {
 public:
  explicit Entry(uid_t owner) : owner_(owner) {}
  uid_t owner() const { return owner_; }

  std::shared_mutex mutex;   // held alone while it is made or removed, shared while it is used
  std::optional<Kept> kept;  // by the mutex of Snapshots; not while it is made, and when it is gone

 private:
  const uid_t owner_;
};

Result<std::unique_ptr<Snapshots>> Snapshots::Open(const std::string& directory,
                                                   const images::Store& store) {
  std::unique_ptr<Snapshots> snapshots(new Snapshots(directory, store));
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    names.push_back(entry.path().filename());
  }
  if (error) return StateError("list " + directory, error.message());
  for (const std::string& name : names) {
    if (!IsValidId(name)) {
      fs::remove_all(fs::path(directory) / name, error);
      continue;
    }
    auto kept = snapshots->Read(name);
    if (!kept) continue;  // one that cannot be read is left to the operator
    auto entry = std::make_shared<Entry>(kept->owner);
    entry->kept = *std::move(kept);
    snapshots->entries_.emplace(name, std::move(entry));
  }
  return snapshots;
}

Result<Snapshots::Kept> Snapshots::Read(const std::string& id) const {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory_ + "/" + id + kFile));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  const json::Value* owner = value.Find("owner");
  const json::Value* image = value.Find("image");
  const json::Value* bytes = value.Find("disk_bytes");
  if (owner == nullptr || !owner->is_int() || image == nullptr || !image->is_string() ||
      bytes == nullptr || !bytes->is_int()) {
    return Fail(errors::kMachineState, "snapshot " + id + " has no valid description");
  }
  Kept kept{.owner = static_cast<uid_t>(owner->as_int()),
            .snapshot = {.id = id,
                         .image = image->as_string(),
                         .disk_bytes = static_cast<std::uint64_t>(bytes->as_int()),
                         .stored_bytes = StoredBytes(DirectoryOf(id))},
            .image = {}};
  if (auto held = store_->Hold(kept.snapshot.image)) kept.image = *std::move(held);
  return kept;
}

// The files of it, complete, and its name last.
Result<Snapshots::Kept> Snapshots::Make(uid_t owner, const Snapshot& snapshot,
                                        const Fill& fill) const {
  const std::string& id = snapshot.id;
  auto held = store_->Hold(snapshot.image);
  if (!held) return Fail(errors::kMachineNoImage, held.error().message);
  const std::string draft = directory_ + "/" + kDraft + id;
  std::error_code error;
  const auto make = [&]() -> Result<void> {
    if (::mkdir(draft.c_str(), 0700) != 0) {
      return StateError("mkdir " + draft, os::ErrnoText(errno));
    }
    CAISSON_TRY(fill(draft));
    CAISSON_TRY(WriteDescription(draft, owner, snapshot));
    CAISSON_TRY(SyncAll(draft));
    fs::rename(draft, DirectoryOf(id), error);
    if (error) return StateError("make " + DirectoryOf(id), error.message());
    return Sync(directory_, O_RDONLY | O_DIRECTORY);
  };
  auto made = make();
  Result<Kept> kept = made ? Read(id) : Fail(std::move(made).error());
  if (kept) return kept;
  fs::rename(DirectoryOf(id), draft, error);  // where it has its name already
  fs::remove_all(draft, error);
  return kept;
}

Result<Snapshot> Snapshots::Take(uid_t owner, const Snapshot& snapshot, const Fill& fill) {
  const std::string& id = snapshot.id;
  if (!IsValidId(id)) return Fail(errors::kMachineInvalid, "a snapshot's id is as a machine's");
  auto entry = std::make_shared<Entry>(owner);
  const std::lock_guard making(entry->mutex);
  {
    const std::lock_guard lock(mutex_);
    std::error_code error;
    // One that could not be read has its name, too.
    if (fs::exists(DirectoryOf(id), error) || !entries_.emplace(id, entry).second) {
      return Fail(errors::kMachineExists, "there is a snapshot " + id + " already");
    }
  }
  auto made = Make(owner, snapshot, fill);
  const std::lock_guard lock(mutex_);
  if (!made) {
    entries_.erase(id);
    return Fail(std::move(made).error());
  }
  Snapshot taken = made->snapshot;
  entry->kept = *std::move(made);
  return taken;
}

std::shared_ptr<Snapshots::Entry> Snapshots::Find(uid_t owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second->owner() == owner ? found->second : nullptr;
}

Result<Snapshots::Held> Snapshots::Hold(uid_t owner, const std::string& id) {
  const auto unknown = [&id] {
    return Fail(errors::kMachineUnknown, "there is no snapshot " + id);
  };
  std::shared_ptr<Entry> entry = Find(owner, id);
  const auto is_there = [&] {
    const std::lock_guard lock(mutex_);
    return entry->kept.has_value();
  };
  if (entry == nullptr || !is_there()) return unknown();
  std::shared_lock lock(entry->mutex);
  if (!is_there()) return unknown();  // removed while it was waited for
  return Held{.entry = entry,
              .lock = std::move(lock),
              .snapshot = entry->kept->snapshot,
              .directory = DirectoryOf(id)};
}

std::vector<Snapshot> Snapshots::List(uid_t owner) const {
  const std::lock_guard lock(mutex_);
  std::vector<Snapshot> list;
  for (const auto& [id, entry] : entries_) {
    if (entry->owner() == owner && entry->kept) list.push_back(entry->kept->snapshot);
  }
  return list;
}

Result<void> Snapshots::Remove(uid_t owner, const std::string& id) {
  const std::shared_ptr<Entry> entry = Find(owner, id);
  if (entry == nullptr) return {};
  const std::lock_guard removing(entry->mutex);
  {
    const std::lock_guard lock(mutex_);
    if (!entry->kept) return {};  // it was not made after all, or somebody else has removed it
  }
  std::error_code error;
  // Half removed it is no snapshot any more.
  const std::string draft = directory_ + "/" + kDraft + id;
  fs::rename(DirectoryOf(id), draft, error);
  if (!error) fs::remove_all(draft, error);
  if (error) return StateError("remove snapshot " + id, error.message());
  const std::lock_guard lock(mutex_);
  entry->kept.reset();
  entries_.erase(id);
  return {};
}

}  // namespace caisson::machine
