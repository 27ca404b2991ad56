// SPDX-License-Identifier: Apache-2.0
#include "egress/packet_filter.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/foreign_text.h"
#include "egress/address.h"
#include "errors/egress.h"
#include "os/network_namespace.h"
#include "os/run_program.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

using Clock = std::chrono::steady_clock;
using os::NetlinkAttributes;
using os::NetlinkMessage;

constexpr std::size_t kSocketBuffer = 256u << 10;
// CTA_FILTER_F_CTA_IP_SRC of the kernel's own net/netfilter/nf_conntrack_netlink.c.
constexpr std::uint32_t kBySource = 1;
constexpr std::size_t kMaxAnswer = 256u << 10;

NetlinkMessage FilterMessage(unsigned type, std::uint16_t flags, std::uint8_t family) {
  NetlinkMessage message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags);
  return std::move(message.Append(nfgenmsg{.nfgen_family = family, .version = NFNETLINK_V0}));
}

NetlinkAttributes AttributesOf(std::string_view body) {
  return NetlinkAttributes(body.substr(std::min(sizeof(nfgenmsg), body.size())));
}

// A line that nft cannot take for a command: its complaint about it tells that all before is done.
std::string EndMark(std::uint64_t question) { return fmt::format("caisson_end_{}", question); }

// Up to the complaint about the mark; empty while that has not come whole.
std::optional<std::string> AnswerBefore(const std::string& said, const std::string& mark) {
  const std::size_t at = said.find(mark + "\n");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t error = said.rfind("Error:", at);
  std::string answer = said.substr(0, error == std::string::npos ? 0 : error);
  // What is left of the complaint before: its line of carets.
  answer.erase(0, std::min(answer.find_first_not_of(" ^\n"), answer.size()));
  return answer;
}

}  // namespace

Result<PacketFilter> PacketFilter::Open(int namespace_fd, const std::string& nft,
                                        std::chrono::milliseconds patience) {
  std::optional<os::NetlinkSocket> socket;
  CAISSON_TRY(os::InNetworkNamespace(namespace_fd, [&]() -> Result<void> {
    CAISSON_ASSIGN(socket, os::NetlinkSocket::Open(NETLINK_NETFILTER));
    return {};
  }));
  return PacketFilter(namespace_fd, nft, patience, *std::move(socket));
}

Result<void> PacketFilter::StartChild() {
  const std::string path = os::FindProgram(nft_);
  if (path.empty()) {
    return Fail(errors::kEgressFilterFailed,
                fmt::format("the program {} is not in PATH; install nftables", nft_));
  }
  // A socket, since writing to a pipe that nobody reads would be a signal.
  CAISSON_ASSIGN(os::FdPair input, os::MakeSocketPair(kSocketBuffer));
  CAISSON_ASSIGN(os::FdPair messages, os::MakePipe());
  const auto spawn = [&]() -> Result<void> {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.first.get(), 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, messages.second.get(), 2);
    // No home: it would keep what it was told in a history there.
    std::array words = {std::string("nft"), std::string("-i")};
    std::array variables = {std::string("HOME=/nonexistent"), std::string("TERM=dumb"),
                            std::string("LC_ALL=C"),
                            std::string("PATH=/usr/sbin:/usr/bin:/sbin:/bin")};
    std::array<char*, 3> arguments = {words[0].data(), words[1].data(), nullptr};
    std::array<char*, 5> environment = {variables[0].data(), variables[1].data(),
                                        variables[2].data(), variables[3].data(), nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, path.c_str(), &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return os::SyscallError("execute " + path, error);
    child_ =
        os::ChildProcess(pid, os::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
    return {};
  };
  if (auto started = os::InNetworkNamespace(namespace_fd_, spawn); !started) {
    return Fail(errors::kEgressFilterFailed, "nft cannot be started: " + started.error().message);
  }
  to_child_ = std::move(input.second);
  from_child_ = std::move(messages.first);
  ::fcntl(to_child_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(from_child_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

void PacketFilter::StopChild() {
  child_ = {};  // killed and reaped: what it had begun is done or will not be
  to_child_.Reset();
  from_child_.Reset();
}

// Writing and reading at once: nft may complain at length before it has read all.
Result<std::string> PacketFilter::Ask(const std::string& commands) {
  if (!child_.running()) CAISSON_TRY(StartChild());
  const std::string mark = EndMark(++questions_);
  const std::string text = commands + "\n" + mark + "\n";
  std::size_t written = 0;
  std::string said;
  const auto deadline = Clock::now() + patience_;
  for (;;) {
    if (auto answer = AnswerBefore(said, mark)) return *std::move(answer);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    std::array<pollfd, 2> events = {{{from_child_.get(), POLLIN, 0},
                                     {written < text.size() ? to_child_.get() : -1, POLLOUT, 0}}};
    if (left.count() <= 0 || said.size() > kMaxAnswer) {
      return Fail(errors::kEgressFilterFailed, "nft did not answer in time");
    }
    if (::poll(events.data(), events.size(), static_cast<int>(left.count())) < 0) continue;
    if (events[1].revents != 0) {
      const ssize_t count =
          ::send(to_child_.get(), text.data() + written, text.size() - written, MSG_NOSIGNAL);
      if (count > 0) written += static_cast<std::size_t>(count);
      if (count < 0 && errno != EAGAIN && errno != EINTR) {
        return Fail(errors::kEgressFilterFailed, "nft does not read its commands");
      }
    }
    if (events[0].revents != 0) {
      std::array<char, 65536> buffer;
      const ssize_t count = ::read(from_child_.get(), buffer.data(), buffer.size());
      if (count == 0) return Fail(errors::kEgressFilterFailed, "nft ended without an answer");
      if (count > 0) said.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
}

Result<std::uint32_t> PacketFilter::Generation() {
  std::uint32_t generation = 0;
  bool found = false;
  const int error = socket_.Request(
      FilterMessage(NFT_MSG_GETGEN, 0, AF_UNSPEC), [&](std::uint16_t, std::string_view body) {
        found = AttributesOf(body).Read(NFTA_GEN_ID, generation) || found;
      });
  if (error == 0 && found) return generation;
  return Fail(errors::kEgressFilterUnknown,
              "the kernel does not tell the generation of the packet filter: " +
                  os::ErrnoText(error == 0 ? EPROTO : error));
}

Result<void> PacketFilter::Commit(const std::string& commands) {
  if (commands.find('\n') != std::string::npos) {
    return Fail(errors::kEgressFilterFailed, "a transaction must be one line; please report this");
  }
  CAISSON_ASSIGN(const std::uint32_t before, Generation());
  for (int attempt = 0;; ++attempt) {
    const auto answer = Ask(commands);
    // A child that did not answer is ended first: it must not commit behind our back.
    if (!answer) StopChild();
    CAISSON_ASSIGN(const std::uint32_t after, Generation());
    if (after != before) return {};
    StopChild();
    if (!answer && attempt == 0) continue;
    if (!answer) return Fail(answer.error());
    Status status{
        errors::kEgressFilterFailed, "nft changed nothing; the rules stand as they were", {}, {}};
    status.details = ShowForeign(*answer);
    return Fail(std::move(status));
  }
}

Result<std::optional<PacketFilter::Count>> PacketFilter::ReadCounter(const std::string& table,
                                                                     const std::string& name) {
  NetlinkMessage message = FilterMessage(NFT_MSG_GETOBJ, 0, NFPROTO_INET);
  message.PutText(NFTA_OBJ_TABLE, table).PutText(NFTA_OBJ_NAME, name);
  message.Put(NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
  std::optional<Count> count;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    const NetlinkAttributes data(AttributesOf(body).Find(NFTA_OBJ_DATA));
    Count read;
    if (data.Read(NFTA_COUNTER_PACKETS, read.packets) &&
        data.Read(NFTA_COUNTER_BYTES, read.bytes)) {
      count = {.packets = be64toh(read.packets), .bytes = be64toh(read.bytes)};
    }
  });
  if (error == 0 || error == ENOENT) return count;
  return Fail(errors::kEgressFilterFailed,
              "read a counter of the packet filter: " + os::ErrnoText(error));
}

Result<void> PacketFilter::ForgetFlows(std::uint32_t address) {
  NetlinkMessage message(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, 0);
  message.Append(nfgenmsg{.nfgen_family = AF_INET, .version = NFNETLINK_V0});
  const std::size_t tuple = message.Begin(CTA_TUPLE_ORIG);
  const std::size_t ip = message.Begin(CTA_TUPLE_IP);
  message.Put(CTA_IP_V4_SRC, htonl(address)).End(ip).End(tuple);
  const std::size_t filter = message.Begin(CTA_FILTER);
  message.Put(CTA_FILTER_ORIG_FLAGS, kBySource)
      .Put(CTA_FILTER_REPLY_FLAGS, std::uint32_t{0})
      .End(filter);
  const int error = socket_.Request(message);
  if (error == 0 || error == ENOENT) return {};
  return os::SyscallError("forget the connections of " + FormatAddress(address), error);
}

Result<bool> PacketFilter::HasTable(const std::string& table) {
  NetlinkMessage message = FilterMessage(NFT_MSG_GETTABLE, 0, NFPROTO_INET);
  message.PutText(NFTA_TABLE_NAME, table);
  const int error = socket_.Request(message);
  if (error == 0 || error == ENOENT) return error == 0;
  return Fail(errors::kEgressFilterFailed,
              "look for a table of the packet filter: " + os::ErrnoText(error));
}

}  // namespace caisson::egress
