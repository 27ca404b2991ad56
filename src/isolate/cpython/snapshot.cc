// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/digest/sha256.h"
#include "json/reader.h"
#include "json/writer.h"
#include "wasm/owned_file.h"

namespace caisson::isolate::cpython {
namespace {

// An entry: magic, sha256 (hex) of all that follows, the head (JSON). The memory itself is a sparse
// file under its own digest.
constexpr std::string_view kMagic = "caisson-snapshot-2\n";
constexpr std::size_t kHexDigest = 64;
constexpr std::string_view kSuffix = ".snapshot";
constexpr std::string_view kImageSuffix = ".image";

std::uint64_t BytesOnDisk(const std::string& path) {
  struct stat info{};
  constexpr std::uint64_t kBlock = 512;
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * kBlock : 0;
}

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<std::string> EncodeEntry(const Snapshot& snapshot, std::string_view image_digest) {
  json::Object head;
  head.Set("set", snapshot.set);
  head.Set("image", std::string(image_digest));
  head.Set("stack_pointer", std::int64_t{snapshot.stack_pointer});
  head.Set("entry_address", std::int64_t{snapshot.entry_address});
  head.Set("entry_size", std::int64_t{snapshot.entry_size});
  head.Set("about", snapshot.about);
  head.Set("made", snapshot.made);
  CAISSON_ASSIGN(const std::string text, json::Write(json::Value(std::move(head))));
  return fmt::format("{}{}{}", kMagic, digest::Sha256Hex(text), text);
}

bool IsDigest(std::string_view text) {
  return text.size() == kHexDigest &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// All of a snapshot but its image.
struct Entry {
  Snapshot snapshot;
  std::string image_digest;
};

std::optional<std::int64_t> Integer(const json::Value& head, std::string_view key) {
  const json::Value* value = head.Find(key);
  if (value == nullptr || !value->is_int()) return std::nullopt;
  return value->as_int();
}

std::optional<Entry> DecodeHead(std::string_view text) {
  const auto head = json::Read(text);
  if (!head || !head->is_object()) return std::nullopt;
  const json::Value* set = head->Find("set");
  const json::Value* about = head->Find("about");
  const json::Value* image = head->Find("image");
  const auto stack = Integer(*head, "stack_pointer");
  const auto entry = Integer(*head, "entry_address");
  const auto size = Integer(*head, "entry_size");
  const auto made = Integer(*head, "made");
  if (set == nullptr || !set->is_string() || about == nullptr || !about->is_string() ||
      image == nullptr || !image->is_string() || !IsDigest(image->as_string()) || !stack ||
      !entry || !size || !made) {
    return std::nullopt;
  }
  Entry read;
  read.image_digest = image->as_string();
  read.snapshot.set = set->as_string();
  read.snapshot.about = about->as_string();
  read.snapshot.stack_pointer = static_cast<std::int32_t>(*stack);
  read.snapshot.entry_address = static_cast<std::uint32_t>(*entry);
  read.snapshot.entry_size = static_cast<std::uint32_t>(*size);
  read.snapshot.made = *made;
  return read;
}

std::optional<Entry> ReadEntry(const std::string& path) {
  const std::optional<std::string> text = wasm::ReadOwned(path, kMagic);
  if (!text || text->size() < kMagic.size() + kHexDigest) return std::nullopt;
  const std::string_view body = std::string_view(*text).substr(kMagic.size());
  const std::string_view head = body.substr(kHexDigest);
  if (digest::Sha256Hex(head) != body.substr(0, kHexDigest)) return std::nullopt;
  return DecodeHead(head);
}

bool IsYoung(const Snapshot& snapshot, std::chrono::hours max_age) {
  return SecondsNow() - snapshot.made < std::chrono::seconds(max_age).count();
}

}  // namespace

std::string SnapshotStore::PathFor(std::string_view key) const {
  return fmt::format("{}/{}{}", directory_, key, kSuffix);
}

std::string SnapshotStore::ImagePath(std::string_view digest) const {
  return fmt::format("{}/{}{}", directory_, digest, kImageSuffix);
}

bool SnapshotStore::Has(std::string_view key, std::chrono::hours max_age,
                        wasm::CheckedFiles& checked) const {
  const auto entry = ReadEntry(PathFor(key));
  if (!entry || !IsYoung(entry->snapshot, max_age)) return false;
  const os::UniqueFd image = wasm::OpenOwned(ImagePath(entry->image_digest));
  return image.valid() && checked.Holds(image.get(), entry->image_digest).value_or(false);
}

Result<std::optional<Snapshot>> SnapshotStore::Load(std::string_view key,
                                                    std::chrono::hours max_age,
                                                    wasm::CheckedFiles& checked) const {
  auto entry = ReadEntry(PathFor(key));
  if (!entry || !IsYoung(entry->snapshot, max_age)) return std::optional<Snapshot>();
  os::UniqueFd image = wasm::OpenOwned(ImagePath(entry->image_digest));
  if (!image.valid()) return std::optional<Snapshot>();
  CAISSON_ASSIGN(const bool holds, checked.Holds(image.get(), entry->image_digest));
  if (!holds) return std::optional<Snapshot>();
  CAISSON_ASSIGN(entry->snapshot.image, wasm::MemoryImage::OfFile(std::move(image)));
  utimensat(AT_FDCWD, PathFor(key).c_str(), nullptr, 0);  // used now, for Evict
  return std::optional(std::move(entry->snapshot));
}

Result<void> SnapshotStore::Save(std::string_view key, const Snapshot& snapshot) const {
  const std::string digest = digest::Sha256Hex(snapshot.image->bytes());
  CAISSON_TRY(wasm::WriteOwnedSparse(directory_, ImagePath(digest), snapshot.image->bytes()));
  CAISSON_ASSIGN(const std::string entry, EncodeEntry(snapshot, digest));
  const std::string path = PathFor(key);
  CAISSON_TRY(wasm::WriteOwned(directory_, path, entry));
  Evict(path);
  return {};
}

void SnapshotStore::Evict(const std::string& kept) const {
  struct Kept {
    std::filesystem::file_time_type used;
    std::string path;
    std::string image;
  };
  std::vector<Kept> entries;
  std::map<std::string, std::uint64_t> images;  // bytes on disk
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    const std::string path = file.path().string();
    if (path.ends_with(kImageSuffix)) images.emplace(path, BytesOnDisk(path));
    if (!path.ends_with(kSuffix)) continue;
    const auto entry = ReadEntry(path);
    entries.push_back({file.last_write_time(error), path,
                       entry ? ImagePath(entry->image_digest) : std::string()});
  }
  // Those that were used last first; what comes when all room is taken goes, and so does what
  // belongs to nothing.
  std::ranges::sort(entries, [&](const Kept& a, const Kept& b) {
    return std::pair(a.path == kept, a.used) > std::pair(b.path == kept, b.used);
  });
  std::uint64_t total = 0;
  for (const Kept& entry : entries) {
    const auto image = images.find(entry.image);
    const std::uint64_t bytes = image == images.end() ? 0 : image->second;
    total += bytes;
    if (image != images.end() && (total <= max_bytes_ || entry.path == kept)) {
      images.erase(image);  // stays
    } else {
      total -= bytes;
      std::filesystem::remove(entry.path, error);
    }
  }
  for (const auto& [path, bytes] : images) std::filesystem::remove(path, error);
}

}  // namespace caisson::isolate::cpython
