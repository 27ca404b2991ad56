// SPDX-License-Identifier: Apache-2.0
#include "control/warm_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "agent/client.h"
#include "base/foreign_text.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{100};       // at a request to stop
constexpr std::size_t kMostKept = 1024;  // of what it wrote last, for the message
constexpr std::size_t kMostShown = 200;  // of that

std::string HowItEnded(std::optional<std::int32_t> exit_code, std::optional<std::int32_t> signal) {
  if (signal.value_or(0) != 0) return fmt::format("was ended by signal {}", *signal);
  return fmt::format("ended with exit code {}", exit_code.value_or(-1));
}

// Looks for one line in a stream that comes in pieces; keeps no more of a line than it must.
class LineFinder {
 public:
  explicit LineFinder(std::string_view wanted) : wanted_(wanted) {}
  bool Add(std::string_view piece) {
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t end = piece.find('\n', begin);
      const std::string_view part = piece.substr(begin, end == piece.npos ? end : end - begin);
      // What is longer than the line and its carriage return is another one.
      line_.append(part.substr(0, wanted_.size() + 2 - std::min(line_.size(), wanted_.size() + 2)));
      if (end == std::string_view::npos) return false;
      std::string_view line = line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line == wanted_) return true;
      line_.clear();
      begin = end + 1;
    }
    return false;
  }

 private:
  std::string_view wanted_;
  std::string line_;
};

std::unexpected<Status> Failed(const Warm& warm, const std::string& how, std::string_view last) {
  std::string text =
      fmt::format("the warm process {} {}", ShowForeignLine(warm.command, kMostShown), how);
  while (last.ends_with('\n') || last.ends_with('\r')) last.remove_suffix(1);
  last = last.substr(last.find_last_of('\n') + 1);
  if (!last.empty()) text += "; it wrote last: " + ShowForeignLine(last, kMostShown);
  return Fail(errors::kControlWarmFailed, std::move(text));
}

Result<void> AwaitLine(agent::ProcessEvents& events, const Warm& warm,
                       const std::stop_token& stop) {
  const auto deadline = Clock::now() + std::chrono::seconds(warm.timeout_seconds);
  LineFinder line(warm.ready);
  std::string last;
  while (true) {
    if (stop.stop_requested()) {
      return Fail(errors::kControlDraining, "the service is shutting down");
    }
    if (Clock::now() >= deadline) {
      return Failed(warm,
                    fmt::format("has not written its ready line within {} s", warm.timeout_seconds),
                    last);
    }
    CAISSON_ASSIGN(const auto event, events.Next(kLook));
    if (!event) return Failed(warm, "cannot be heard any more", last);
    switch (event->type) {
      case agent::EventType::kData:
        last += event->data;
        if (last.size() > kMostKept) last.erase(0, last.size() - kMostKept);
        if (event->stream == agent::OutputStream::kStdout && line.Add(event->data)) return {};
        break;
      case agent::EventType::kExit:
        return Failed(warm, HowItEnded(event->exit_code, event->signal), last);
      case agent::EventType::kError:
        return Failed(warm, "wrote more than is kept before its ready line", last);
      case agent::EventType::kHeartbeat:
        break;
    }
  }
}

}  // namespace

std::map<std::string, std::string> CommandEnvironment(const store::Sandbox& sandbox) {
  std::map<std::string, std::string> all = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", "/root"},
      {"USER", "root"},
      {"LOGNAME", "root"},
      {"SHELL", "/bin/bash"},
      {"LANG", "C.UTF-8"},
      {"HOSTNAME", sandbox.name}};
  for (const auto& [name, value] : sandbox.environment) all[name] = value;
  for (const auto& [name, value] : sandbox.envs) all[name] = value;
  return all;
}

std::string CommandDirectory(const store::Sandbox& sandbox) {
  return sandbox.directory.empty() ? "/root" : sandbox.directory;
}

Result<std::string> StartWarmProcess(machine::Driver& driver, const store::Sandbox& sandbox,
                                     const Warm& warm, const std::stop_token& stop) {
  agent::Command command;
  command.argv.push_back(warm.command);
  command.argv.insert(command.argv.end(), warm.args.begin(), warm.args.end());
  command.env = CommandEnvironment(sandbox);
  for (const auto& [name, value] : warm.env) command.env[name] = value;
  command.cwd = warm.cwd.empty() ? CommandDirectory(sandbox) : warm.cwd;
  CAISSON_ASSIGN(os::UniqueFd connection, driver.Connect(sandbox.id));
  const auto started = agent::StartProcess(std::move(connection), command);
  if (!started) return Failed(warm, "could not be started: " + started.error().message, "");
  if (warm.ready.empty()) return started->process_id;
  CAISSON_ASSIGN(os::UniqueFd listening, driver.Connect(sandbox.id));
  CAISSON_ASSIGN(auto events,
                 agent::ProcessEvents::Connect(std::move(listening),
                                               {.process_id = started->process_id, .after = 0}));
  CAISSON_TRY(AwaitLine(events, warm, stop));
  return started->process_id;
}

Result<void> CheckWarmProcess(machine::Driver& driver, const store::Sandbox& sandbox) {
  CAISSON_ASSIGN(os::UniqueFd connection, driver.Connect(sandbox.id));
  CAISSON_ASSIGN(const auto view, agent::GetProcess(std::move(connection), sandbox.warm_process));
  if (!view.leader_exited) return {};
  return Fail(errors::kControlWarmFailed,
              "the warm process of a waiting machine " + HowItEnded(view.exit_code, view.signal));
}

}  // namespace caisson::control
