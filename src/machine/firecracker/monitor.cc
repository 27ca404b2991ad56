// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/monitor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "machine/firecracker/api.h"
#include "machine/firecracker/calls.h"
#include "machine/firecracker/hybrid_vsock.h"
#include "machine/microvm/words.h"
#include "os/syscall_error.h"

namespace caisson::machine::firecracker {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kStartPatience{20'000};
constexpr milliseconds kCallPatience{10'000};
constexpr milliseconds kSavePatience{120'000};
constexpr milliseconds kLook{2};
// A stream that was opened while the guest still forgot those of its earlier life is dead.
constexpr milliseconds kGreetingPatience{500};

class Firecracker final : public microvm::Monitor {
 public:
  Firecracker(const microvm::Plan& plan, Jailer jailer) : plan_(plan), jailer_(std::move(jailer)) {}

  std::string name() const override { return "Firecracker"; }
  Result<void> Start(agent::guest::Loop& loop, microvm::TakeStream take) override;
  bool MakeNewStream() override {
    dialer_->Dial();
    return true;
  }
  milliseconds greeting_patience() const override { return kGreetingPatience; }
  Result<void> Stop() override { return Do(PauseCall()); }
  Result<void> GoOn() override {
    CAISSON_TRY(Do(ResumeCall()));
    saved_ = false;
    return {};
  }
  // With a snapshot the guest is told that its transport was reset, and drops every stream.
  bool LosesStream() const override { return saved_; }
  Result<void> Save() override {
    saved_ = true;
    return Do(SaveCall(), kSavePatience);
  }
  Result<void> Grow(std::uint64_t bytes) override;
  bool HasEnded(pid_t pid, int status) override;
  std::string last_words() const override { return words_->Last(); }

 private:
  Result<void> Do(const Call& call, milliseconds patience = kCallPatience) {
    return api_->Do(call, patience);
  }
  Result<void> AwaitApi();

  const microvm::Plan plan_;
  Jailer jailer_;
  const std::unique_ptr<microvm::Words> words_ = std::make_unique<microvm::Words>();
  std::optional<Api> api_;
  std::unique_ptr<HybridDialer> dialer_;
  bool saved_ = false;
};

// The jailer ends once Firecracker is started in a namespace of processes of its own.
bool Firecracker::HasEnded(pid_t pid, int status) {
  return pid != jailer_.pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

Result<void> Firecracker::AwaitApi() {
  const auto deadline = Clock::now() + kStartPatience;
  while (!IsListening(kApiSocket)) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0 && HasEnded(ended, status)) {
      return Fail(errors::kMachineVmFailed,
                  (ended == jailer_.pid ? "the jailer gave up: " : "Firecracker ended at once: ") +
                      words_->Last());
    }
    if (Clock::now() > deadline) {
      return Fail(errors::kMachineVmFailed,
                  "Firecracker did not open its API within 20 s: " + words_->Last());
    }
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

Result<void> Firecracker::Start(agent::guest::Loop& loop, microvm::TakeStream take) {
  words_->Watch(loop, std::move(jailer_.words));
  CAISSON_TRY(AwaitApi());
  CAISSON_ASSIGN(api_, Api::Open(kApiSocket));
  for (const Call& call : plan_.base.empty() ? BootCalls(plan_) : LoadCalls(plan_)) {
    CAISSON_TRY(Do(call, kStartPatience));
  }
  dialer_ = std::make_unique<HybridDialer>(
      loop, kAgentSocket, kAgentPort,
      [take = std::move(take)](os::UniqueFd stream) {
        take(std::move(stream), agent::StreamKind::kConnection);
      },
      HybridDialer::Patience{});
  dialer_->Dial();
  return {};
}

Result<void> Firecracker::Grow(std::uint64_t bytes) {
  const std::string file = std::string(microvm::kInsideOwn) + "/disk.img";
  CAISSON_ASSIGN(const os::UniqueFd disk, os::OpenFile(file, O_WRONLY));
  if (::ftruncate(disk.get(), static_cast<off_t>(bytes)) != 0) {
    return os::SyscallError("grow " + file);
  }
  return Do(GrownDiskCall());
}

}  // namespace

std::unique_ptr<microvm::Monitor> MakeMonitor(const microvm::Plan& plan, Jailer jailer) {
  return std::make_unique<Firecracker>(plan, std::move(jailer));
}

}  // namespace caisson::machine::firecracker
