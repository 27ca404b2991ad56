// SPDX-License-Identifier: Apache-2.0
// …/files: upload, download, and ours: list, stat, delete. Paths are resolved inside the machine.
#include <fmt/format.h>

#include <array>

#include "agent/client.h"
#include "api/envelope.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "control/request_check.h"
#include "errors/api.h"
#include "errors/http.h"

namespace caisson::api {
namespace {

constexpr std::size_t kPiece = 256 << 10;
constexpr std::int64_t kMostEntries = 100'000;

struct Place {
  control::InUse held;
  std::string path;
  os::UniqueFd connection;
};

Result<Place> Find(Call& call) {
  CAISSON_ASSIGN(std::string path, ReadPath(call.request()));
  CAISSON_ASSIGN(control::InUse held, call.context.sandboxes.Hold(call.caller, call.id()));
  CAISSON_ASSIGN(os::UniqueFd connection, call.context.sandboxes.Connect(held.sandbox));
  return Place{
      .held = std::move(held), .path = std::move(path), .connection = std::move(connection)};
}

Result<std::optional<std::uint32_t>> ReadMode(const http::Request& request) {
  const std::string* text = request.Query("mode");
  if (text == nullptr) return std::nullopt;
  const bool is_octal = !text->empty() && text->size() <= 4 &&
                        text->find_first_not_of("01234567") == std::string::npos;
  if (!is_octal) return control::FailAt("mode", errors::kApiField, "must be octal, such as 0755");
  return static_cast<std::uint32_t>(std::stoul(*text, nullptr, 8));
}

Result<void> Put(Call& call) {
  const std::uint64_t most = call.context.options.file_bytes;
  if (call.request().body_length.value_or(0) > most) {
    return Fail(errors::kHttpBodyTooLarge, fmt::format("a file has at most {} bytes", most));
  }
  CAISSON_ASSIGN(const auto mode, ReadMode(call.request()));
  CAISSON_ASSIGN(Place place, Find(call));
  CAISSON_ASSIGN(agent::Upload upload, agent::Upload::Start(std::move(place.connection),
                                                            {.path = place.path, .mode = mode}));
  const auto piece = std::make_unique<std::array<char, kPiece>>();
  std::uint64_t bytes = 0;
  while (true) {
    CAISSON_ASSIGN(const std::size_t got, call.exchange.ReadSome(*piece));
    if (got == 0) break;
    bytes += got;
    if (bytes > most) {
      return Fail(errors::kHttpBodyTooLarge, fmt::format("a file has at most {} bytes", most));
    }
    CAISSON_TRY(upload.Write({piece->data(), got}));
  }
  CAISSON_ASSIGN(const std::uint64_t size, upload.Commit());
  return Succeed(call.exchange, json::Object{{"path", place.path}, {"bytes", size}});
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(Place place, Find(call));
  CAISSON_ASSIGN(agent::Download download,
                 agent::Download::Start(std::move(place.connection), place.path));
  CAISSON_TRY(call.exchange.Begin(
      200, {{"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"}},
      download.info().size));
  while (true) {
    CAISSON_ASSIGN(const std::string_view piece, download.Next());
    if (piece.empty()) return call.exchange.Finish();
    CAISSON_TRY(call.exchange.Write(piece));
  }
}

std::string_view NameOf(agent::FileType type) {
  using enum agent::FileType;
  switch (type) {
    case kFile:
      return "file";
    case kDirectory:
      return "directory";
    case kLink:
      return "link";
    case kFifo:
      return "fifo";
    case kSocket:
      return "socket";
    case kDevice:
      return "device";
  }
  return "other";
}

json::Object ViewOf(const agent::FileInfo& info) {
  json::Object view{{"type", NameOf(info.type)},
                    {"mode", fmt::format("{:04o}", info.mode)},
                    {"uid", std::int64_t{info.uid}},
                    {"gid", std::int64_t{info.gid}},
                    {"modified_at", Timestamp(info.modified_ns / 1'000'000)}};
  if (info.size) view.Set("size", *info.size);
  if (!info.link_target.empty()) view.Set("target", ValidUtf8(info.link_target));
  return view;
}

Result<void> Stat(Call& call) {
  CAISSON_ASSIGN(Place place, Find(call));
  const std::string* follow = call.request().Query("follow");
  CAISSON_ASSIGN(
      const agent::FileInfo info,
      agent::Stat(std::move(place.connection),
                  {.path = place.path, .follow = follow == nullptr || *follow != "false"}));
  json::Object view{{"path", place.path}};
  for (const auto& [key, value] : ViewOf(info)) view.Set(key, value);
  return Succeed(call.exchange, std::move(view));
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(const std::int64_t limit,
                 ReadQueryNumber(call.request(), "limit", 10'000, kMostEntries));
  CAISSON_ASSIGN(Place place, Find(call));
  CAISSON_ASSIGN(
      const agent::Listing listing,
      agent::List(std::move(place.connection),
                  {.path = place.path, .max_entries = static_cast<std::uint32_t>(limit)}));
  json::Array entries;
  for (const agent::FileEntry& entry : listing.entries) {
    json::Object view{{"name", ValidUtf8(entry.name)}};
    for (const auto& [key, value] : ViewOf(entry.info)) view.Set(key, value);
    entries.emplace_back(std::move(view));
  }
  return Succeed(call.exchange, json::Object{{"path", place.path},
                                             {"entries", std::move(entries)},
                                             {"truncated", listing.truncated}});
}

Result<void> Remove(Call& call) {
  CAISSON_ASSIGN(Place place, Find(call));
  const std::string* recursive = call.request().Query("recursive");
  CAISSON_ASSIGN(const std::uint64_t removed,
                 agent::Remove(std::move(place.connection),
                               {.path = place.path,
                                .recursive = recursive != nullptr && *recursive == "true"}));
  return Succeed(call.exchange, json::Object{{"path", place.path}, {"removed", removed}});
}

}  // namespace

void AddFiles(Routes& routes) {
  routes.Add("PUT /v1/sandboxes/{id}/files", Access::kSandbox, Pace::kBlocking, Put);
  routes.Add("GET /v1/sandboxes/{id}/files", Access::kSandbox, Pace::kBlocking, Get);
  routes.Add("DELETE /v1/sandboxes/{id}/files", Access::kSandbox, Pace::kBlocking, Remove);
  routes.Add("GET /v1/sandboxes/{id}/files/list", Access::kSandbox, Pace::kBlocking, List);
  routes.Add("GET /v1/sandboxes/{id}/files/stat", Access::kSandbox, Pace::kBlocking, Stat);
}

}  // namespace caisson::api
