// SPDX-License-Identifier: Apache-2.0
// What machines of runc, runsc, Podman and Docker cost, beside bare runc on the same image. Prints
// JSON lines for bench/run.py. Needs root, and an image (machine/test_helper.h); without networks.
//
//   oci_machine_bench [rounds, default 30]
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "errors/machine.h"
#include "errors/oci.h"
#include "json/writer.h"
#include "machine/oci/bundle.h"
#include "machine/oci/machines/test_oci.h"
#include "machine/test_guest.h"
#include "os/run_program.h"

namespace caisson::machine::oci {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The one program that every image with dynamic programs has.
const std::vector<std::string> kCommand = {"/lib64/ld-linux-x86-64.so.2", "--version"};

template <typename T>
void Must(const Result<T>& result) {
  if (result) return;
  std::fprintf(stderr, "oci_machine_bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

double Took(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return Milliseconds(Clock::now() - begin).count();
}

double Median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

MachineSpec Spec(int number) {
  return {.id = "bench-" + std::to_string(number),
          .image = ImageForTests(),
          .memory_bytes = 256ull << 20,
          .disk_bytes = 1ull << 30,
          .network = egress::Policy::DenyAll()};
}

// `runc run` of the same command with a bundle of the image, start to end.
class BareRunc {
 public:
  explicit BareRunc(const Runtime& runtime) : runtime_(runtime) {
    char pattern[] = "/tmp/caisson-bench-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    const auto image = images::Store::Open(ImagesForTests())->Find(ImageForTests());
    Must(WriteBundle(*image, kCommand, folder_ + "/bundle"));
  }
  ~BareRunc() { std::filesystem::remove_all(folder_); }
  BareRunc(const BareRunc&) = delete;
  BareRunc& operator=(const BareRunc&) = delete;

  void Run(int number) const {
    const auto end = os::RunProgram(
        {.arguments = {runtime_.program, "--root", folder_ + "/state", "run", "--bundle",
                       folder_ + "/bundle", "caisson-bench-" + std::to_string(number)}});
    if (end && end->succeeded()) return;
    std::fprintf(stderr, "oci_machine_bench: runc: %s\n", end ? end->messages.c_str() : "");
    std::exit(1);
  }

 private:
  const Runtime& runtime_;
  std::string folder_;
};

struct Figures {
  std::vector<double> first, command, pause, destroy;
};

void OneLife(Driver& driver, int number, Figures& figures) {
  const std::string id = Spec(number).id;
  const auto run = [&] {
    const Ran ran = machine::Run(driver, id, kCommand);
    if (ran.error.empty() && ran.exit_code == 0) return;
    std::fprintf(stderr, "oci_machine_bench: %s%s\n", ran.error.c_str(), ran.out.c_str());
    std::exit(1);
  };
  figures.first.push_back(Took([&] {
    Must(driver.Create(Spec(number)));
    run();
  }));
  figures.command.push_back(Took(run));
  figures.pause.push_back(Took([&] {
    Must(driver.Pause(id, Level::kMemory));
    Must(driver.Resume(id));
  }));
  figures.destroy.push_back(Took([&] { Must(driver.Destroy(id)); }));
}

void Tell(const std::string& what, double value, const std::string& rest = "") {
  fmt::print("{{\"what\":\"{}\",\"value\":{:.2f},\"unit\":\"ms\"{}}}\n", what, value, rest);
  std::fflush(stdout);
}

// The first fork of a paused machine writes its memory, the others only read it.
void MeasureForks(Driver& driver, const std::string& name, int rounds) {
  std::vector<double> first, more;
  const std::string parent = Spec(0).id;
  Must(driver.Create(Spec(0)));
  for (int i = 0; i < rounds; ++i) {
    Must(driver.Pause(parent, Level::kMemory));
    for (std::vector<double>* figures : {&first, &more}) {
      const MachineSpec child = Spec(1);
      figures->push_back(Took([&] {
        Must(driver.Fork(parent, child));
        const Ran ran = machine::Run(driver, child.id, kCommand);
        if (ran.exit_code != 0) Must(Result<void>(Fail(errors::kMachineUnavailable, ran.error)));
      }));
      Must(driver.Destroy(child.id));
    }
    Must(driver.Resume(parent));
  }
  Must(driver.Destroy(parent));
  Tell(name + ": fork with memory to the end of the first command, p50", Median(first));
  Tell(name + ": another fork of the same, p50", Median(more));
}

void Measure(const std::string& name, int rounds, std::size_t prepared = 8) {
  const auto runtime = ChooseRuntime(name);
  if (!runtime) {
    std::fprintf(stderr, "oci_machine_bench: %s\n", runtime.error().message.c_str());
    return;
  }
  const HelperProcess helper(OciHelper(name, false, prepared));
  auto driver = helper.Open();
  Must(driver);
  const bool is_runc = runtime->kind == RuntimeKind::kRunc;
  std::unique_ptr<BareRunc> bare;
  if (is_runc) bare = std::make_unique<BareRunc>(*runtime);
  const auto made = (*driver)->Create(Spec(0));  // so that it knows what is wanted
  if (!made && made.error().code == errors::kOciEngineSilent) {
    std::fprintf(stderr, "oci_machine_bench: %s\n", made.error().message.c_str());
    return;
  }
  Must(made);
  Must((*driver)->Destroy(Spec(0).id));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  Figures figures;
  std::vector<double> controls;
  for (int i = 0; i < rounds; ++i) {
    OneLife(**driver, i, figures);
    if (bare != nullptr) controls.push_back(Took([&] { bare->Run(i); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // others become ready
  }
  const double first = Median(figures.first);
  std::string control;
  if (bare != nullptr) {
    const double ratio = first / Median(controls);
    control = fmt::format(
        ",\"target\":\"<= 1.3 x\",\"ok\":{},\"control\":{:.2f},\"control_name\":\"bare "
        "runc\",\"ratio\":{:.2f}",
        ratio <= 1.3, Median(controls), ratio);
  }
  Tell(name + ": create to the end of the first command, p50", first, control);
  Tell(name + ": command in a machine, p50", Median(figures.command));
  Tell(name + ": pause and resume, p50", Median(figures.pause));
  Tell(name + ": destroy, p50", Median(figures.destroy));
  if ((*driver)->capabilities().fork == Extent::kFull) MeasureForks(**driver, name, rounds);
}

int Main(int rounds) {
  if (const std::string why = WhyNoMachines(); !why.empty()) {
    std::fprintf(stderr, "oci_machine_bench: %s\n", why.c_str());
    return 77;
  }
  Measure("runc", rounds);
  Measure("runsc", rounds);
  // An engine takes longer for one than a round does: none waits.
  Measure("podman", rounds, 0);
  Measure("docker", rounds, 0);
  return 0;
}

}  // namespace
}  // namespace caisson::machine::oci

int main(int argc, char** argv) {
  return caisson::machine::oci::Main(argc > 1 ? std::atoi(argv[1]) : 30);
}
