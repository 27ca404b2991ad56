// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/snapshot.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include "json/reader.h"
#include "json/writer.h"
#include "wasm/binary.h"
#include "wasm/owned_file.h"
#include "wasm/sha256.h"

namespace caisson::isolate::cpython {
namespace {

// An entry: magic, sha256 (hex) of all that follows, size of the head (8 hex digits), the head
// (JSON), then the stretches of the memory that are not zero: address and size (u64 each), bytes.
constexpr std::string_view kMagic = "caisson-snapshot-1\n";
constexpr std::size_t kHexDigest = 64;
constexpr std::size_t kLengthDigits = 8;
constexpr std::string_view kSuffix = ".snapshot";
constexpr std::uint64_t kMostMemory = std::uint64_t{2} << 30;

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void PutU64(std::string& out, std::uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Result<std::string> HeadOf(const Snapshot& snapshot) {
  json::Object head;
  head.Set("set", snapshot.set);
  head.Set("memory_bytes", static_cast<std::int64_t>(snapshot.image->size()));
  head.Set("stack_pointer", std::int64_t{snapshot.stack_pointer});
  head.Set("entry_address", std::int64_t{snapshot.entry_address});
  head.Set("entry_size", std::int64_t{snapshot.entry_size});
  head.Set("about", snapshot.about);
  head.Set("made", snapshot.made);
  return json::Write(json::Value(std::move(head)));
}

class Mapping {
 public:
  explicit Mapping(int fd) {
    struct stat info{};
    if (fstat(fd, &info) != 0 || info.st_size == 0) return;
    size_ = static_cast<std::size_t>(info.st_size);
    at_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at_ == MAP_FAILED) size_ = 0;
  }
  ~Mapping() {
    if (size_ != 0) munmap(at_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

struct Parts {
  Snapshot snapshot;
  std::uint64_t memory_bytes = 0;
  std::string_view stretches;
};

std::optional<std::int64_t> Integer(const json::Value& head, std::string_view key) {
  const json::Value* value = head.Find(key);
  if (value == nullptr || !value->is_int()) return std::nullopt;
  return value->as_int();
}

std::optional<Parts> ReadHead(std::string_view text) {
  const auto head = json::Read(text);
  if (!head || !head->is_object()) return std::nullopt;
  const json::Value* set = head->Find("set");
  const json::Value* about = head->Find("about");
  const auto memory = Integer(*head, "memory_bytes");
  const auto stack = Integer(*head, "stack_pointer");
  const auto entry = Integer(*head, "entry_address");
  const auto size = Integer(*head, "entry_size");
  const auto made = Integer(*head, "made");
  if (set == nullptr || !set->is_string() || about == nullptr || !about->is_string() || !memory ||
      !stack || !entry || !size || !made) {
    return std::nullopt;
  }
  Parts parts;
  parts.snapshot.set = set->as_string();
  parts.snapshot.about = about->as_string();
  parts.snapshot.stack_pointer = static_cast<std::int32_t>(*stack);
  parts.snapshot.entry_address = static_cast<std::uint32_t>(*entry);
  parts.snapshot.entry_size = static_cast<std::uint32_t>(*size);
  parts.snapshot.made = *made;
  parts.memory_bytes = static_cast<std::uint64_t>(*memory);
  return parts;
}

std::optional<Parts> Split(std::string_view entry) {
  if (!entry.starts_with(kMagic)) return std::nullopt;
  entry.remove_prefix(kMagic.size());
  if (entry.size() < kHexDigest + kLengthDigits) return std::nullopt;
  const std::string_view body = entry.substr(kHexDigest);
  if (wasm::Sha256Hex(body) != entry.substr(0, kHexDigest)) return std::nullopt;
  std::size_t length = 0;
  std::from_chars(body.data(), body.data() + kLengthDigits, length, 16);
  if (length > body.size() - kLengthDigits) return std::nullopt;
  auto parts = ReadHead(body.substr(kLengthDigits, length));
  if (!parts || parts->memory_bytes > kMostMemory || parts->memory_bytes % 65536 != 0) {
    return std::nullopt;
  }
  parts->stretches = body.substr(kLengthDigits + length);
  return parts;
}

bool IsYoung(const Snapshot& snapshot, std::chrono::hours max_age) {
  return SecondsNow() - snapshot.made < std::chrono::seconds(max_age).count();
}

Result<void> PutStretches(std::string_view stretches, const wasm::MemoryImage::Put& put) {
  std::array<std::uint64_t, 2> place{};
  while (stretches.size() >= sizeof place) {
    std::memcpy(place.data(), stretches.data(), sizeof place);
    stretches.remove_prefix(sizeof place);
    const std::string_view bytes = stretches.substr(0, place[1]);
    CAISSON_TRY(put(place[0], bytes));
    stretches.remove_prefix(bytes.size());
  }
  return {};
}

}  // namespace

std::string SnapshotStore::PathFor(std::string_view key) const {
  return fmt::format("{}/{}{}", directory_, key, kSuffix);
}

bool SnapshotStore::Has(std::string_view key, std::chrono::hours max_age) const {
  const os::UniqueFd fd = wasm::OpenOwned(PathFor(key));
  if (!fd.valid()) return false;
  const Mapping file(fd.get());
  const auto parts = Split(file.bytes());
  return parts && IsYoung(parts->snapshot, max_age);
}

Result<std::optional<Snapshot>> SnapshotStore::Load(std::string_view key,
                                                    std::chrono::hours max_age) const {
  const os::UniqueFd fd = wasm::OpenOwned(PathFor(key));
  if (!fd.valid()) return std::optional<Snapshot>();
  const Mapping file(fd.get());
  auto parts = Split(file.bytes());
  if (!parts || !IsYoung(parts->snapshot, max_age)) return std::optional<Snapshot>();
  CAISSON_ASSIGN(parts->snapshot.image,
                 wasm::MemoryImage::Fill(parts->memory_bytes, [&](const auto& put) {
                   return PutStretches(parts->stretches, put);
                 }));
  futimens(fd.get(), nullptr);  // used now, for Evict
  return std::optional(std::move(parts->snapshot));
}

Result<void> SnapshotStore::Save(std::string_view key, const Snapshot& snapshot) const {
  CAISSON_ASSIGN(const std::string head, HeadOf(snapshot));
  std::string body = fmt::format("{:08x}", head.size());
  body += head;
  for (const wasm::Segment& segment : wasm::NonZeroSegments(snapshot.image->bytes())) {
    PutU64(body, segment.address);
    PutU64(body, segment.bytes.size());
    body += segment.bytes;
  }
  std::string entry(kMagic);
  entry += wasm::Sha256Hex(body);
  entry += body;
  const std::string path = PathFor(key);
  CAISSON_TRY(wasm::WriteOwned(directory_, path, entry));
  Evict(path);
  return {};
}

void SnapshotStore::Evict(const std::string& kept) const {
  struct File {
    std::filesystem::file_time_type used;
    std::string path;
    std::uint64_t bytes;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kSuffix)) continue;
    const std::uint64_t bytes = entry.file_size(error);
    if (error) continue;
    total += bytes;
    files.push_back({entry.last_write_time(error), path, bytes});
  }
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (total <= max_bytes_) return;
    if (file.path == kept) continue;
    if (std::filesystem::remove(file.path, error)) total -= file.bytes;
  }
}

}  // namespace caisson::isolate::cpython
