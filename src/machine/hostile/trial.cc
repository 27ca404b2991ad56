// SPDX-License-Identifier: Apache-2.0
#include "machine/hostile/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "agent/client.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::machine::hostile {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kNeighbour = "caisson-trial-neighbour";
constexpr const char* kVictim = "caisson-trial-victim";
constexpr const char* kMark = "done: ";
constexpr std::size_t kMostOutput = 2u << 20;  // of a flood, its begin and its end

// What a block's script has and a program has not.
std::string Shim(std::string_view source, const std::string& document) {
  return "import json, os\n"
         "documents = [json.loads(" +
         json::Quote(document) +
         ")]\n"
         "documents[0]['armed'] = True\n"
         "def done(result=None, final=True, *, _write=os.write, _dumps=json.dumps):\n"
         "  try: text = _dumps(result)\n"
         "  except (TypeError, ValueError, RecursionError): text = '{\"unwritable\": true}'\n"
         "  data = ('\\n" +
         kMark +
         "' + text + '\\n').encode()\n"
         "  while data: data = data[_write(1, data):]\n"
         "def debug(*values): print(*values)\n"
         "del json, os\n"
         "exec(compile(" +
         json::Quote(std::string(source)) + ", 'attack', 'exec'))\n";
}

struct Ran {
  std::optional<Status> failure;  // the machine, or the way to it, is lost
  std::string output;
  int exit_code = -1;
  int signal = 0;
  bool timed_out = false;

  bool succeeded() const { return !failure && !timed_out && signal == 0 && exit_code == 0; }
  std::string ToText() const {
    if (failure) return "the machine was lost: " + failure->message;
    if (timed_out) return "its time was up";
    if (signal != 0) return fmt::format("was killed by signal {}", signal);
    return fmt::format("exited with {}", exit_code);
  }
};

Ran RunPython(Driver& driver, const std::string& id, const std::string& program,
              milliseconds timeout) {
  Ran ran;
  auto connection = driver.Connect(id);
  if (!connection) return {.failure = connection.error(), .output = {}};
  agent::ExecRequest request;
  request.command.argv = {"python3", "-Ic", program};  // with the image's libraries
  request.command.env = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                         {"HOME", "/root"},
                         {"LC_ALL", "C.UTF-8"}};
  request.timeout = timeout;
  auto exec = agent::Exec::Start(*std::move(connection), request);
  if (!exec) return {.failure = exec.error(), .output = {}};
  // An agent that was killed or starved tells nothing: the connection ends, or this does.
  const auto until = Clock::now() + timeout + milliseconds(20'000);
  while (Clock::now() < until) {
    auto event = exec->Next(milliseconds(1'000));
    if (!event) {
      ran.failure = event.error();
      return ran;
    }
    using Kind = agent::ExecEvent::Kind;
    if (event->kind == Kind::kStdout || event->kind == Kind::kStderr) {
      ran.output += event->data;
      if (ran.output.size() > kMostOutput) ran.output.erase(kMostOutput / 4, kMostOutput / 2);
    } else if (event->kind == Kind::kFailedToStart) {
      ran.output += event->data;
      ran.exit_code = 127;
      return ran;
    } else if (event->kind == Kind::kExit) {
      ran.exit_code = event->exit_code;
      ran.signal = event->signal;
      ran.timed_out = event->timed_out;
      return ran;
    }
  }
  ran.timed_out = true;
  return ran;
}

MachineSpec Spec(const std::string& id, const std::string& image) {
  return {.id = id,
          .image = image,
          .memory_bytes = 256ull << 20,
          .disk_bytes = 64ull << 20,
          .pids = 64,
          .network = egress::Policy::DenyAll()};
}

// Whether a result of the attack itself says that it came out.
bool SaysEscaped(const std::string& output) {
  const std::string mark = kMark;
  for (std::size_t at = output.find(mark); at != std::string::npos;
       at = output.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    const auto value = json::Read(output.substr(begin, output.find('\n', begin) - begin));
    if (!value) continue;  // cut off, or printed by the attack itself
    const json::Value* escaped = value->Find("escaped");
    if (escaped != nullptr && escaped->is_bool() && escaped->as_bool()) return true;
  }
  return false;
}

}  // namespace

std::string_view Attack::oracle() const {
  constexpr std::string_view kKey = "oracle: ";
  const std::string_view line = source.substr(0, source.find('\n'));
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + kKey.size());
  return rest.substr(0, rest.find(' '));
}

Result<std::unique_ptr<Trial>> Trial::Open(Driver& driver, const TrialOptions& options) {
  std::unique_ptr<Trial> trial(new Trial(driver, options));
  CAISSON_ASSIGN(trial->canaries_, jail::Canaries::Set());
  CAISSON_TRY(driver.Create(Spec(kNeighbour, options.image)));
  return trial;
}

Trial::~Trial() {
  (void)driver_.Destroy(kVictim);
  (void)driver_.Destroy(kNeighbour);
}

void Trial::Run(const Attack& attack, Verdict& verdict) {
  if (auto made = driver_.Create(Spec(kVictim, options_.image)); !made) {
    verdict.broken.push_back("no machine could be made: " + made.error().message);
    return;
  }
  const Ran ran =
      RunPython(driver_, kVictim, Shim(attack.source, canaries_->Document()), options_.deadline);
  if (auto gone = driver_.Destroy(kVictim); !gone) {
    verdict.broken.push_back("its machine could not be removed: " + gone.error().message);
  }
  verdict.ended = ran.ToText();
  if (ran.output.find(jail::Canaries::kText) != std::string::npos) {
    verdict.broken.emplace_back("a secret of the host came out");
  }
  if (SaysEscaped(ran.output)) verdict.broken.emplace_back("it says that it came out");
  if (verdict.oracle == "limit" && ran.succeeded() && ran.output.find(kMark) == std::string::npos) {
    verdict.broken.emplace_back("it ended well without its result: " + ran.output.substr(0, 200));
  }
}

void Trial::CheckNeighbour(Verdict& verdict) {
  const Ran ran = RunPython(driver_, kNeighbour, "print(sum(range(10)))", milliseconds(60'000));
  if (ran.succeeded() && ran.output == "45\n") return;
  const std::string text = "the machine beside it suffered: " + ran.ToText();
  if (std::ranges::find(verdict.broken, text) == verdict.broken.end()) {
    verdict.broken.push_back(text);
  }
}

Verdict Trial::Try(const Attack& attack) {
  Verdict verdict{.attack = std::string(attack.name),
                  .oracle = std::string(attack.oracle()),
                  .ended = {},
                  .broken = {}};
  std::atomic<bool> over = false;
  Verdict beside;
  std::thread neighbour([this, &over, &beside] {
    do {
      CheckNeighbour(beside);
    } while (!over);
  });
  const auto begin = Clock::now();
  Run(attack, verdict);
  // Twice: the second run must find nothing of the first.
  if (attack.name == "state_leak_between_runs") Run(attack, verdict);
  over = true;
  verdict.took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  neighbour.join();
  verdict.broken.insert(verdict.broken.end(), beside.broken.begin(), beside.broken.end());
  if (verdict.took > options_.patience) verdict.broken.emplace_back("it held the host up");
  for (std::string& harm : canaries_->Harm()) verdict.broken.push_back(std::move(harm));
  const auto list = driver_.List();
  if (!list || list->size() != 1) verdict.broken.emplace_back("a machine of it was left");
  return verdict;
}

}  // namespace caisson::machine::hostile
