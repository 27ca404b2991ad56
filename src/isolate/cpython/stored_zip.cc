// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/stored_zip.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "errors/wasm.h"

namespace caisson::isolate::cpython {
namespace {

// APPNOTE.TXT 4.3: end of central directory, entry of the central directory, local header.
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;

std::unexpected<Status> Malformed(std::string_view what) {
  return Fail(errors::kWasmArtifact,
              "The archive of Python packages cannot be read: " + std::string(what) +
                  ". Run ./dev setup to fetch it again.");
}

template <typename T>
T Number(std::string_view bytes, std::size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::string_view> Piece(std::string_view bytes, std::uint64_t at,
                                      std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, size);
}

// Where the bytes of a member begin is known to its local header alone.
std::optional<std::string_view> BytesOf(std::string_view archive, std::string_view entry) {
  const auto start = Number<std::uint32_t>(entry, 42);
  const auto local = Piece(archive, start, kLocalBytes);
  if (!local || !local->starts_with("PK\3\4")) return std::nullopt;
  const std::uint64_t skip = std::uint64_t{kLocalBytes} + Number<std::uint16_t>(*local, 26) +
                             Number<std::uint16_t>(*local, 28);
  return Piece(archive, start + skip, Number<std::uint32_t>(entry, 24));
}

}  // namespace

Result<std::vector<ZipMember>> ListStoredZip(std::string_view archive) {
  if (archive.size() < kEndBytes) return Malformed("it is too short");
  const std::string_view end = archive.substr(archive.size() - kEndBytes);
  if (!end.starts_with(kEnd)) return Malformed("it does not end as an archive without a comment");
  std::uint64_t at = Number<std::uint32_t>(end, 16);
  std::vector<ZipMember> members;
  for (unsigned left = Number<std::uint16_t>(end, 10); left > 0; --left) {
    const auto entry = Piece(archive, at, kEntryBytes);
    if (!entry || !entry->starts_with("PK\1\2")) return Malformed("its list is cut off");
    if (Number<std::uint16_t>(*entry, 10) != 0) return Malformed("a member is compressed");
    const auto name_bytes = Number<std::uint16_t>(*entry, 28);
    const auto name = Piece(archive, at + kEntryBytes, name_bytes);
    const auto bytes = BytesOf(archive, *entry);
    if (!name || !bytes) return Malformed("a member lies outside it");
    members.push_back({*name, *bytes});
    at += kEntryBytes + name_bytes + Number<std::uint16_t>(*entry, 30) +
          Number<std::uint16_t>(*entry, 32);
  }
  return members;
}

}  // namespace caisson::isolate::cpython
