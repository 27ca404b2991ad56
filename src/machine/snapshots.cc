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
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0) {
    return StateError("write " + path, os::ErrnoText(errno));
  }
  return {};
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

Result<Snapshots> Snapshots::Open(const std::string& directory, const images::Store& store) {
  Snapshots snapshots(directory, store);
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
    // One that cannot be read is left to the operator.
    if (auto kept = snapshots.Read(name)) snapshots.kept_.emplace(name, *std::move(kept));
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

Result<Snapshot> Snapshots::Take(uid_t owner, const Snapshot& snapshot, const Fill& fill) {
  const std::string& id = snapshot.id;
  if (!IsValidId(id)) return Fail(errors::kMachineInvalid, "a snapshot's id is as a machine's");
  const std::string place = directory_ + "/" + id;
  std::error_code error;
  if (fs::exists(place, error)) {
    return Fail(errors::kMachineExists, "there is a snapshot " + id + " already");
  }
  auto held = store_->Hold(snapshot.image);
  if (!held) return Fail(errors::kMachineNoImage, held.error().message);
  const std::string draft = directory_ + "/" + kDraft + id;
  const auto take = [&]() -> Result<void> {
    if (::mkdir(draft.c_str(), 0700) != 0)
      return StateError("mkdir " + draft, os::ErrnoText(errno));
    CAISSON_TRY(fill(draft));
    CAISSON_TRY(WriteDescription(draft, owner, snapshot));
    fs::rename(draft, place, error);
    if (error) return StateError("make " + place, error.message());
    return {};
  };
  if (auto taken = take(); !taken) {
    fs::remove_all(draft, error);
    return Fail(std::move(taken).error());
  }
  CAISSON_ASSIGN(Kept kept, Read(id));
  Snapshot taken = kept.snapshot;
  kept_.insert_or_assign(id, std::move(kept));
  return taken;
}

Result<Snapshot> Snapshots::Find(uid_t owner, const std::string& id) const {
  const auto found = kept_.find(id);
  if (found != kept_.end() && found->second.owner == owner) return found->second.snapshot;
  return Fail(errors::kMachineUnknown, "there is no snapshot " + id);
}

std::vector<Snapshot> Snapshots::List(uid_t owner) const {
  std::vector<Snapshot> list;
  for (const auto& [id, kept] : kept_) {
    if (kept.owner == owner) list.push_back(kept.snapshot);
  }
  return list;
}

Result<void> Snapshots::Remove(uid_t owner, const std::string& id) {
  const auto found = kept_.find(id);
  if (found == kept_.end() || found->second.owner != owner) return {};
  std::error_code error;
  // Half removed it is no snapshot any more.
  const std::string draft = directory_ + "/" + kDraft + id;
  fs::rename(directory_ + "/" + id, draft, error);
  if (!error) fs::remove_all(draft, error);
  if (error) return StateError("remove snapshot " + id, error.message());
  kept_.erase(found);
  return {};
}

}  // namespace caisson::machine
