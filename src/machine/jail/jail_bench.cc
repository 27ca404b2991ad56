// SPDX-License-Identifier: Apache-2.0
// What jails cost. Prints JSON lines for bench/run.py. Needs root, and an image (see
// machine/test_helper.h); without networks unless the second argument is "network", then run it in
// a network namespace of its own.
//
//   jail_bench [machines, default 200] [network]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "machine/jail/test_jail.h"
#include "machine/test_guest.h"
#include "os/run_program.h"

namespace caisson::machine::jail {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The one program that every image with dynamic programs has.
const std::vector<std::string> kCommand = {"/lib64/ld-linux-x86-64.so.2", "--version"};

template <typename T>
void Must(const Result<T>& result) {
  if (result) return;
  std::fprintf(stderr, "jail_bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

MachineSpec Spec(int number) {
  return {.id = "bench-" + std::to_string(number),
          .image = ImageForTests(),
          .memory_bytes = 256ull << 20,
          .disk_bytes = 1ull << 30,
          .network = egress::Policy::DenyAll()};
}

void RunCommand(Driver& driver, const std::string& id) {
  const Ran ran = Run(driver, id, kCommand);
  if (ran.error.empty() && ran.exit_code == 0) return;
  std::fprintf(stderr, "jail_bench: the command failed: %s%s\n", ran.error.c_str(),
               ran.out.c_str());
  std::exit(1);
}

struct Control {
  const char* name;
  double value;
};

void Tell(const std::string& what, double value, const char* unit, const char* target, bool ok,
          const Control* control = nullptr) {
  fmt::print("{{\"what\":\"{}\",\"value\":{:.2f},\"unit\":\"{}\"", what, value, unit);
  if (target != nullptr) fmt::print(",\"target\":\"{}\",\"ok\":{}", target, ok);
  if (control != nullptr) {
    fmt::print(",\"control\":{:.2f},\"control_name\":\"{}\",\"ratio\":{:.2f}", control->value,
               control->name, value / control->value);
  }
  fmt::print("}}\n");
  std::fflush(stdout);
}

double Median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

double Took(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return Milliseconds(Clock::now() - begin).count();
}

// The same command in a sandbox of bubblewrap; empty when that is not installed.
std::vector<double> Bubblewrap(int rounds) {
  std::vector<double> times;
  if (os::FindProgram("bwrap").empty()) return times;
  const auto image = images::Store::Open(ImagesForTests())->Find(ImageForTests());
  os::Program program{.arguments = {"bwrap", "--unshare-all", "--ro-bind", image->root, "/",
                                    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}};
  program.arguments.insert(program.arguments.end(), kCommand.begin(), kCommand.end());
  for (int i = 0; i < rounds; ++i) {
    times.push_back(Took([&program] {
      const auto end = os::RunProgram(program);
      if (end && end->succeeded()) return;
      std::fprintf(stderr, "jail_bench: bwrap failed: %s\n", end ? end->messages.c_str() : "");
      std::exit(1);
    }));
  }
  return times;
}

void OneAfterTheOther(Driver& driver) {
  constexpr int kRounds = 100;
  std::vector<double> first, create, exec, pause, destroy;
  for (int i = 0; i < kRounds; ++i) {
    const std::string id = Spec(i).id;
    create.push_back(Took([&] { Must(driver.Create(Spec(i))); }));
    first.push_back(create.back() + Took([&] { RunCommand(driver, id); }));
    exec.push_back(Took([&] { RunCommand(driver, id); }));
    pause.push_back(Took([&] {
      Must(driver.Pause(id, Level::kMemory));
      Must(driver.Resume(id));
    }));
    destroy.push_back(Took([&] { Must(driver.Destroy(id)); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const std::vector<double> controls = Bubblewrap(kRounds);
  const Control control{"bubblewrap", controls.empty() ? 1 : Median(controls)};
  Tell("create, p50", Median(create), "ms", nullptr, true);
  Tell("create to the end of the first command, p50", Median(first), "ms", "<= 15 ms",
       Median(first) <= 15, controls.empty() ? nullptr : &control);
  Tell("command in a machine, p50", Median(exec), "ms", "<= 4 ms", Median(exec) <= 4);
  Tell("pause and resume, p50", Median(pause), "ms", "<= 5 ms", Median(pause) <= 5);
  Tell("destroy, p50", Median(destroy), "ms", nullptr, true);
}

double ManyAtOnce(Driver& driver, int count, const std::function<void(Driver&, int)>& work) {
  constexpr int kClients = 16;
  std::atomic<int> next{0};
  return Took([&] {
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        for (int number = next++; number < count; number = next++) work(driver, number);
      });
    }
    for (std::thread& client : clients) client.join();
  });
}

std::uint64_t AvailableKib() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::uint64_t value = 0;
  for (std::string unit; info >> key >> value; std::getline(info, unit)) {
    if (key == "MemAvailable:") return value;
  }
  return 0;
}

void Rates(Driver& driver, int count) {
  const std::uint64_t before = AvailableKib();
  const double created =
      ManyAtOnce(driver, count, [](Driver& d, int i) { Must(d.Create(Spec(i))); });
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const std::uint64_t after = AvailableKib();
  const double destroyed =
      ManyAtOnce(driver, count, [](Driver& d, int i) { Must(d.Destroy(Spec(i).id)); });
  const double both = ManyAtOnce(driver, count, [](Driver& d, int i) {
    Must(d.Create(Spec(i)));
    RunCommand(d, Spec(i).id);
    Must(d.Destroy(Spec(i).id));
  });
  const std::string machines = std::to_string(count) + " machines";
  Tell("create, " + machines, count / created * 1000, "/s", ">= 60 /s",
       count / created * 1000 >= 60);
  Tell("destroy, " + machines, count / destroyed * 1000, "/s", nullptr, true);
  Tell("create, command, destroy, " + machines, count / both * 1000, "/s", nullptr, true);
  const double each = static_cast<double>(before - std::min(before, after)) / 1024 / count;
  Tell("host memory of an idle machine, " + machines, each, "MiB", "< 3 MiB", each < 3);
}

int Main(int count, bool network) {
  if (const std::string why = WhyNoMachines(); !why.empty()) {
    std::fprintf(stderr, "jail_bench: %s\n", why.c_str());
    return 77;
  }
  const HelperProcess helper(JailHelper(network, 12, 8));
  auto driver = helper.Open();
  Must(driver);
  Must((*driver)->Create(Spec(0)));  // so that it knows what is wanted
  Must((*driver)->Destroy(Spec(0).id));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  OneAfterTheOther(**driver);
  Rates(**driver, count);
  return 0;
}

}  // namespace
}  // namespace caisson::machine::jail

int main(int argc, char** argv) {
  const bool network = argc > 2 && std::string_view(argv[2]) == "network";
  return caisson::machine::jail::Main(argc > 1 ? std::atoi(argv[1]) : 200, network);
}
