// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "agent/client.h"
#include "cli/machine_drivers.h"
#include "images/store.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/helper/client.h"
#include "machine/helper/server.h"
#include "machine/machines.h"
#include "machine/networks.h"
#include "os/fd.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Kind {
  const char* name;
  const char* driver;
  const char* oci_runtime;
  milliseconds patience;  // for one machine
};
constexpr std::array kKinds = {Kind{"jail", "jail", "auto", milliseconds(15'000)},
                               Kind{"oci-runsc", "oci", "runsc", milliseconds(30'000)},
                               Kind{"oci-runc", "oci", "runc", milliseconds(30'000)},
                               Kind{"oci-podman", "oci", "podman", milliseconds(45'000)},
                               Kind{"oci-docker", "oci", "docker", milliseconds(45'000)},
                               // KVM that hangs is found out first, and a kernel boots.
                               Kind{"microvm", "microvm", "auto", milliseconds(90'000)},
                               Kind{"firecracker", "firecracker", "auto", milliseconds(90'000)}};
constexpr milliseconds kTemplatePatience{70'000};
constexpr milliseconds kPatienceOfAttack{120'000};
constexpr const char* kMachine = "caisson-doctor";

// Removed with all that is in it; made where disks may be large.
class Place {
 public:
  Place() {
    std::string pattern = "/var/tmp/caisson-doctor-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Place() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

DriverSettings SettingsOf(const Kind& kind, const MachineTrialOptions& options,
                          const std::string& place) {
  return {.state = place + "/state",
          .images = options.images,
          .agent = options.agent,
          .prepared = 0,
          .builders = 1,
          .oci_runtime = kind.oci_runtime,
          .kernel = options.kernel,
          .allow_emulation = options.allow_emulation,
          .waiting_vms = 0,
          .vm_template_patience = kTemplatePatience};
}

// A helper in this process, and a driver that talks to it as a service does.
class Rig {
 public:
  static Result<std::unique_ptr<Rig>> Open(const Kind& kind, const DriverSettings& settings,
                                           const std::string& place) {
    auto rig = std::make_unique<Rig>();
    const machine::SharedParts parts{.networks = machine::NoNetworks(),
                                     .ids = std::make_shared<machine::IdRanges>()};
    std::error_code error;
    fs::create_directory(settings.state, error);
    fs::permissions(settings.state, fs::perms::owner_all, error);
    CAISSON_ASSIGN(auto local, KnownDrivers(settings).at(kind.driver)(parts));
    machine::MachinesByDriver machines;
    CAISSON_ASSIGN(machines[kind.driver],
                   machine::Machines::Open(std::move(local), parts.networks));
    const std::string socket = place + "/socket";
    CAISSON_ASSIGN(rig->server_,
                   machine::helper::Server::Listen(std::move(machines), socket, ::geteuid()));
    rig->thread_ = std::jthread(
        [server = rig->server_.get()](const std::stop_token& stop) { (void)server->Run(stop); });
    CAISSON_ASSIGN(rig->driver_,
                   machine::helper::RemoteDriver::Open({.socket = socket, .driver = kind.driver}));
    return rig;
  }
  machine::Driver& driver() { return *driver_; }

 private:
  std::unique_ptr<machine::helper::Server> server_;
  std::jthread thread_;
  std::unique_ptr<machine::helper::RemoteDriver> driver_;
};

// The one program that every image with dynamic programs has.
Result<void> RunACommand(machine::Driver& driver, const std::string& id) {
  CAISSON_ASSIGN(os::UniqueFd connection, driver.Connect(id));
  agent::ExecRequest request;
  request.command.argv = {"/lib64/ld-linux-x86-64.so.2", "--version"};
  CAISSON_ASSIGN(agent::Exec exec, agent::Exec::Start(std::move(connection), request));
  for (;;) {
    CAISSON_ASSIGN(const agent::ExecEvent event, exec.Next());
    if (event.kind == agent::ExecEvent::Kind::kExit ||
        event.kind == agent::ExecEvent::Kind::kFailedToStart) {
      return {};
    }
  }
}

// --- what the process of one driver tells, a line each ---

json::Value VerdictToJson(const machine::hostile::Verdict& verdict) {
  json::Array broken;
  for (const std::string& text : verdict.broken) broken.emplace_back(text);
  return json::Object{{"attack", verdict.attack},
                      {"oracle", verdict.oracle},
                      {"contained", verdict.broken.empty()},
                      {"ended", verdict.ended},
                      {"broken", std::move(broken)},
                      {"milliseconds", std::int64_t{verdict.took.count()}}};
}

std::string TextIn(const json::Value& value, const char* key) {
  const json::Value* found = value.Find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}
std::int64_t NumberIn(const json::Value& value, const char* key) {
  const json::Value* found = value.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}
bool IsTrueIn(const json::Value& value, const char* key) {
  const json::Value* found = value.Find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

machine::hostile::Verdict VerdictFromJson(const json::Value& value) {
  machine::hostile::Verdict verdict{.attack = TextIn(value, "attack"),
                                    .oracle = TextIn(value, "oracle"),
                                    .ended = TextIn(value, "ended"),
                                    .broken = {},
                                    .took = milliseconds(NumberIn(value, "milliseconds"))};
  const json::Value* broken = value.Find("broken");
  if (broken == nullptr || !broken->is_array()) return verdict;
  for (const json::Value& text : broken->as_array()) {
    if (text.is_string()) verdict.broken.push_back(text.as_string());
  }
  return verdict;
}

class Teller {
 public:
  explicit Teller(int fd) : fd_(fd) {}
  void Tell(const json::Value& value) const {
    const auto text = json::Write(value);
    if (!text) return;
    const std::string line = *text + "\n";
    (void)!::write(fd_, line.data(), line.size());
  }
  void Fail(const Status& status) const {
    Tell(json::Object{{"what", "failed"}, {"reason", status.message}});
  }

 private:
  int fd_;
};

// In a process of its own.
void TryOne(const Kind& kind, const MachineTrialOptions& options, const std::string& image,
            const std::string& place, const Teller& teller) {
  auto rig = Rig::Open(kind, SettingsOf(kind, options, place), place);
  if (!rig) return teller.Fail(rig.error());
  machine::Driver& driver = (*rig)->driver();
  const auto begin = Clock::now();
  const auto made = driver.Create({.id = kMachine,
                                   .host_name = {},
                                   .image = image,
                                   .disk_bytes = machine::kMinDiskBytes,
                                   .network = egress::Policy::DenyAll()});
  if (!made) return teller.Fail(made.error());
  if (auto ran = RunACommand(driver, kMachine); !ran) return teller.Fail(ran.error());
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  if (auto gone = driver.Destroy(kMachine); !gone) return teller.Fail(gone.error());
  const machine::Capabilities can = driver.capabilities();
  teller.Tell(json::Object{{"what", "works"},
                           {"milliseconds", std::int64_t{took.count()}},
                           {"isolation_class", can.isolation_class},
                           {"isolation", can.isolation},
                           {"emulated", can.emulated}});
  if (!options.attack) return;
  auto trial = machine::hostile::Trial::Open(driver, {.image = image});
  if (!trial) return teller.Fail(trial.error());
  for (const machine::hostile::Attack& attack : machine::hostile::Corpus()) {
    json::Value verdict = VerdictToJson((*trial)->Try(attack));
    verdict.mutable_object().Set("what", "verdict");
    teller.Tell(verdict);
  }
  teller.Tell(json::Object{{"what", "attacked"}});
}

// Removes what a trial that was killed has left.
void CleanUp(const Kind& kind, const MachineTrialOptions& options, const std::string& place) {
  auto rig = Rig::Open(kind, SettingsOf(kind, options, place), place);
  if (!rig) return;
  const auto machines = (*rig)->driver().List();
  if (!machines) return;
  for (const machine::Machine& machine : *machines) (void)(*rig)->driver().Destroy(machine.id);
}

pid_t Fork(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  work();
  ::_exit(0);
}

void Await(pid_t pid, milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (Clock::now() > until) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

// The next line of a pipe; empty at its end, or when none comes in time.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  std::optional<std::string> Next(milliseconds patience) {
    const auto until = Clock::now() + patience;
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      pollfd event{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&event, 1, static_cast<int>(left.count())) == 0) {
        timed_out_ = true;
        return std::nullopt;
      }
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      text_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  bool timed_out() const { return timed_out_; }

 private:
  int fd_;
  std::string text_;
  bool timed_out_ = false;
};

void Take(const json::Value& line, DriverReport& report) {
  const std::string what = TextIn(line, "what");
  if (what == "failed") {
    report.reason = TextIn(line, "reason");
  } else if (what == "works") {
    report.works = true;
    report.made = milliseconds(NumberIn(line, "milliseconds"));
    report.isolation_class = TextIn(line, "isolation_class");
    report.isolation = TextIn(line, "isolation");
    report.emulated = IsTrueIn(line, "emulated");
  } else if (what == "verdict") {
    report.verdicts.push_back(VerdictFromJson(line));
  } else if (what == "attacked") {
    report.attacked = true;
  }
}

DriverReport Examine(const Kind& kind, const MachineTrialOptions& options,
                     const std::string& image) {
  DriverReport report{.name = kind.name};
  const Place place;
  auto pipe = os::MakePipe();
  if (place.path().empty() || !pipe) {
    report.reason = "no directory can be made in /var/tmp";
    return report;
  }
  const pid_t pid =
      Fork([&] { TryOne(kind, options, image, place.path(), Teller(pipe->second.get())); });
  pipe->second.Reset();
  Lines lines(pipe->first.get());
  while (auto line = lines.Next(report.works ? kPatienceOfAttack : kind.patience)) {
    if (const auto value = json::Read(*line)) Take(*value, report);
  }
  if (lines.timed_out() && report.reason.empty()) {
    report.reason = report.works ? "an attack held it up for two minutes"
                                 : fmt::format("no machine was ready within {} s",
                                               kind.patience.count() / 1000);
  } else if (!report.works && report.reason.empty()) {
    report.reason = "the process that tried it has died";
  }
  Await(pid, lines.timed_out() ? milliseconds(0) : kind.patience);
  Await(Fork([&] { CleanUp(kind, options, place.path()); }), kind.patience);
  return report;
}

// One that has what the trials need; empty, with `why`, when there is none.
std::string FindImage(const MachineTrialOptions& options, std::string& why) {
  const auto store = images::Store::Open(options.images);
  if (!store) {
    why = store.error().message;
    return "";
  }
  for (const std::string& name : {options.image, std::string("devbox:1"), std::string("debian:12"),
                                  std::string("python-science")}) {
    if (name.empty()) continue;
    const auto image = store->Find(name);
    if (!image && name == options.image) why = image.error().message;
    if (!image) continue;
    std::error_code error;
    if (!options.attack || fs::exists(image->root + "/usr/bin/python3", error)) return image->id;
    if (name == options.image) why = "the image " + name + " has no python3, which attacks are in";
  }
  if (why.empty()) {
    why =
        "there is no image to make a machine from; make one with `caisson images build "
        "devbox:1`";
  }
  return "";
}

}  // namespace

std::vector<DriverReport> TryMachines(const MachineTrialOptions& options, Console& console) {
  std::vector<DriverReport> reports;
  std::string why;
  const std::string image = FindImage(options, why);
  if (::geteuid() != 0) why = "machines are made by root; run this with sudo";
  for (const Kind& kind : kKinds) {
    if (!why.empty()) {
      reports.push_back({.name = kind.name, .reason = why});
      continue;
    }
    if (options.attack) console.Info(fmt::format("attacking {} …", kind.name));
    reports.push_back(Examine(kind, options, image));
  }
  return reports;
}

bool Contained(const std::vector<DriverReport>& reports) {
  return std::ranges::all_of(reports, [](const DriverReport& report) {
    return std::ranges::all_of(report.verdicts, [](const machine::hostile::Verdict& verdict) {
      return verdict.broken.empty();
    });
  });
}

json::Value ToJson(const std::vector<DriverReport>& reports) {
  json::Array list;
  for (const DriverReport& report : reports) {
    json::Object item{{"driver", report.name}, {"works", report.works}};
    if (!report.reason.empty()) item.Set("reason", report.reason);
    if (report.works) {
      item.Set("isolation_class", report.isolation_class);
      item.Set("isolation", report.isolation);
      item.Set("emulated", report.emulated);
      item.Set("milliseconds", std::int64_t{report.made.count()});
    }
    if (!report.verdicts.empty()) {
      json::Array attacks;
      for (const auto& verdict : report.verdicts) attacks.push_back(VerdictToJson(verdict));
      item.Set("attacks", std::move(attacks));
      item.Set("every_attack", report.attacked);
    }
    list.emplace_back(std::move(item));
  }
  return json::Value(std::move(list));
}

std::string ToTable(const std::vector<DriverReport>& reports) {
  std::string text;
  for (const DriverReport& report : reports) {
    if (!report.works) {
      text += fmt::format("  off      {:<12}{}\n", report.name, report.reason);
      continue;
    }
    text += fmt::format("  works    {:<12}{}{}, first command after {} ms\n", report.name,
                        report.isolation, report.emulated ? ", emulated" : "", report.made.count());
    for (const auto& verdict : report.verdicts) {
      text +=
          fmt::format("    {:<10}{:<34}{:<11}{}\n", verdict.broken.empty() ? "contained" : "BROKEN",
                      verdict.attack, verdict.oracle, verdict.ended);
      for (const std::string& broken : verdict.broken) text += "              " + broken + "\n";
    }
    if (!report.verdicts.empty() && !report.attacked) {
      text += "    not every attack was tried: " + report.reason + "\n";
    }
  }
  return text;
}

}  // namespace caisson::cli
