// SPDX-License-Identifier: Apache-2.0
// sandbox shell: this terminal joined to a managed process with a terminal of its own.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "api/text.h"
#include "cli/sandbox.h"
#include "errors/cli.h"
#include "errors/http.h"
#include "os/fd.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

// The terminal gives every key as it is, until this goes.
class RawTerminal {
 public:
  RawTerminal() {
    is_raw_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!is_raw_) return;
    termios raw = before_;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (is_raw_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

 private:
  termios before_{};
  bool is_raw_ = false;
};

json::Object WindowSize() {
  winsize size{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {{"rows", 24}, {"cols", 80}};
  }
  return {{"rows", std::int64_t{size.ws_row}}, {"cols", std::int64_t{size.ws_col}}};
}

// Keys and window sizes to the process, until `ended` can be read.
void SendKeys(ServiceClient& client, const std::string& process, int ended) {
  json::Object size = WindowSize();
  std::array<char, 4096> keys;
  bool is_open = true;
  while (true) {
    std::array<pollfd, 2> ready{
        {{.fd = is_open ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0},
         {.fd = ended, .events = POLLIN, .revents = 0}}};
    // Looks for a new size now and then, which needs no signal handler.
    if (poll(ready.data(), ready.size(), 250) < 0 && errno != EINTR) return;
    if (ready[1].revents != 0) return;
    if (json::Object now = WindowSize(); !(now == size)) {
      size = now;
      static_cast<void>(client.Call("POST", process + "/resize", std::move(now)));
    }
    if (ready[0].revents == 0) continue;
    const ssize_t got = read(STDIN_FILENO, keys.data(), keys.size());
    is_open = got > 0;
    const std::string data = is_open ? std::string(keys.data(), static_cast<std::size_t>(got))
                                     : "\x04";  // the end of a terminal's input
    static_cast<void>(
        client.Call("POST", process + "/input", json::Object{{"data_base64", api::Base64(data)}}));
  }
}

Result<void> Show(std::string_view bytes) {
  if (os::WriteAll(STDOUT_FILENO, bytes) == 0) return {};
  return Fail(errors::kCliFileUnwritable, "the terminal has gone");
}

Result<ExitCode> Join(ServiceClient& client, ServiceClient& keys, const std::string& process) {
  const RawTerminal raw;
  CAISSON_ASSIGN(os::FdPair ended, os::MakePipe());
  std::jthread sender([&] { SendKeys(keys, process, ended.first.get()); });
  std::optional<int> exit_code;
  auto streamed = client.Stream(
      "GET", process + "/connect?after=0", {}, [&](const json::Value& event) -> Result<bool> {
        if (const auto data = api::FromBase64(TextOf(event, "data_base64"))) {
          CAISSON_TRY(Show(*data));
        }
        if (TextOf(event, "type") != "exit") return true;
        exit_code = static_cast<int>(NumberOf(event, "exit_code"));
        return false;
      });
  ended.second.Reset();
  sender.join();
  CAISSON_TRY(streamed);
  if (!exit_code) return Fail(errors::kHttpBroken, "the terminal was lost; its shell lives on");
  return static_cast<ExitCode>(*exit_code & 0xFF);
}

}  // namespace

Result<ExitCode> SandboxShell(const SandboxArguments& arguments, ServiceClient& client, Console&) {
  CAISSON_ASSIGN(ServiceClient keys, ServiceClient::Make(arguments.connection));
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.at(0)));
  json::Object body{{"pty", WindowSize()}};
  if (!arguments.command.empty()) {
    body.Set("cmd", arguments.command.front());
    body.Set("args", json::Array(arguments.command.begin() + 1, arguments.command.end()));
  }
  CAISSON_ASSIGN(const json::Value started,
                 client.Call("POST", path + "/processes", std::move(body)));
  const std::string process =
      path + "/processes/" + http::PercentEncode(TextOf(started, "process_id"));
  auto code = Join(client, keys, process);
  // Forgets it, or ends what was left behind.
  static_cast<void>(keys.Call("DELETE", process + "?grace_ms=500"));
  return code;
}

}  // namespace caisson::cli
