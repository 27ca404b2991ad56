// SPDX-License-Identifier: Apache-2.0
// Files of the machine, for the host. Long work goes in slices, so that other operations have
// their turn.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "agent/guest/agent.h"
#include "agent/guest/host_connection.h"
#include "agent/guest/paths.h"

namespace caisson::agent::guest {

// Answered at once.
void AnswerStat(HostConnection& connection, const StatRequest& request);

// Writes a file of another name beside the one that is meant, and renames it when all has come.
class PutOperation final : public Operation {
 public:
  PutOperation(HostConnection& connection, const PutRequest& request);
  ~PutOperation() override;
  void OnFrame(const Frame& frame) override;
  bool ReadsPayload(FrameType type) const override { return type == FrameType::kData; }
  ssize_t ReadPayload(int socket, std::size_t most) override;

 private:
  Attempt<void> Begin(const PutRequest& request);
  Attempt<void> Write(std::string_view bytes);
  Attempt<void> Commit();
  Attempt<void> WriteFromPipe(std::size_t bytes);

  Counted counted_;
  std::string path_;
  Place place_;
  std::string temporary_;
  os::UniqueFd file_;
  mode_t mode_ = 0;
  std::uint64_t written_ = 0;
  // What comes goes through a pipe, by which the kernel hands on the socket's own pages: one copy
  // less than through a buffer. Empty where that cannot be.
  os::UniqueFd pipe_in_;
  os::UniqueFd pipe_out_;
};

class GetOperation final : public Operation {
 public:
  GetOperation(HostConnection& connection, const PathRequest& request);
  void OnSent() override { ReadSlice(); }

 private:
  Attempt<void> Open();
  void ReadSlice();

  Counted counted_;
  std::string path_;
  os::UniqueFd file_;
  FileInfo info_;
  std::uint64_t read_ = 0;
  Timer next_;
};

class ListOperation final : public Operation {
 public:
  ListOperation(HostConnection& connection, const ListRequest& request);
  ~ListOperation() override;
  void OnSent() override { ListSlice(); }

 private:
  Attempt<void> Open(const std::string& path);
  void ListSlice();
  void TellEnd(bool truncated);

  struct Folder;
  std::unique_ptr<Folder> folder_;
  std::uint32_t max_entries_;
  std::uint32_t count_ = 0;
  Timer next_;
};

std::unique_ptr<Operation> BeginRemove(HostConnection& connection, const RemoveRequest& request);

}  // namespace caisson::agent::guest
