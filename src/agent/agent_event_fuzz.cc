// SPDX-License-Identifier: Apache-2.0
// Any bytes from an agent that a guest has taken over, as the client reads them in each of its
// calls: an answer or a Status, and an end.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "agent/client.h"

namespace caisson::agent {
namespace {

constexpr std::size_t kMostBytes = 100'000;  // what a socket takes without a reader

// An agent that has said this and says no more.
class Agent {
 public:
  explicit Agent(std::string_view bytes) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    host_.Reset(ends[0]);
    agent_.Reset(ends[1]);
    const ssize_t count = ::write(agent_.get(), bytes.data(), bytes.size());
    if (count != static_cast<ssize_t>(bytes.size())) std::abort();
    ::shutdown(agent_.get(), SHUT_WR);  // it would still take a request
  }
  os::UniqueFd Connect() { return std::move(host_); }

 private:
  os::UniqueFd host_;
  os::UniqueFd agent_;
};

void HearExec(std::string_view bytes) {
  Agent agent(bytes);
  auto exec = Exec::Start(agent.Connect(), {.command = {.argv = {"x"}}, .stdin_open = true});
  if (!exec) return;
  exec->FeedStdin("input");
  for (;;) {
    const auto event = exec->Next();
    if (!event || event->kind == ExecEvent::Kind::kExit ||
        event->kind == ExecEvent::Kind::kFailedToStart) {
      return;
    }
  }
}

void HearFiles(std::string_view bytes) {
  Agent getting(bytes);
  auto download = Download::Start(getting.Connect(), "/x");
  std::uint64_t got = 0;
  while (download) {
    const auto piece = download->Next();
    if (!piece) break;
    got += piece->size();
    if (download->info().size && got > *download->info().size) std::abort();
    if (piece->empty()) break;
  }
  Agent putting(bytes);
  if (auto upload = Upload::Start(putting.Connect(), {"/x", {}})) {
    if (upload->Write("text")) (void)upload->Commit();
  }
  Agent listing(bytes);
  const auto list = List(listing.Connect(), {.path = "/x", .max_entries = 3});
  if (list && list->entries.size() > 3) std::abort();
  Agent removing(bytes);
  (void)Remove(removing.Connect(), {"/x", true});
}

void HearProcesses(std::string_view bytes) {
  Agent connecting(bytes);
  auto events = ProcessEvents::Connect(connecting.Connect(), {"p", 0});
  while (events) {
    const auto event = events->Next();
    if (!event || !*event) break;
  }
  Agent listing(bytes);
  (void)ListProcesses(listing.Connect());
  Agent waiting(bytes);
  (void)WaitProcess(waiting.Connect(), {.process_id = "p"});
  Agent taking(bytes);
  (void)SendInput(taking.Connect(), {"p", "x"});
}

void HearOthers(std::string_view bytes) {
  Agent watching(bytes);
  auto watch = Watch::Start(watching.Connect());
  while (watch && watch->Next()) continue;
  Agent dialling(bytes);
  (void)Dial(dialling.Connect(), {80});
  Agent telling(bytes);
  (void)Info(telling.Connect());
}

}  // namespace
}  // namespace caisson::agent

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::agent;
  if (size > kMostBytes) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HearExec(bytes);
  HearFiles(bytes);
  HearProcesses(bytes);
  HearOthers(bytes);
  return 0;
}
