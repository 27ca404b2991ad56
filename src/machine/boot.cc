// SPDX-License-Identifier: Apache-2.0
#include "machine/boot.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "errors/jail.h"
#include "os/argument_pointers.h"
#include "os/fd_passing.h"
#include "os/syscall_error.h"

namespace caisson::machine::boot {
namespace {

Result<os::FdPair> MakeControl() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return os::SyscallError("socketpair");
  }
  return os::FdPair{os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

Result<ChildPlan> PlanOf(const BootOptions& options, int control) {
  ChildPlan plan;
  const std::size_t needed = 4 + options.command_tasks.size() + options.agent_tasks.size();
  if (needed > kMaxDescriptors) return os::SyscallError("place so many descriptors", EMFILE);
  const auto add = [&plan](int fd) {
    plan.fds[static_cast<std::size_t>(plan.count)] = fd;
    return kListenFd + plan.count++;
  };
  add(options.listener);
  for (const os::UniqueFd& task : options.command_tasks) add(task.get());
  plan.inherited = plan.count;
  plan.program = add(options.program);
  plan.control = add(control);
  if (options.landlock >= 0) plan.landlock = add(options.landlock);
  plan.first_task = kListenFd + plan.count;
  for (const os::UniqueFd& task : options.agent_tasks) add(task.get());
  plan.last_task = kListenFd + plan.count;
  plan.filter = {.len = static_cast<unsigned short>(options.filter.size()),
                 .filter = const_cast<sock_filter*>(options.filter.data())};
  return plan;
}

Result<void> WriteMaps(pid_t child, std::uint32_t first) {
  const std::string proc = "/proc/" + std::to_string(child);
  const std::string map =
      "0 " + std::to_string(first) + " " + std::to_string(kIdsPerMachine) + "\n";
  CAISSON_TRY(os::WriteSmallFile(proc + "/uid_map", map));
  return os::WriteSmallFile(proc + "/gid_map", map);
}

Result<void> SendRoot(int control, int root) {
  char go = 'r';
  iovec part{.iov_base = &go, .iov_len = 1};
  os::FdSpace<1> space;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  space.Attach(message, {&root, 1});
  if (::sendmsg(control, &message, MSG_NOSIGNAL) != 1) return os::SyscallError("send the root");
  return {};
}

Status Refused(const Report& report) {
  const std::string step(report.step, ::strnlen(report.step, sizeof report.step));
  return {.code = errors::kJailUnavailable,
          .message = "a machine cannot be made on this host: " + step + ": " +
                     os::ErrnoText(report.error)};
}

// What the child says next; empty when it has executed the agent, or has died.
Result<bool> AwaitReport(int control) {
  Report report;
  ssize_t n = 0;
  do {
    n = ::recv(control, &report, sizeof report, 0);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return false;
  if (n != sizeof report) return os::SyscallError("hear from a machine that is made");
  if (report.error == 0) return true;
  return Fail(Refused(report));
}

// The calling thread is in another network namespace as long as this lives. A child that is cloned
// meanwhile stays in it.
class InNetwork {
 public:
  static Result<InNetwork> Enter(const std::string& path) {
    InNetwork guard;
    CAISSON_ASSIGN(guard.own_, os::OpenFile("/proc/thread-self/ns/net", O_RDONLY));
    CAISSON_ASSIGN(const os::UniqueFd other, os::OpenFile(path, O_RDONLY));
    if (::setns(other.get(), CLONE_NEWNET) != 0) {
      guard.own_.Reset();
      return os::SyscallError("enter " + path);
    }
    return guard;
  }
  InNetwork(InNetwork&&) noexcept = default;
  InNetwork& operator=(InNetwork&&) = delete;
  ~InNetwork() {
    // A thread that is lost in a machine's network must do nothing more.
    if (own_.valid() && ::setns(own_.get(), CLONE_NEWNET) != 0) ::abort();
  }

 private:
  InNetwork() = default;
  os::UniqueFd own_;
};

Result<os::ChildProcess> CloneChild(const BootOptions& options, const ChildPlan& plan) {
  CAISSON_ASSIGN(const InNetwork network, InNetwork::Enter(options.network));
  // The network is the host's own, so that a machine's capabilities do not reach into it; what they
  // would give is given to everybody inside.
  CAISSON_TRY(os::WriteSmallFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
  CAISSON_TRY(os::WriteSmallFile("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"));
  CAISSON_ASSIGN(os::CloneResult clone,
                 os::CloneWithNamespaces(kNamespaces, options.unified_group));
  if (clone.pid == 0) RunChild(plan);  // does not return: this thread's guard is not its own
  return os::ChildProcess(clone.pid, std::move(clone.pidfd));
}

// Ids and root of a process that waits for them.
Result<void> GiveRoot(const Prepared& prepared, const BootOptions& options,
                      const BuildRoot& build_root) {
  const pid_t pid = prepared.process.pid();
  CAISSON_TRY(WriteMaps(pid, options.first_host_id));
  CAISSON_ASSIGN(const os::UniqueFd users,
                 os::OpenFile("/proc/" + std::to_string(pid) + "/ns/user", O_RDONLY));
  {
    CAISSON_ASSIGN(const os::UniqueFd root, build_root(users.get()));
    CAISSON_TRY(SendRoot(prepared.control.get(), root.get()));
  }
  CAISSON_ASSIGN(const bool ready, AwaitReport(prepared.control.get()));
  if (!ready) return Fail(errors::kJailUnavailable, "a machine died while it was made");
  return {};
}

// --- of a process that caisson-container-init clones ---

std::string WordsOf(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& word : list) text.append(word).push_back('\0');
  return text;
}

Result<void> HandOver(int control, const BootOptions& options) {
  CAISSON_ASSIGN(const ChildPlan plan, PlanOf(options, control));
  CAISSON_ASSIGN(const os::UniqueFd network, os::OpenFile(options.network, O_RDONLY));
  Handover head{.count = plan.count,
                .inherited = plan.inherited,
                .program = plan.program,
                .control = plan.control,
                .landlock = plan.landlock,
                .first_task = plan.first_task,
                .last_task = plan.last_task,
                .arguments = static_cast<int>(options.arguments.size()),
                .variables = static_cast<int>(options.environment.size()),
                .instructions = static_cast<int>(options.filter.size()),
                .has_group = options.unified_group >= 0 ? 1 : 0};
  std::string words = WordsOf(options.arguments) + WordsOf(options.environment);
  std::vector<int> fds;
  for (int i = 0; i < plan.count; ++i) {
    if (kListenFd + i != plan.control) fds.push_back(plan.fds[static_cast<std::size_t>(i)]);
  }
  fds.push_back(network.get());
  if (options.unified_group >= 0) fds.push_back(options.unified_group);
  std::array<iovec, 3> parts{{{.iov_base = &head, .iov_len = sizeof head},
                              {.iov_base = const_cast<sock_filter*>(options.filter.data()),
                               .iov_len = options.filter.size_bytes()},
                              {.iov_base = words.data(), .iov_len = words.size()}}};
  const std::size_t size = sizeof head + options.filter.size_bytes() + words.size();
  if (size > kMaxHandover) return os::SyscallError("hand a machine over", EMSGSIZE);
  os::FdSpace<kMaxDescriptors + 2> space;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  space.Attach(message, fds);
  // From now on the kernel names the sender of each message.
  const int yes = 1;
  if (::setsockopt(control, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
      ::sendmsg(control, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    return os::SyscallError("hand a machine over to its container");
  }
  return {};
}

pid_t ParentOf(pid_t pid) {
  const auto text = os::ReadSmallFile("/proc/" + std::to_string(pid) + "/status");
  constexpr std::string_view kField = "\nPPid:\t";
  const std::size_t at = text ? text->find(kField) : std::string::npos;
  return at == std::string::npos ? 0 : std::atoi(text->c_str() + at + kField.size());
}

// The process says that it is there. The kernel says which one it is.
Result<os::ChildProcess> AwaitChildOf(pid_t init, int control) {
  Report report;
  iovec part{.iov_base = &report, .iov_len = sizeof report};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return Fail(errors::kJailUnavailable, "a container ended before its machine began");
  if (n != sizeof report) return os::SyscallError("hear from a machine that is made");
  if (report.error != 0) return Fail(Refused(report));
  ucred sender{};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
  }
  os::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, sender.pid, 0)));
  if (!pidfd.valid() || ParentOf(sender.pid) != init) {
    return Fail(errors::kJailUnavailable, "a container's first process has made no machine");
  }
  return os::ChildProcess(sender.pid, std::move(pidfd));
}

}  // namespace

Result<Prepared> Prepare(const BootOptions& options, const BuildRoot& build_root) {
  CAISSON_ASSIGN(os::FdPair control, MakeControl());
  CAISSON_ASSIGN(ChildPlan plan, PlanOf(options, control.second.get()));
  std::vector<std::string> words = options.arguments;
  std::vector<std::string> variables = options.environment;
  const std::vector<char*> arguments = os::ArgumentPointers(words);
  const std::vector<char*> environment = os::ArgumentPointers(variables);
  plan.arguments = arguments.data();
  plan.environment = environment.data();

  Prepared prepared;
  CAISSON_ASSIGN(prepared.process, CloneChild(options, plan));
  control.second.Reset();
  prepared.control = std::move(control.first);
  CAISSON_TRY(GiveRoot(prepared, options, build_root));
  return prepared;
}

Result<Prepared> PrepareIn(pid_t init, os::UniqueFd control, const BootOptions& options,
                           const BuildRoot& build_root) {
  CAISSON_TRY(HandOver(control.get(), options));
  Prepared prepared;
  CAISSON_ASSIGN(prepared.process, AwaitChildOf(init, control.get()));
  prepared.control = std::move(control);
  CAISSON_TRY(GiveRoot(prepared, options, build_root));
  return prepared;
}

Result<os::ChildProcess> Start(Prepared prepared, const Identity& identity) {
  std::string message = identity.host_name;
  message.push_back('\0');
  for (const auto& [path, content] : identity.files) {
    message.append(path).push_back('\0');
    message.append(content).push_back('\0');
  }
  if (message.size() > kMaxIdentity) return os::SyscallError("name a machine", EMSGSIZE);
  const ssize_t sent = ::send(prepared.control.get(), message.data(), message.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size())) return os::SyscallError("name a machine");
  CAISSON_ASSIGN(const bool more, AwaitReport(prepared.control.get()));
  if (more) return os::SyscallError("start the agent", EPROTO);
  return std::move(prepared.process);
}

}  // namespace caisson::machine::boot
