// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "agent/client.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

std::unexpected<Status> EarlyEnd(const Frame& frame) {
  if (frame.type != FrameType::kFailed) return Connection::Unexpected(frame.type);
  const auto failure = Connection::As<Failure>(frame);
  return failure ? FailureStatus(*failure) : Fail(failure.error());
}

}  // namespace

Result<Upload> Upload::Start(os::UniqueFd fd, const PutRequest& request) {
  Upload upload(std::make_unique<Connection>(std::move(fd)));
  CAISSON_TRY(upload.connection_->SendMessage(FrameType::kPut, request));
  CAISSON_TRY(upload.connection_->Expect(FrameType::kOk));
  return upload;
}

Result<void> Upload::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    // The agent speaks before the end only when it has failed.
    CAISSON_ASSIGN(const std::optional<Frame> early,
                   connection_->Receive(std::chrono::steady_clock::now()));
    if (early) return EarlyEnd(*early);
    const std::string_view piece = bytes.substr(0, kMaxDataBytes);
    CAISSON_TRY(connection_->Send(FrameType::kData, piece));
    bytes.remove_prefix(piece.size());
  }
  return {};
}

Result<std::uint64_t> Upload::Commit() {
  CAISSON_TRY(connection_->Send(FrameType::kCommit, {}));
  CAISSON_ASSIGN(const End end, connection_->ExpectMessage<End>(FrameType::kEnd));
  return end.count;
}

Result<Download> Download::Start(os::UniqueFd fd, const std::string& path) {
  Download download(std::make_unique<Connection>(std::move(fd)));
  CAISSON_TRY(download.connection_->SendMessage(FrameType::kGet, PathRequest{path}));
  CAISSON_ASSIGN(download.info_, download.connection_->ExpectMessage<FileInfo>(FrameType::kFile));
  return download;
}

Result<std::string_view> Download::Next() {
  if (ended_) return std::string_view();
  CAISSON_ASSIGN(const std::optional<Frame> frame, connection_->ReceiveWithin({}));
  if (!frame) return std::string_view();  // unreachable: without a limit it waits or fails
  if (frame->type == FrameType::kFailed) {
    CAISSON_ASSIGN(const Failure failure, Connection::As<Failure>(*frame));
    return FailureStatus(failure);
  }
  if (frame->type == FrameType::kData && !frame->payload.empty()) {
    received_ += frame->payload.size();
    if (info_.size && received_ > *info_.size) return Connection::Unexpected(frame->type);
    return frame->payload;
  }
  if (frame->type != FrameType::kEnd) return Connection::Unexpected(frame->type);
  CAISSON_ASSIGN(const End end, Connection::As<End>(*frame));
  if (end.count != received_ || (info_.size && *info_.size != received_)) {
    return Connection::Malformed(frame->type);
  }
  ended_ = true;
  return std::string_view();
}

Result<FileInfo> Stat(os::UniqueFd fd, const StatRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kStat, request));
  return connection.ExpectMessage<FileInfo>(FrameType::kFile);
}

Result<Listing> List(os::UniqueFd fd, const ListRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kList, request));
  Listing listing;
  for (;;) {
    CAISSON_ASSIGN(const Frame frame, connection.ExpectEither(FrameType::kEntry, FrameType::kEnd));
    if (frame.type == FrameType::kEnd) {
      CAISSON_ASSIGN(const End end, Connection::As<End>(frame));
      listing.truncated = end.truncated;
      break;
    }
    if (listing.entries.size() >= request.max_entries) return Connection::Unexpected(frame.type);
    CAISSON_ASSIGN(FileEntry entry, Connection::As<FileEntry>(frame));
    listing.entries.push_back(std::move(entry));
  }
  std::ranges::sort(listing.entries, {}, &FileEntry::name);
  return listing;
}

Result<std::uint64_t> Remove(os::UniqueFd fd, const RemoveRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kRemove, request));
  for (;;) {
    CAISSON_ASSIGN(const Frame frame,
                   connection.ExpectEither(FrameType::kHeartbeat, FrameType::kEnd));
    if (frame.type == FrameType::kHeartbeat) continue;  // it is still at it
    CAISSON_ASSIGN(const End end, Connection::As<End>(frame));
    return end.count;
  }
}

}  // namespace caisson::agent
