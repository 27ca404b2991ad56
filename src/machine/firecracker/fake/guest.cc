// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/fake/guest.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "agent/channel_pump.h"
#include "agent/frames.h"
#include "agent/guest/loop.h"
#include "agent/messages.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/firecracker/calls.h"
#include "machine/firecracker/fake/control.h"

namespace caisson::machine::firecracker::fake {

struct Guest::Shared {
  std::uint32_t size = 0;
  char text[16 << 10] = {};
};

namespace {

using agent::FrameType;
using agent::guest::EventSource;
using agent::guest::Loop;

constexpr std::size_t kWordOnDisk = 64;  // in front of any file system

struct Beginning {
  char socket[108] = {};
  char disk[108] = {};
  std::uint32_t port = 0;
};

// What a machine knows.
struct Memory {
  std::string word, host_name;
  std::int64_t renewals = 0;
  bool frozen = false;
};

std::string ToText(const Memory& memory) {
  return json::Write(json::Object{{"word", memory.word},
                                  {"host_name", memory.host_name},
                                  {"renewals", memory.renewals},
                                  {"frozen", memory.frozen}})
      .value_or("");
}

Memory FromText(const std::string& text) {
  Memory memory;
  const auto value = json::Read(text);
  if (!value || !value->is_object()) return memory;
  memory.word = value->Find("word")->as_string();
  memory.host_name = value->Find("host_name")->as_string();
  memory.renewals = value->Find("renewals")->as_int();
  memory.frozen = value->Find("frozen")->as_bool();
  return memory;
}

class AgentOfFewWords {
 public:
  using Store = std::function<void(const std::string&)>;
  AgentOfFewWords(const Beginning& begin, Memory memory, Store store)
      : disk_(begin.disk), port_(begin.port), memory_(std::move(memory)), store_(std::move(store)) {
    Remember();
    Listen(begin.socket);
    sigset_t reset;
    ::sigemptyset(&reset);
    ::sigaddset(&reset, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &reset, nullptr);
    reset_ = std::make_unique<EventSource>(
        loop_, os::UniqueFd(::signalfd(-1, &reset, SFD_NONBLOCK | SFD_CLOEXEC)),
        [this](std::uint32_t) {
          signalfd_siginfo info{};
          while (::read(reset_->fd(), &info, sizeof info) > 0) continue;
          Forget();
        });
    reset_->Want(EPOLLIN);
  }
  [[noreturn]] void Run() { loop_.Run(); }
  bool listens() const { return listener_ != nullptr; }

 private:
  struct Channel {
    std::unique_ptr<EventSource> source;
    agent::FrameReader reader;
  };

  void Remember() { store_(ToText(memory_)); }

  void Listen(const char* path) {
    os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::string_view(path).copy(name.sun_path, sizeof name.sun_path - 1);
    if (!socket.valid() ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
        ::listen(socket.get(), 16) != 0) {
      return;
    }
    listener_ = std::make_unique<EventSource>(loop_, std::move(socket), [this](std::uint32_t) {
      os::UniqueFd stream(
          ::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (stream.valid()) Shake(std::move(stream));
    });
    listener_->Want(EPOLLIN);
  }

  // "CONNECT PORT", which comes whole.
  void Shake(os::UniqueFd stream) {
    std::array<char, 32> bytes{};
    ssize_t n = 0;
    for (int i = 0; i < 1000 && n <= 0; ++i) {
      n = ::read(stream.get(), bytes.data(), bytes.size());
      if (n <= 0) ::usleep(1'000);
    }
    if (std::string_view(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))) !=
        "CONNECT " + std::to_string(port_) + "\n") {
      return;
    }
    if (ReadControl("silent_guest")) return;
    (void)!::write(stream.get(), "OK 1073741824\n", 14);
    if (dead_ < ReadNumber("dead_streams")) {
      ++dead_;
      lost_.push_back(std::move(stream));
      return;
    }
    if (pump_ != nullptr) {
      loop_.Dispose(std::make_unique<agent::guest::Retired<agent::ChannelPump>>(std::move(pump_)));
    }
    stream_.Reset(::fcntl(stream.get(), F_DUPFD_CLOEXEC, 3));
    pump_ = std::make_unique<agent::ChannelPump>(
        loop_, agent::Channels::Side::kAgent, std::move(stream),
        agent::PumpCallbacks{.on_greeting = [this](std::uint64_t) { sealed_ = true; },
                             .on_open = [this](os::UniqueFd fd) { Serve(std::move(fd)); },
                             .on_broken = {}},
        agent::StreamKind::kConnection);
  }

  // The other end is not told: the stream stays open, and nobody reads it.
  void Forget() {
    if (pump_ == nullptr) return;
    channels_.clear();
    loop_.Dispose(std::make_unique<agent::guest::Retired<agent::ChannelPump>>(std::move(pump_)));
    lost_.push_back(std::move(stream_));
  }

  void Serve(os::UniqueFd fd) {
    channels_.emplace_back();
    Channel& channel = channels_.back();
    channel.source = std::make_unique<EventSource>(
        loop_, std::move(fd), [this, &channel](std::uint32_t) { Read(channel); });
    channel.source->Want(EPOLLIN);
  }

  void Read(Channel& channel) {
    const auto room = channel.reader.Room(4096);
    const ssize_t n = ::read(channel.source->fd(), room.data(), room.size());
    if (n < 0 && errno == EAGAIN) return;
    agent::Frame frame;
    if (n > 0) {
      channel.reader.Filled(static_cast<std::size_t>(n));
      if (channel.reader.Next(frame) != agent::FrameReader::State::kFrame) return;
      Answer(channel.source->fd(), frame);
    }
    ::shutdown(channel.source->fd(), SHUT_RDWR);
    loop_.Retire(channel.source);
  }

  static void Say(int fd, FrameType type, const std::string& payload) {
    const agent::FrameHeader header = agent::MakeFrameHeader(type, payload.size());
    std::string text(header.bytes, agent::kFrameHeaderBytes);
    text += payload;
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }

  void Answer(int fd, const agent::Frame& frame) {
    if (frame.type == FrameType::kRenew) {
      const auto request = agent::Decode<agent::RenewRequest>(frame.payload);
      if (!request) return Refuse(fd, "the request is malformed");
      if (!request->host_name.empty()) memory_.host_name = request->host_name;
      ++memory_.renewals;
      memory_.frozen = false;
      sealed_ = false;
      Remember();
      return Say(fd, FrameType::kOk, "");
    }
    // It has its disk already, whatever that is: there is nothing to mount.
    if (frame.type == FrameType::kMountDisk) return Say(fd, FrameType::kOk, "");
    if (sealed_) return Refuse(fd, "this machine was copied, and is not renewed yet");
    switch (frame.type) {
      case FrameType::kPing:
        return Say(fd, FrameType::kOk, "");
      case FrameType::kQuiesce:
      case FrameType::kThaw:
        memory_.frozen = frame.type == FrameType::kQuiesce;
        Remember();
        return Say(fd, FrameType::kOk, "");
      case FrameType::kGrowDisk: {
        const auto request = agent::Decode<agent::GrowDiskRequest>(frame.payload);
        struct stat disk{};
        if (!request || ::stat(disk_.c_str(), &disk) != 0 ||
            static_cast<std::uint64_t>(disk.st_size) < request->bytes) {
          return Refuse(fd, "the disk is smaller than that");
        }
        return Say(fd, FrameType::kOk, "");
      }
      case FrameType::kExec:
        return Execute(fd, frame);
      default:
        return Refuse(fd, "this agent knows few words");
    }
  }

  static void Refuse(int fd, const char* why) {
    Say(fd, FrameType::kFailed,
        agent::Encode(agent::Failure{.kind = agent::FailureKind::kBadRequest, .message = why}));
  }

  void Execute(int fd, const agent::Frame& frame) {
    const auto request = agent::Decode<agent::ExecRequest>(frame.payload);
    if (!request || request->command.argv.empty()) return Refuse(fd, "the request is malformed");
    const auto& words = request->command.argv;
    const std::string word = words.size() > 1 ? words[1] : "";
    std::string out;
    if (words[0] == "remember") {
      memory_.word = word;
      Remember();
    } else if (words[0] == "recall") {
      out = memory_.word;
    } else if (words[0] == "identity") {
      out = memory_.host_name;
    } else if (words[0] == "renewals") {
      out = std::to_string(memory_.renewals);
    } else if (words[0] == "frozen") {
      out = memory_.frozen ? "yes" : "no";
    } else if (words[0] == "python3" && words.back() == "print(1)") {
      out = "1\n";
    } else if (words[0] == "write" || words[0] == "read") {
      out = OnDisk(words[0] == "write", word);
    } else {
      return Refuse(fd, "there is no such command");
    }
    Say(fd, FrameType::kStarted, agent::Encode(agent::Started{.pid = 7}));
    if (!out.empty()) Say(fd, FrameType::kStdout, out);
    Say(fd, FrameType::kExit, agent::Encode(agent::ExitReport{}));
  }

  std::string OnDisk(bool write, const std::string& word) const {
    const os::UniqueFd disk(::open(disk_.c_str(), O_RDWR | O_CLOEXEC));
    std::array<char, kWordOnDisk> bytes{};
    if (!disk.valid()) return "";
    if (!write) {
      (void)!::pread(disk.get(), bytes.data(), bytes.size() - 1, 0);
      return bytes.data();
    }
    word.copy(bytes.data(), bytes.size() - 1);
    (void)!::pwrite(disk.get(), bytes.data(), bytes.size(), 0);
    return "";
  }

  Loop loop_;
  const std::string disk_;
  const std::uint32_t port_;
  Memory memory_;
  const Store store_;
  std::unique_ptr<EventSource> listener_;
  std::unique_ptr<EventSource> reset_;
  std::unique_ptr<agent::ChannelPump> pump_;
  os::UniqueFd stream_;  // of the pump, once more
  std::list<os::UniqueFd> lost_;
  std::list<Channel> channels_;
  std::int64_t dead_ = 0;
  bool sealed_ = true;
};

}  // namespace

Guest Guest::Make() {
  Guest guest;
  void* const place =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) std::abort();
  guest.shared_ = new (place) Shared();
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  guest.pid_ = ::fork();
  guest.control_.Reset(ends[guest.pid_ == 0 ? 1 : 0]);
  ::close(ends[guest.pid_ == 0 ? 0 : 1]);
  if (guest.pid_ != 0) return guest;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Beginning begin;
  if (::read(guest.control_.get(), &begin, sizeof begin) != sizeof begin) ::_exit(0);
  Shared& shared = *guest.shared_;
  AgentOfFewWords words(begin, FromText(std::string(shared.text, shared.size)),
                        [&shared](const std::string& text) {
                          shared.size = static_cast<std::uint32_t>(text.size());
                          text.copy(shared.text, sizeof shared.text);
                        });
  const char answer = words.listens() ? 'y' : 'n';
  if (::write(guest.control_.get(), &answer, 1) != 1 || answer != 'y') ::_exit(1);
  words.Run();
}

std::string Guest::Begin(const json::Object& resources, const std::string& memory) {
  Beginning begin;
  const json::Value* vsock = resources.Find("/vsock");
  const json::Value* disk = resources.Find("/drives/disk");
  if (vsock == nullptr || disk == nullptr) return "the machine has no vsock or no disk";
  vsock->Find("uds_path")->as_string().copy(begin.socket, sizeof begin.socket - 1);
  disk->Find("path_on_host")->as_string().copy(begin.disk, sizeof begin.disk - 1);
  begin.port = kAgentPort;
  shared_->size = static_cast<std::uint32_t>(std::min(memory.size(), sizeof shared_->text));
  memory.copy(shared_->text, shared_->size);
  char answer = 'n';
  if (::write(control_.get(), &begin, sizeof begin) != sizeof begin ||
      ::read(control_.get(), &answer, 1) != 1 || answer != 'y') {
    return "Cannot create the vsock device: Error binding to the host-side Unix socket: Address in "
           "use (os error 98)";
  }
  return "";
}

void Guest::Pause() const {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void Guest::Resume() const {
  if (std::exchange(reset_, false)) ::kill(pid_, SIGUSR1);
  ::kill(pid_, SIGCONT);
}

std::string Guest::Memory() const { return {shared_->text, shared_->size}; }

}  // namespace caisson::machine::firecracker::fake
