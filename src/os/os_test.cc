// SPDX-License-Identifier: Apache-2.0
// What the small modules promise on their own; the jail's tests show what they are for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "errors/os.h"
#include "os/every_thread.h"
#include "os/fd.h"
#include "os/fd_passing.h"
#include "os/landlock.h"
#include "os/process.h"
#include "os/rlimit.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

using namespace std::chrono_literals;

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(SyscallError, NamesTheErrorAndWhatWasTried) {
  const Status status = SyscallError("open /x", ENOENT).error();
  EXPECT_EQ(status.code, errors::kOsSyscall);
  EXPECT_EQ(status.message, "open /x: ENOENT (No such file or directory)");
  EXPECT_EQ(ErrnoText(100'000), "errno 100000");
  for (const int error : {EMFILE, ENFILE}) {
    const Status full = SyscallError("pipe2", error).error();
    EXPECT_EQ(full.code, errors::kOsOpenFiles);
    EXPECT_NE(full.message.find("; raise "), std::string::npos) << full.message;
  }
}

TEST(UniqueFd, ClosesOnceAndMoves) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  const int raw = pipe->first.get();
  {
    UniqueFd moved = std::move(pipe->first);
    EXPECT_EQ(moved.get(), raw);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
  EXPECT_NE(::fcntl(pipe->second.get(), F_GETFD) & FD_CLOEXEC, 0);
}

// What is received of three descriptors that are sent, with room for `kRoom`.
template <std::size_t kRoom>
std::pair<std::size_t, bool> ReceiveOfThree() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  FdSpace<4> sent;
  const std::array<int, 3> fds = {from.get(), to.get(), from.get()};
  sent.Attach(message, fds);
  EXPECT_EQ(::sendmsg(from.get(), &message, MSG_NOSIGNAL), 1);
  FdSpace<kRoom> received;
  received.Await(message);
  EXPECT_EQ(::recvmsg(to.get(), &message, MSG_CMSG_CLOEXEC), 1);
  std::vector<UniqueFd> taken;
  TakeFds(message, [&taken](int fd) { taken.emplace_back(fd); });
  for (const UniqueFd& fd : taken) EXPECT_TRUE(IsOpen(fd.get()));
  return {taken.size(), (message.msg_flags & MSG_CTRUNC) != 0};
}

TEST(FdPassing, TakesAllThatComeAndSaysWhereMoreCameThanThereIsRoomFor) {
  EXPECT_EQ(ReceiveOfThree<4>(), std::pair(std::size_t{3}, false));
  EXPECT_EQ(ReceiveOfThree<2>(), std::pair(std::size_t{2}, true));
}

TEST(FdPassing, AMessageWithoutDescriptorsHasNone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  FdSpace<1> space;
  space.Attach(message, {});
  ASSERT_EQ(::sendmsg(from.get(), &message, MSG_NOSIGNAL), 1);
  space.Await(message);
  ASSERT_EQ(::recvmsg(to.get(), &message, MSG_CMSG_CLOEXEC), 1);
  TakeFds(message, [](int) { ADD_FAILURE(); });
}

TEST(SmallFiles, FailWithThePath) {
  const auto read = ReadSmallFile("/nonexistent/file");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("/nonexistent/file"), std::string::npos);
  EXPECT_FALSE(WriteSmallFile("/nonexistent/file", "x"));
  EXPECT_EQ(ReadSmallFile("/proc/self/status", 5)->size(), 5u);
}

TEST(ChildProcess, IsKilledAndReapedByItsOwner) {
  pid_t pid = -1;
  {
    auto clone = CloneWithNamespaces(0);
    ASSERT_TRUE(clone);
    if (clone->pid == 0) {
      for (;;) ::pause();
    }
    pid = clone->pid;
    ChildProcess child(clone->pid, std::move(clone->pidfd));
    EXPECT_FALSE(child.Wait(10ms));
    EXPECT_TRUE(child.running());
  }
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ChildProcess, SaysHowItEnded) {
  for (const bool by_signal : {false, true}) {
    auto clone = CloneWithNamespaces(0);
    ASSERT_TRUE(clone);
    if (clone->pid == 0) {
      if (by_signal) ::kill(::getpid(), SIGKILL);
      ::_exit(7);
    }
    ChildProcess child(clone->pid, std::move(clone->pidfd));
    const auto status = child.Wait(10s);
    ASSERT_TRUE(status);
    EXPECT_EQ(ToText(*status), by_signal ? "was killed by SIGKILL" : "exited with code 7");
    EXPECT_FALSE(child.running());
  }
}

TEST(LowerLimit, LowersAndNeverRaises) {
  auto clone = CloneWithNamespaces(0);
  ASSERT_TRUE(clone);
  if (clone->pid == 0) {
    rlimit limit{};
    const bool good = LowerLimit(RLIMIT_NOFILE, 50) && LowerLimit(RLIMIT_NOFILE, 1'000'000) &&
                      ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max == 50;
    ::_exit(good ? 0 : 1);
  }
  ChildProcess child(clone->pid, std::move(clone->pidfd));
  EXPECT_EQ(child.Wait(10s), (ExitStatus{.code = 0, .signal = 0}));
}

TEST(Landlock, HasARulesetWhereverTheKernelKnowsIt) {
  const auto ruleset = MakeDenyAllRuleset();
  EXPECT_EQ(ruleset.has_value(), LandlockAbi() > 0);
}

thread_local int t_visits = 0;
int Visit(void* counter) {
  ++t_visits;
  static_cast<std::atomic<int>*>(counter)->fetch_add(1);
  return 0;
}

TEST(OnOtherThreads, RunsOnEachOnceAndNotOnTheCaller) {
  std::atomic<bool> stop{false};
  std::atomic<int> visits{0};
  std::atomic<int> ready{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (!stop) std::this_thread::sleep_for(1ms);
      wrong += t_visits != 1;
    });
  }
  while (ready < 5) std::this_thread::sleep_for(1ms);
  const auto done = OnOtherThreads(Visit, &visits);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(visits, 5);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(t_visits, 0);
}

TEST(OnOtherThreads, FailsWhenAThreadDoes) {
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    while (!stop) std::this_thread::sleep_for(1ms);
  });
  const auto done = OnOtherThreads([](void*) { return EPERM; }, nullptr);
  stop = true;
  thread.join();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("EPERM"), std::string::npos);
}

}  // namespace
}  // namespace caisson::os
