// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/qemu.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/disk.h"
#include "machine/microvm/command_line.h"
#include "machine/microvm/memory.h"
#include "machine/microvm/qmp.h"
#include "machine/microvm/words.h"
#include "os/argument_pointers.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQemuPatience{20'000};
constexpr milliseconds kSavePatience{120'000};

std::string Own(const char* name) { return std::string(kInsideOwn) + "/" + name; }

Result<os::FdPair> Pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os::SyscallError("socketpair");
  }
  return os::FdPair{os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

class Qemu final : public Monitor {
 public:
  explicit Qemu(const Plan& plan) : plan_(plan) {}

  std::string name() const override { return "QEMU"; }
  Result<void> Start(agent::guest::Loop& loop, TakeStream take) override;
  bool MakeNewStream() override { return false; }
  milliseconds greeting_patience() const override { return milliseconds(0); }
  Result<void> Stop() override { return Tell("stop"); }
  Result<void> GoOn() override { return Tell("cont"); }
  bool LosesStream() const override { return false; }
  Result<void> Save() override;
  Result<void> Grow(std::uint64_t bytes) override {
    return Tell("block_resize", json::Object{{"device", "disk"}, {"size", bytes}});
  }
  bool HasEnded(pid_t pid, int) override { return pid == pid_; }
  std::string last_words() const override { return words_->Last(); }
  void Tidy() override {
    if (qmp_) qmp_->Forget();
  }

 private:
  Result<void> Tell(const char* command, json::Object arguments = {}) {
    CAISSON_TRY(qmp_->Do(command, std::move(arguments)));
    return {};
  }
  Result<void> Execute(int monitor, int port, int words);
  Result<void> Load();

  const Plan plan_;
  pid_t pid_ = 0;
  std::optional<Qmp> qmp_;
  const std::unique_ptr<Words> words_ = std::make_unique<Words>();
};

Result<void> Qemu::Execute(int monitor, int port, int words) {
  std::vector<std::string> command =
      QemuCommand(plan_, {.monitor = monitor, .port = port, .tap = kTapFd});
  std::vector<std::string> variables = {"PATH=/usr/bin", "LC_ALL=C", "TMPDIR=/tmp"};
  if (!plan_.shares_memory && !plan_.trial) {
    variables.push_back(std::string("LD_PRELOAD=") + kInsidePreload);
    variables.push_back("CAISSON_PRIVATE_MEMORY=" + MemoryFile(plan_));
  }
  const std::vector<char*> arguments = os::ArgumentPointers(command);
  const std::vector<char*> environment = os::ArgumentPointers(variables);
  pid_ = ::fork();
  if (pid_ < 0) return os::SyscallError("fork");
  if (pid_ > 0) return {};
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A write beyond the limit of files fails, and does not end it.
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {monitor, port, kTapFd}) ::fcntl(fd, F_SETFD, 0);
  ::dup2(words, 1);
  ::dup2(words, 2);
  ::close(kControlFd);
  ::close(kAgentFd);
  ::execve(arguments[0], arguments.data(), environment.data());
  std::perror("execute QEMU");
  ::_exit(127);
}

Result<void> Qemu::Start(agent::guest::Loop& loop, TakeStream take) {
  CAISSON_ASSIGN(os::FdPair monitor, Pair());
  CAISSON_ASSIGN(os::FdPair port, Pair());
  CAISSON_ASSIGN(os::FdPair words, os::MakePipe());
  CAISSON_TRY(Execute(monitor.second.get(), port.second.get(), words.second.get()));
  // Its ends are its own, so that their end is seen.
  monitor.second.Reset();
  port.second.Reset();
  words.second.Reset();
  words_->Watch(loop, std::move(words.first));
  qmp_.emplace(std::move(monitor.first));
  if (auto begun = qmp_->Begin(kQemuPatience); !begun) {
    const std::string said = words_->Last();
    return Fail(errors::kMachineVmFailed,
                begun.error().message + (said.empty() ? "" : ": " + said));
  }
  if (plan_.trial) return {};
  CAISSON_TRY(Load());
  take(std::move(port.first), agent::StreamKind::kPort);
  return {};
}

json::Object IgnoreShared() {
  json::Array list;
  list.emplace_back(json::Object{{"capability", "x-ignore-shared"}, {"state", true}});
  return json::Object{{"capabilities", json::Value(std::move(list))}};
}

Result<void> Qemu::Load() {
  CAISSON_TRY(Tell("migrate-set-capabilities", IgnoreShared()));
  if (plan_.base.empty()) return {};
  CAISSON_ASSIGN(const std::string uri,
                 qmp_->MigrationUri(std::string(kInsideBase) + "/state", O_RDONLY));
  CAISSON_TRY(Tell("migrate-incoming", json::Object{{"uri", uri}}));
  CAISSON_TRY(qmp_->AwaitLoaded(kQemuPatience));
  return GoOn();
}

Result<void> Qemu::Save() {
  // Both files are there already, since only the helper makes any.
  CAISSON_ASSIGN(const std::string uri, qmp_->MigrationUri(Own("state"), O_WRONLY | O_TRUNC));
  CAISSON_TRY(Tell("migrate", json::Object{{"uri", uri}}));
  CAISSON_TRY(qmp_->AwaitMigration(kSavePatience));
  struct stat memory{};
  if (::stat(Own("memory").c_str(), &memory) != 0) return os::SyscallError("find the new memory");
  if (memory.st_size == 0) CAISSON_TRY(CopyContents(MemoryFile(plan_), Own("memory")));
  if (plan_.shares_memory) return {};
  CAISSON_TRY(WriteChangedMemory(pid_, MemoryFile(plan_), Own("memory")));
  return {};
}

}  // namespace

std::unique_ptr<Monitor> MakeQemu(const Plan& plan) { return std::make_unique<Qemu>(plan); }

}  // namespace caisson::machine::microvm
