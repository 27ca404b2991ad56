// SPDX-License-Identifier: Apache-2.0
#include "control/template_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/client.h"
#include "base/foreign_text.h"
#include "errors/control.h"
#include "errors/machine.h"

namespace caisson::control {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{200};  // at a request to stop
constexpr std::size_t kMaxLine = 4096;

// Output as lines, each stream apart, at most so many bytes of it.
class LineLog {
 public:
  LineLog(const std::function<void(const TemplateLog&)>& log, std::size_t most)
      : log_(log), left_(most) {}

  void Say(std::string line, TemplateLog::Level level = TemplateLog::Level::kInfo) {
    log_({level, std::move(line)});
  }
  void Add(std::string& pending, std::string_view text) {
    pending += text;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = pending.find('\n', begin)) != std::string::npos;) {
      Line(std::string_view(pending).substr(begin, end - begin));
      begin = end + 1;
    }
    pending.erase(0, begin);
    if (pending.size() >= kMaxLine) Finish(pending);
  }
  void Finish(std::string& pending) {
    if (!pending.empty()) Line(pending);
    pending.clear();
  }

 private:
  void Line(std::string_view line) {
    if (is_full_) return;
    if (line.ends_with('\r')) line.remove_suffix(1);
    is_full_ = line.size() >= left_;
    if (is_full_) return Say("(there is more output, which is left out)");
    left_ -= line.size() + 1;
    Say(ShowForeignLine(line, kMaxLine));
  }

  const std::function<void(const TemplateLog&)>& log_;
  std::size_t left_;
  bool is_full_ = false;
};

std::unexpected<Status> Stopped() {
  return Fail(errors::kControlTemplateStopped, "the build was stopped");
}

Status FailedAt(const images::TemplateStep& step, const std::string& how) {
  return {.code = errors::kControlTemplateFailed,
          .message = fmt::format("line {}: {}", step.line, how),
          .span = {},
          .details = {}};
}

// One run of steps in a machine that is there.
class Steps {
 public:
  Steps(machine::Driver& driver, const TemplateBuild& build, LineLog& log, std::stop_token stop)
      : driver_(driver),
        build_(build),
        log_(log),
        stop_(std::move(stop)),
        deadline_(Clock::now() + build.time_limit) {}

  Result<void> Run() {
    const auto& steps = build_.file.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (stop_.stop_requested()) return Stopped();
      log_.Say(ShowForeignLine(fmt::format("Step {}/{}: {}", i + 1, steps.size(), steps[i].text),
                               kMaxLine));
      CAISSON_TRY(RunStep(steps[i]));
    }
    return {};
  }

 private:
  Result<void> RunStep(const images::TemplateStep& step) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) return Fail(FailedAt(step, "the time for the build is over"));
    agent::ExecRequest request;
    request.command.argv = step.arguments;
    request.command.env = step.environment;
    request.command.cwd = step.directory;
    request.timeout = left;
    CAISSON_ASSIGN(os::UniqueFd connection, driver_.Connect(build_.machine.id));
    CAISSON_ASSIGN(agent::Exec exec, agent::Exec::Start(std::move(connection), request));
    std::string output;
    std::string messages;
    for (;;) {
      if (stop_.stop_requested()) return Stopped();
      CAISSON_ASSIGN(const agent::ExecEvent event, exec.Next(kLook));
      using Kind = agent::ExecEvent::Kind;
      if (event.kind == Kind::kStdout) log_.Add(output, event.data);
      if (event.kind == Kind::kStderr) log_.Add(messages, event.data);
      if (event.kind != Kind::kExit && event.kind != Kind::kFailedToStart) continue;
      log_.Finish(output);
      log_.Finish(messages);
      return Judge(step, event);
    }
  }

  static Result<void> Judge(const images::TemplateStep& step, const agent::ExecEvent& event) {
    if (event.kind == agent::ExecEvent::Kind::kFailedToStart) {
      return Fail(FailedAt(step, "the command cannot be started: " + ShowForeignLine(event.data)));
    }
    if (event.timed_out) return Fail(FailedAt(step, "the time for the build is over"));
    if (event.signal != 0) {
      return Fail(FailedAt(step, fmt::format("the command was ended by signal {}", event.signal)));
    }
    if (event.exit_code == 0) return {};
    return Fail(
        FailedAt(step, fmt::format("the command ended with exit code {}", event.exit_code)));
  }

  machine::Driver& driver_;
  const TemplateBuild& build_;
  LineLog& log_;
  std::stop_token stop_;
  Clock::time_point deadline_;
};

// What virtual machines of its shape start from may not be there yet; nobody waits for an answer to
// a build.
Result<void> MakeMachine(machine::Driver& driver, const TemplateBuild& build, LineLog& log,
                         const std::stop_token& stop) {
  const auto deadline = Clock::now() + build.time_limit;
  for (bool is_first = true;; is_first = false) {
    const auto made = driver.Create(build.machine);
    if (made) return {};
    if (made.error().code != errors::kMachinePreparing || Clock::now() >= deadline) {
      return Fail(made.error());
    }
    if (is_first) log.Say("Wait for machines of this shape to be prepared");
    std::this_thread::sleep_for(kLook);
    if (stop.stop_requested()) return Stopped();
  }
}

Result<machine::Snapshot> BuildIn(machine::Driver& driver, const TemplateBuild& build, LineLog& log,
                                  const std::stop_token& stop) {
  CAISSON_TRY(Steps(driver, build, log, stop).Run());
  log.Say("Keep the disk");
  // Whoever is made from it has a shape of his own, and none of the build's processes.
  return driver.TakeSnapshot(build.machine.id, build.snapshot, machine::Extent::kFilesystem);
}

}  // namespace

Result<machine::Snapshot> BuildTemplate(machine::Driver& driver, const TemplateBuild& build,
                                        const std::function<void(const TemplateLog&)>& log,
                                        const std::stop_token& stop) {
  const machine::Capabilities capabilities = driver.capabilities();
  if (capabilities.snapshot == machine::Extent::kNone) {
    return Fail(errors::kControlTemplateFailed,
                fmt::format("the driver {} keeps no disks, so that it has no templates",
                            capabilities.driver));
  }
  LineLog lines(log, build.max_log_bytes);
  lines.Say(ShowForeignLine(fmt::format("From {}", build.file.from)));
  CAISSON_TRY(MakeMachine(driver, build, lines, stop));
  auto built = BuildIn(driver, build, lines, stop);
  const auto destroyed = driver.Destroy(build.machine.id);
  if (built && !destroyed) {
    (void)driver.RemoveSnapshot(build.snapshot);  // what failed is told
    built = Fail(destroyed.error());
  }
  if (!built) lines.Say(ShowForeignLine(built.error().message), TemplateLog::Level::kError);
  return built;
}

}  // namespace caisson::control
