// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/spare.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "errors/os.h"
#include "isolate/job_file.h"
#include "jail/walls.h"
#include "os/syscall_error.h"

namespace caisson::isolate::native {
namespace {

constexpr int kStartTimeoutMs = 20'000;
constexpr std::uint64_t kInodeBytes = 4096;
constexpr std::uint64_t kMebibyte = 1u << 20;

bool CountsMemory(const os::Cgroup& cgroup) {
  return std::ranges::find(cgroup.refused(), os::Controller::kMemory,
                           &os::Cgroup::Refused::controller) == cgroup.refused().end();
}

CallRequest MakeRequest(const ScriptLimits& limits, const NativeOptions& options,
                        const os::Cgroup& cgroup) {
  CallRequest request{};
  request.disk_bytes = limits.disk_bytes != 0 ? limits.disk_bytes : limits.memory_bytes;
  request.disk_inodes = std::max<std::uint64_t>(request.disk_bytes / kInodeBytes, 64);
  request.data_bytes = DataBytes(limits.memory_bytes);
  // Reserved memory counts here, too, so this is strict only where no cgroup counts shared memory.
  request.address_bytes = CountsMemory(cgroup) ? 4 * limits.memory_bytes + 1024 * kMebibyte
                                               : limits.memory_bytes + 64 * kMebibyte;
  request.threads = limits.pids;
  const auto cpu = limits.cpu.count();
  // In case that the supervisor, which counts more finely, were stopped.
  if (cpu > 0) request.cpu_seconds = static_cast<std::uint32_t>(cpu / 1000 + 2);
  if (options.processes) request.cpu_seconds = 0;  // it would count per process
  return request;
}

std::string NextGroupName() {
  static std::atomic<std::uint64_t> counter{0};
  return os::Cgroup::NamePrefix() + "call" + std::to_string(counter++);
}

// The pid that a pidfd stands for, as our own procfs has it.
Result<pid_t> PidOf(int pidfd) {
  CAISSON_ASSIGN(const std::string info,
                 os::ReadSmallFile("/proc/self/fdinfo/" + std::to_string(pidfd)));
  const std::size_t at = info.find("\nPid:");
  pid_t pid = 0;
  if (at != std::string::npos) {
    const std::size_t digits = info.find_first_not_of(" \t", at + 5);
    if (digits != std::string::npos) {
      std::from_chars(info.data() + digits, info.data() + info.size(), pid);
    }
  }
  if (pid <= 0) return os::SyscallError("find the pid of a call in /proc/self/fdinfo", ESRCH);
  return pid;
}

Result<void> DoNotBlock(const os::UniqueFd& fd) {
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return os::SyscallError("set O_NONBLOCK");
  return {};
}

Result<os::FdPair> MakeSockets(int type) {
  int fds[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0)
    return os::SyscallError("socketpair");
  return os::FdPair{os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

// The script's ends; closed here once it has them.
struct GuestEnds {
  os::UniqueFd job, channel, out, err;
};

Result<GuestEnds> OpenDescriptors(const ScriptJob& job, StartedCall& call) {
  GuestEnds guest;
  CAISSON_ASSIGN(guest.job, MakeJobFile({}, job));
  CAISSON_ASSIGN(os::FdPair channel, MakeSockets(SOCK_STREAM));
  CAISSON_ASSIGN(os::FdPair out, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair err, os::MakePipe());
  // Nothing ever goes to the guest on it.
  ::shutdown(channel.first.get(), SHUT_WR);
  call.channel = std::move(channel.first);
  call.out = std::move(out.first);
  call.err = std::move(err.first);
  guest.channel = std::move(channel.second);
  guest.out = std::move(out.second);
  guest.err = std::move(err.second);
  for (const os::UniqueFd* fd : {&call.channel, &call.out, &call.err}) CAISSON_TRY(DoNotBlock(*fd));
  return guest;
}

}  // namespace

os::CgroupLimits GroupLimits(const ScriptLimits& limits, const NativeOptions& options) {
  const jail::WallSet& left_out = options.leave_out.walls;
  os::CgroupLimits group{
      .memory_bytes = limits.memory_bytes, .cpus = options.cpus, .pids = limits.pids};
  if (left_out.Has(jail::Wall::kMemoryCgroup)) group.memory_bytes = 0;
  if (left_out.Has(jail::Wall::kCpuCgroup)) group.cpus = 0;
  if (left_out.Has(jail::Wall::kPidsCgroup)) group.pids = 0;
  return group;
}

bool SendWithFds(int socket, const void* message, std::size_t size, std::span<const int> fds) {
  iovec vector{const_cast<void*>(message), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kRequestFds)] = {};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

std::unexpected<Status> WallFailure(const Reply& reply) {
  const std::string step(reply.step, ::strnlen(reply.step, sizeof reply.step));
  auto status = os::SyscallError(step, reply.error);
  if (reply.wall >= jail::kWallCount || status.error().code == errors::kOsOpenFiles) return status;
  return jail::Unavailable(static_cast<jail::Wall>(reply.wall), status.error().message);
}

std::optional<Reply> ReceiveReply(int socket, int timeout_ms, os::UniqueFd* pidfd) {
  pollfd event{socket, POLLIN, 0};
  if (::poll(&event, 1, timeout_ms) <= 0) return std::nullopt;
  Reply reply{};
  iovec vector{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (n != static_cast<ssize_t>(sizeof reply)) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    os::UniqueFd received(fd);
    if (pidfd != nullptr) *pidfd = std::move(received);
  }
  return reply;
}

Result<std::optional<Spare>> MakeSpare(const Zygote& zygote, const os::CgroupLimits& limits) {
  Spare spare;
  spare.limits = limits;
  {
    CAISSON_ASSIGN(os::FdPair sockets, MakeSockets(SOCK_SEQPACKET));
    spare.socket = std::move(sockets.first);
    const ForkRequest request{.version = kWireVersion};
    const int far_end = sockets.second.get();
    if (!SendWithFds(zygote.control(), &request, sizeof request, {&far_end, 1})) {
      return std::nullopt;
    }
  }
  // Made while the zygote clones.
  spare.cgroup = os::Cgroup::Make(NextGroupName(), limits);
  const auto started = ReceiveReply(spare.socket.get(), kStartTimeoutMs, &spare.pidfd);
  if (!started) return std::nullopt;
  if (started->kind == ReplyKind::kFailed) return WallFailure(*started);
  if (started->kind != ReplyKind::kStarted || !spare.pidfd.valid()) return std::nullopt;
  auto pid = PidOf(spare.pidfd.get());
  if (pid) {
    spare.pid = *pid;
    auto attached = spare.cgroup.Attach(spare.pid);
    if (attached) return spare;
    pid = Fail(std::move(attached).error());
  }
  ::syscall(SYS_pidfd_send_signal, spare.pidfd.get(), SIGKILL, nullptr, 0);
  if (!zygote.alive()) return std::nullopt;
  return Fail(std::move(pid).error());
}

Result<std::optional<StartedCall>> StartScript(Spare spare, const NativeOptions& options,
                                               const ScriptJob& job) {
  StartedCall call;
  call.spare = std::move(spare);
  CAISSON_ASSIGN(const GuestEnds guest, OpenDescriptors(job, call));
  const CallRequest request = MakeRequest(job.limits, options, call.spare.cgroup);
  const std::array<int, kRequestFds> fds = {guest.job.get(), guest.channel.get(), guest.out.get(),
                                            guest.err.get()};
  if (!SendWithFds(call.spare.socket.get(), &request, sizeof request, fds)) return std::nullopt;
  return call;
}

void Await(const Spare& spare) {
  pollfd gone{spare.pidfd.get(), POLLIN, 0};
  (void)::poll(&gone, 1, kStartTimeoutMs);
}

}  // namespace caisson::isolate::native
