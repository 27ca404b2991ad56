// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/isolation.h"
#include "cli/machine_drivers.h"
#include "cli/machine_trial.h"
#include "cli/runtime_report.h"
#include "images/store.h"
#include "jail/probe.h"
#include "machine/microvm/boot_files.h"
#include "os/cgroup.h"

namespace caisson::cli {
namespace {

struct Findings {
  os::Cgroup::Swept cgroups;  // of runs that were killed
  std::vector<jail::WallReport> walls;
  bool jailed = false;  // every mandatory wall stands
  bool runtime_tried = false;
  Result<void> runtime;
  std::vector<RuntimeReport> block_runtimes;
  std::vector<DriverReport> machines;
};

Findings Examine(const DoctorArguments& arguments, Console& console) {
  Findings findings;
  // First: it starts processes, while this one has a single thread.
  findings.machines = TryMachines({.images = images::Store::DefaultDirectory(),
                                   .image = arguments.image,
                                   .agent = AgentBesideThisProgram(),
                                   .kernel = machine::microvm::DefaultKernelDirectory(),
                                   .allow_emulation = arguments.allow_emulation,
                                   .attack = arguments.attack},
                                  console);
  if (arguments.attack) return findings;
  findings.cgroups = os::Cgroup::Sweep();
  findings.walls = jail::ProbeWalls();
  findings.jailed = std::ranges::all_of(
      findings.walls, [](const jail::WallReport& wall) { return wall.stands || !wall.mandatory; });
  if (!findings.jailed) return findings;
  findings.runtime_tried = true;
  auto runtime = OpenIsolation({.workers = 1});
  findings.runtime = runtime ? (*runtime)->Warm() : Result<void>(Fail(std::move(runtime).error()));
  findings.block_runtimes = ExamineRuntimes(console);
  return findings;
}

json::Value WallToJson(const jail::WallReport& wall) {
  return json::Object{{"wall", wall.name},
                      {"stands", wall.stands},
                      {"mandatory", wall.mandatory},
                      {"reason", wall.reason},
                      {"what_to_do", wall.what_to_do}};
}

json::Array Texts(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

json::Value ToJson(const Findings& findings, bool attack) {
  if (attack) return json::Object{{"machines", ToJson(findings.machines)}};
  json::Array walls;
  for (const jail::WallReport& wall : findings.walls) walls.push_back(WallToJson(wall));
  json::Object runtime{{"tried", findings.runtime_tried},
                       {"starts", findings.runtime_tried && findings.runtime.has_value()}};
  if (!findings.runtime) {
    runtime.Set("code", findings.runtime.error().code.name);
    runtime.Set("reason", findings.runtime.error().message);
  }
  return json::Object{{"jailed", findings.jailed},
                      {"runtime", std::move(runtime)},
                      {"block_runtimes", ToJson(findings.block_runtimes)},
                      {"machines", ToJson(findings.machines)},
                      {"walls", std::move(walls)},
                      {"stale_cgroups", json::Object{{"removed", Texts(findings.cgroups.removed)},
                                                     {"left", Texts(findings.cgroups.left)}}}};
}

std::string CgroupsToText(const os::Cgroup::Swept& swept) {
  std::string text;
  for (const std::string& group : swept.removed) {
    text += "Removed a cgroup of a run that was killed: " + group + "\n";
  }
  for (const std::string& group : swept.left) {
    text += "A cgroup of a run that was killed is still there: " + group +
            "\n             -> its processes have not ended, or it is another user's; remove it "
            "with rmdir once it is empty\n";
  }
  return text;
}

std::string ToText(const Findings& findings, bool attack) {
  std::string text;
  if (attack) return ToTable(findings.machines);
  for (const jail::WallReport& wall : findings.walls) {
    std::string name = wall.name;
    name.resize(std::max<std::size_t>(name.size(), 22), ' ');
    text += (wall.stands ? "  stands   " : wall.mandatory ? "  MISSING  " : "  missing  ") + name;
    text += wall.reason + "\n";
    if (!wall.what_to_do.empty()) text += std::string(13, ' ') + "-> " + wall.what_to_do + "\n";
  }
  text += findings.jailed ? "Every mandatory wall stands.\n"
                          : "A mandatory wall is missing: code nodes are refused here unless "
                            "--allow-unjailed is given.\n";
  text += CgroupsToText(findings.cgroups);
  text += "Drivers of machines:\n" + ToTable(findings.machines);
  if (!findings.runtime_tried) return text;
  text += findings.runtime
              ? "The isolate runtime starts and passes its self-test.\n"
              : "The isolate runtime does not start: " + findings.runtime.error().message + "\n";
  return text + "Runtimes of logic blocks:\n" + ToTable(findings.block_runtimes);
}

}  // namespace

ExitCode Doctor(const DoctorArguments& arguments, Console& console) {
  const Findings findings = Examine(arguments, console);
  const ExitCode printed = !arguments.json && isatty(STDOUT_FILENO) == 1
                               ? PrintText(ToText(findings, arguments.attack), console)
                               : PrintJson(ToJson(findings, arguments.attack), console);
  if (printed != ExitCode::kOk) return printed;
  if (arguments.attack) {
    return Contained(findings.machines) ? ExitCode::kOk : ExitCode::kNoIsolation;
  }
  if (!findings.jailed) return ExitCode::kNoIsolation;
  return findings.runtime ? ExitCode::kOk : ExitCodeOf(findings.runtime.error().code);
}

}  // namespace caisson::cli
