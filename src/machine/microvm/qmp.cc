// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/qmp.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "errors/machine.h"
#include "json/reader.h"
#include "json/writer.h"
#include "os/fd_passing.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLine = 1u << 20;
constexpr std::pair<std::int64_t, std::int64_t> kFilesSince{8, 2};

std::unexpected<Status> Failed(const std::string& what) {
  return Fail(errors::kMachineVmFailed, what);
}

std::string TextOf(const json::Value* value) {
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

std::int64_t NumberOf(const json::Value* value) {
  return value != nullptr && value->is_int() ? value->as_int() : 0;
}

void Sleep(milliseconds time) {
  const timespec wait{.tv_sec = 0, .tv_nsec = time.count() * 1'000'000};
  ::nanosleep(&wait, nullptr);
}

}  // namespace

Result<std::string> Qmp::ReadLine(Clock::time_point deadline) {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > kMaxLine) return Failed("QEMU's monitor says too much at once");
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd event{socket_.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&event, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Failed("QEMU's monitor does not answer");
    std::array<char, 4096> piece{};
    const ssize_t n = ::read(socket_.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed("QEMU has ended");
    buffer_.append(piece.data(), static_cast<std::size_t>(n));
  }
}

void Qmp::Forget() {
  std::array<char, 4096> piece{};
  for (int i = 0; i < 256; ++i) {
    const ssize_t n = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (n <= 0) return;
    buffer_.append(piece.data(), static_cast<std::size_t>(n));
    // Of a line that has not ended the rest is to come.
    const std::size_t last = buffer_.rfind('\n');
    if (last != std::string::npos) buffer_.erase(0, last + 1);
    if (buffer_.size() > kMaxLine) return;
  }
}

Result<void> Qmp::Begin(milliseconds patience) {
  CAISSON_ASSIGN(const std::string greeting, ReadLine(Clock::now() + patience));
  const auto read = json::Read(greeting, {.max_bytes = kMaxLine, .max_depth = 16});
  const json::Value* at = read ? &*read : nullptr;
  for (const char* part : {"QMP", "version", "qemu"}) {
    if (at != nullptr) at = at->is_object() ? at->Find(part) : nullptr;
  }
  if (at == nullptr || !at->is_object()) return Failed("QEMU's monitor does not tell its version");
  takes_files_ = std::pair(NumberOf(at->Find("major")), NumberOf(at->Find("minor"))) >= kFilesSince;
  CAISSON_TRY(Do("qmp_capabilities", {}, patience));
  return {};
}

Result<std::string> Qmp::MigrationUri(const std::string& path, int open_flags) {
  if (takes_files_) return "file:" + path;
  CAISSON_ASSIGN(const os::UniqueFd file, os::OpenFile(path, open_flags));
  const char* const name = "state";  // another one of this name is closed
  CAISSON_TRY(Do("getfd", json::Object{{"fdname", name}}, std::chrono::seconds(10), file.get()));
  return std::string("fd:") + name;
}

Result<json::Value> Qmp::Do(std::string_view command, json::Object arguments, milliseconds patience,
                            std::optional<int> fd) {
  CAISSON_ASSIGN(std::string text,
                 json::Write(json::Object{{"execute", command},
                                          {"arguments", json::Value(std::move(arguments))}}));
  text += '\n';
  iovec piece{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  os::FdSpace<1> along;
  if (fd) along.Attach(message, std::span(&*fd, 1));
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return Failed("QEMU has ended");
  }
  const auto deadline = Clock::now() + patience;
  for (;;) {
    CAISSON_ASSIGN(const std::string line, ReadLine(deadline));
    const auto answer = json::Read(line, {.max_bytes = kMaxLine, .max_depth = 16});
    if (!answer || !answer->is_object()) return Failed("QEMU's monitor says what is no JSON");
    if (const json::Value* value = answer->Find("return")) return *value;
    if (const json::Value* error = answer->Find("error")) {
      return Failed(std::string(command) + ": " + TextOf(error->Find("desc")));
    }
  }
}

Result<void> Qmp::AwaitMigration(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    CAISSON_ASSIGN(const json::Value state, Do("query-migrate"));
    const std::string status = TextOf(state.Find("status"));
    if (status == "completed") return {};
    if (status == "failed" || status == "cancelled") {
      return Failed("QEMU cannot save the machine: " + TextOf(state.Find("error-desc")));
    }
    if (Clock::now() > deadline) return Failed("QEMU does not come to an end with saving");
    Sleep(milliseconds(1));
  }
}

Result<void> Qmp::AwaitLoaded(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    CAISSON_ASSIGN(const json::Value state, Do("query-status"));
    if (TextOf(state.Find("status")) != "inmigrate") return {};
    CAISSON_ASSIGN(const json::Value loading, Do("query-migrate"));
    if (TextOf(loading.Find("status")) == "failed") {
      return Failed("QEMU cannot load the machine: " + TextOf(loading.Find("error-desc")));
    }
    if (Clock::now() > deadline) return Failed("QEMU does not come to an end with loading");
    Sleep(milliseconds(1));
  }
}

}  // namespace caisson::machine::microvm
