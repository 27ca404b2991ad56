// SPDX-License-Identifier: Apache-2.0
// What virtual machines cost, with an emulated processor where there is no other. Prints JSON lines
// for bench/run.py. Needs root, an image (machine/test_helper.h) and the guests' kernel.
//
//   microvm_bench [rounds, default 20]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "agent/client.h"
#include "machine/microvm/test_microvm.h"
#include "machine/test_guest.h"

namespace caisson::machine::microvm {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The one program that every image with dynamic programs has.
const std::vector<std::string> kCommand = {"/lib64/ld-linux-x86-64.so.2", "--version"};

template <typename T>
void Must(const Result<T>& result) {
  if (result) return;
  std::fprintf(stderr, "microvm_bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

MachineSpec Spec(const std::string& id) {
  return {.id = id,
          .image = ImageForTests(),
          .memory_bytes = 256ull << 20,
          .disk_bytes = 1ull << 30,
          .network = egress::Policy::DenyAll()};
}

void RunCommand(Driver& driver, const std::string& id) {
  const Ran ran = Run(driver, id, kCommand);
  if (ran.error.empty() && ran.exit_code == 0) return;
  std::fprintf(stderr, "microvm_bench: the command failed: %s%s\n", ran.error.c_str(),
               ran.out.c_str());
  std::exit(1);
}

void Tell(const std::string& what, double value, const char* unit, const char* target = nullptr,
          bool ok = true) {
  fmt::print("{{\"what\":\"{}\",\"value\":{:.2f},\"unit\":\"{}\"", what, value, unit);
  if (target != nullptr) fmt::print(",\"target\":\"{}\",\"ok\":{}", target, ok);
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

// Of all QEMU processes of this helper's machines, in MiB.
std::vector<double> PssOfMachines() {
  std::vector<double> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream name(entry.path() / "comm");
    std::string text;
    std::getline(name, text);
    if (!text.starts_with("qemu-system")) continue;
    std::ifstream rollup(entry.path() / "smaps_rollup");
    for (std::string line; std::getline(rollup, line);) {
      if (line.starts_with("Pss:")) all.push_back(std::atof(line.c_str() + 4) / 1024);
    }
  }
  return all;
}

// What a machine has used of the host's processors since it was started, which others' load does
// not change as it does times.
double ProcessorTime(Driver& driver, const std::string& id) {
  const auto stats = driver.ReadStats(id);
  Must(stats);
  return static_cast<double>(stats->cpu_nanoseconds) / 1e6;
}

void OneAfterTheOther(Driver& driver, int rounds) {
  std::vector<double> first, first_used, exec, exec_used, pause, disk, resume, destroy;
  for (int i = 0; i < rounds; ++i) {
    const std::string id = "bench-" + std::to_string(i);
    first.push_back(Took([&] {
      Must(driver.Create(Spec(id)));
      RunCommand(driver, id);
    }));
    first_used.push_back(ProcessorTime(driver, id));
    for (int k = 0; k < 5; ++k) exec.push_back(Took([&] { RunCommand(driver, id); }));
    exec_used.push_back((ProcessorTime(driver, id) - first_used.back()) / 5);
    pause.push_back(Took([&] {
      Must(driver.Pause(id, Level::kMemory));
      Must(driver.Resume(id));
    }));
    disk.push_back(Took([&] { Must(driver.Pause(id, Level::kDisk)); }));
    resume.push_back(Took([&] {
      Must(driver.Resume(id));
      RunCommand(driver, id);
    }));
    destroy.push_back(Took([&] { Must(driver.Destroy(id)); }));
  }
  Tell("create from a template to the end of the first command, p50", Median(first), "ms",
       "<= 350 ms", Median(first) <= 350);
  Tell("create … first command, processor time of its processes, p50", Median(first_used), "ms");
  Tell("command in a machine, processor time, p50", Median(exec_used), "ms");
  Tell("command in a machine, p50", Median(exec), "ms", "<= 12 ms", Median(exec) <= 12);
  Tell("pause in memory and resume, p50", Median(pause), "ms");
  Tell("pause to disk, p50", Median(disk), "ms");
  Tell("resume from disk to the end of a command, p50", Median(resume), "ms");
  Tell("destroy, p50", Median(destroy), "ms");
}

// The longest time between two signs of life of a command while `work` is done, less the usual one:
// how long its machine stood still.
double StoodStill(Driver& driver, const std::string& id, const std::function<void()>& work) {
  auto connection = driver.Connect(id);
  Must(connection);
  agent::ExecRequest request;
  request.command.argv = {"/usr/bin/python3", "-ISuc",
                          "import os, time\nwhile True: os.write(1, b'.'); time.sleep(0.002)"};
  auto exec = agent::Exec::Start(*std::move(connection), request);
  Must(exec);
  std::atomic<bool> over{false};
  std::vector<double> gaps;
  std::jthread reader([&] {
    auto last = Clock::now();
    while (!over) {
      const auto event = exec->Next(std::chrono::seconds(5));
      Must(event);
      if (event->kind != agent::ExecEvent::Kind::kStdout) continue;
      const auto now = Clock::now();
      gaps.push_back(Milliseconds(now - last).count());
      last = now;
    }
  });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  work();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  over = true;
  reader.join();
  return *std::ranges::max_element(gaps.begin() + 1, gaps.end()) - Median(gaps);
}

void Copies(Driver& driver, int rounds) {
  Must(driver.Create(Spec("parent")));
  RunCommand(driver, "parent");
  std::vector<double> snapshot, stood, fork;
  for (int i = 0; i < rounds; ++i) {
    stood.push_back(StoodStill(driver, "parent", [&] {
      snapshot.push_back(Took([&] { Must(driver.TakeSnapshot("parent", "kept")); }));
    }));
    Must(driver.RemoveSnapshot("kept"));
  }
  Must(driver.Pause("parent", Level::kMemory));
  for (int i = 0; i < rounds; ++i) {
    fork.push_back(Took([&] {
      Must(driver.Fork("parent", Spec("copy")));
      RunCommand(driver, "copy");
    }));
    Must(driver.Destroy("copy"));
  }
  Must(driver.Destroy("parent"));
  Tell("snapshot of a running machine, p50", Median(snapshot), "ms");
  Tell("… for how long its commands stood still, p50", Median(stood), "ms", "<= 30 ms",
       Median(stood) <= 30);
  Tell("fork of a paused machine to the end of the first command, p50", Median(fork), "ms",
       "<= 300 ms", Median(fork) <= 300);
}

void TwentyAtOnce(Driver& driver) {
  constexpr int kCount = 20;
  std::atomic<int> answered{0};
  const double took = Took([&] {
    std::vector<std::thread> clients;
    for (int i = 0; i < kCount; ++i) {
      clients.emplace_back([&driver, &answered, i] {
        const std::string id = "many-" + std::to_string(i);
        if (driver.Create(Spec(id)) && Run(driver, id, kCommand).exit_code == 0) ++answered;
      });
    }
    for (std::thread& client : clients) client.join();
  });
  Tell("20 machines at once, until all have run a command", took, "ms");
  Tell("20 machines at once, that answered", answered, "machines", "20", answered == kCount);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const std::vector<double> pss = PssOfMachines();
  if (!pss.empty()) {
    Tell("memory of an idle machine of 256 MiB (PSS of QEMU, 20 alive), p50", Median(pss), "MiB",
         "<= 60 MiB", Median(pss) <= 60);
  }
  for (int i = 0; i < kCount; ++i) Must(driver.Destroy("many-" + std::to_string(i)));
}

// Of machines that wait for their name.
void Waiting(int rounds) {
  HelperProcess::Options options = MicrovmHelper();
  options.open = [](const std::string& state, SharedParts parts) {
    MicrovmOptions own = OptionsForTests(state);
    own.waiting = 1;
    return OpenMicrovm(own, std::move(parts));
  };
  const HelperProcess helper(options);
  auto driver = helper.Open();
  Must(driver);
  Must((*driver)->Create(Spec("first")));
  std::vector<double> first;
  for (int i = 0; i < rounds; ++i) {
    // Until it waits, with all that an emulated processor has to translate.
    std::this_thread::sleep_for(std::chrono::seconds(4));
    const std::string id = "waited-" + std::to_string(i);
    first.push_back(Took([&] {
      Must((*driver)->Create(Spec(id)));
      RunCommand(**driver, id);
    }));
    Must((*driver)->Destroy(id));
  }
  Must((*driver)->Destroy("first"));
  Tell("create where one waits to the end of the first command, p50", Median(first), "ms",
       "<= 350 ms", Median(first) <= 350);
}

int Main(int rounds) {
  if (const std::string why = WhyNoVirtualMachines(); !why.empty()) {
    std::fprintf(stderr, "microvm_bench: %s\n", why.c_str());
    return 77;
  }
  Waiting(std::max(rounds / 4, 3));
  const HelperProcess helper(MicrovmHelper());
  auto driver = helper.Open();
  Must(driver);
  Must((*driver)->Create(Spec("warm")));  // makes the template
  Must((*driver)->Destroy("warm"));
  OneAfterTheOther(**driver, rounds);
  Copies(**driver, std::max(rounds / 4, 3));
  TwentyAtOnce(**driver);
  return 0;
}

}  // namespace
}  // namespace caisson::machine::microvm

int main(int argc, char** argv) {
  return caisson::machine::microvm::Main(argc > 1 ? std::atoi(argv[1]) : 20);
}
