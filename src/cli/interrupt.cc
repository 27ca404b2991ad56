// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace caisson::cli {

Interrupt::Interrupt(Console& console) : console_(console) {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGTERM);
  // Whoever started us with SIGINT ignored (a shell's background job) means it.
  struct sigaction interrupt{};
  if (sigaction(SIGINT, nullptr, &interrupt) == 0 && interrupt.sa_handler == SIG_IGN) {
    sigdelset(&watched, SIGINT);
  }
  const int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  done_ = eventfd(0, EFD_CLOEXEC);
  pthread_sigmask(SIG_BLOCK, &watched, &before_);
  if (signals < 0 || done_ < 0) {  // no descriptors left: the signals' own action must do
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    if (signals >= 0) close(signals);
    return;
  }
  watcher_ = std::thread([this, signals] { Watch(signals, done_); });
}

Interrupt::~Interrupt() {
  if (watcher_.joinable()) {
    const std::uint64_t one = 1;
    (void)!write(done_, &one, sizeof one);
    watcher_.join();
    if (stopper_.joinable()) stopper_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  if (done_ >= 0) close(done_);
}

void Interrupt::Stop(int number) {
  source_.request_stop();
  console_.Info(std::string(number == SIGINT ? "SIGINT" : "SIGTERM") +
                ": cancelling the run; once more ends it at once");
}

void Interrupt::Watch(int signals, int done) {
  pollfd watched[] = {{signals, POLLIN, 0}, {done, POLLIN, 0}};
  while (true) {
    if (poll(watched, 2, -1) < 0) continue;
    if ((watched[1].revents & POLLIN) != 0) break;
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (stopper_.joinable()) _exit(128 + number);
    stopper_ = std::thread([this, number] { Stop(number); });
  }
  close(signals);
}

}  // namespace caisson::cli
