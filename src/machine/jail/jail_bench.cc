// SPDX-License-Identifier: Apache-2.0
// What jails cost. Prints JSON lines for bench/run.py. Needs root, and an image (see
// jail/test_helper.h); without networks unless the second argument is "network", then run it in a
// network namespace of its own.
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

#include "machine/jail/test_helper.h"
#include "machine/test_guest.h"

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

void Tell(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  const auto at = [&times](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  fmt::print("{{\"what\":\"{}\",\"n\":{},\"p50_ms\":{:.2f},\"p90_ms\":{:.2f},\"p99_ms\":{:.2f}}}\n",
             what, times.size(), at(0.5), at(0.9), at(0.99));
  std::fflush(stdout);
}

double Took(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return Milliseconds(Clock::now() - begin).count();
}

void OneAfterTheOther(Driver& driver) {
  std::vector<double> first, create, exec, pause, resume, destroy;
  for (int i = 0; i < 100; ++i) {
    const std::string id = Spec(i).id;
    create.push_back(Took([&] { Must(driver.Create(Spec(i))); }));
    first.push_back(create.back() + Took([&] { RunCommand(driver, id); }));
    exec.push_back(Took([&] { RunCommand(driver, id); }));
    pause.push_back(Took([&] { Must(driver.Pause(id, Level::kMemory)); }));
    resume.push_back(pause.back() + Took([&] { Must(driver.Resume(id)); }));
    destroy.push_back(Took([&] { Must(driver.Destroy(id)); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  Tell("create", create);
  Tell("create to the end of the first command", first);
  Tell("exec", exec);
  Tell("pause", pause);
  Tell("pause and resume", resume);
  Tell("destroy", destroy);
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
  fmt::print(
      "{{\"what\":\"rates\",\"machines\":{},\"create_per_s\":{:.1f},\"destroy_per_s\":{:.1f},"
      "\"lives_per_s\":{:.1f},\"idle_kib_each\":{}}}\n",
      count, count / created * 1000, count / destroyed * 1000, count / both * 1000,
      (before - std::min(before, after)) / static_cast<std::uint64_t>(count));
}

int Main(int count, bool network) {
  if (const std::string why = WhyNoMachines(); !why.empty()) {
    std::fprintf(stderr, "jail_bench: %s\n", why.c_str());
    return 77;
  }
  const HelperProcess helper({.prepared = 12, .threads = 8, .network = network});
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
