// SPDX-License-Identifier: Apache-2.0
// For tests: a helper with machines of Firecracker, whose place its double takes. The image and the
// kernel are small ones that no double looks into.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "images/files.h"
#include "images/manifest.h"
#include "images/store.h"
#include "machine/firecracker/driver.h"
#include "machine/firecracker/test_doubles.h"
#include "machine/test_guest.h"
#include "machine/test_helper.h"
#include "machine/test_traces.h"
#include "os/run_program.h"

namespace caisson::machine::firecracker {

// What all tests of one program share: templates are made once.
class Furniture {
 public:
  Furniture() {
    namespace fs = std::filesystem;
    char name[] = "/tmp/caisson-fire-XXXXXX";
    directory_ = ::mkdtemp(name);
    // Whoever a machine runs as has to reach it.
    fs::permissions(directory_, fs::perms(0755));
    MakeKernel();
    MakeImage();
    fs::create_directory(directory_ + "/cache");
  }
  Furniture(const Furniture&) = delete;
  Furniture& operator=(const Furniture&) = delete;
  ~Furniture() {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

  const Doubles& doubles() const { return doubles_; }
  const std::string& image() const { return image_; }
  FirecrackerOptions Options(const std::string& state) const {
    const std::string programs = CAISSON_TEST_PROGRAMS;
    FirecrackerOptions options;
    options.machines.state = state;
    options.machines.cache = directory_ + "/cache";
    options.machines.images = directory_ + "/images";
    options.machines.kernel = directory_ + "/kernel";
    options.machines.agent = programs + "/caisson-agent";
    options.machines.init = programs + "/caisson-guest-init";
    options.machines.waiting = 0;
    options.machines.vmm = programs + "/caisson-firecracker-vmm";
    options.firecracker = doubles_.firecracker();
    options.jailer = doubles_.jailer();
    options.kvm = "/dev/null";  // the double needs none
    return options;
  }
  HelperProcess::Options Helper(bool network = false) const {
    return {.driver = "firecracker",
            .open =
                [this](const std::string& state, SharedParts parts) {
                  return OpenFirecracker(Options(state), std::move(parts));
                },
            .network = network};
  }

 private:
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = directory_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void MakeKernel() const {
    Write("kernel/vmlinuz", std::string("\x7f"
                                        "ELF\x02\x01",
                                        6) +
                                "a kernel");
    Write("kernel/modules/order", "vsock.ko\n");
    Write("kernel/modules/vsock.ko", "a module");
  }
  void MakeImage() {
    const auto store = images::Store::Open(directory_ + "/images");
    auto building = store->Begin({}, [] {});
    ASSERT_TRUE(building) << building.error().message;
    const std::string draft = building->path() + "/1";
    std::filesystem::create_directories(draft + "/root");
    ASSERT_TRUE(images::WriteFile(draft + "/root/file", "an image"));
    const auto manifest = images::MakeManifest(draft + "/root", 0);
    ASSERT_TRUE(manifest);
    const auto image = store->Publish({.draft = draft,
                                       .name = "small",
                                       .manifest = *manifest,
                                       .info = json::Object{{"bytes", 1}}});
    ASSERT_TRUE(image) << image.error().message;
    image_ = image->id;
  }

  std::string directory_;
  std::string image_;
  Doubles doubles_;
};

// Why no such machine can be made here; empty when it can.
inline std::string WhyNoDoubles() {
  if (::geteuid() != 0) return "machines are made by root";
  if (os::FindProgram("mkfs.erofs").empty()) return "needs mkfs.erofs (erofs-utils)";
  if (const auto groups = Groups::Plan("probe"); !groups) return groups.error().message;
  return "";
}

class FirecrackerMachines : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoDoubles(); !why.empty()) GTEST_SKIP() << why;
    doubles().Forget();
  }
  void Start(bool network = false) {
    helper_ = std::make_unique<HelperProcess>(furniture().Helper(network));
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
  }
  // For the whole program: with its template, which takes longest.
  static Furniture& furniture() {
    static Furniture all;
    return all;
  }
  static const Doubles& doubles() { return furniture().doubles(); }
  static MachineSpec Spec(const std::string& id) {
    return {.id = id,
            .image = furniture().image(),
            .memory_bytes = 32ull << 20,
            .disk_bytes = 64ull << 20,
            .pids = 64,
            .network = egress::Policy::DenyAll()};
  }
  // A command of the double's guest (fake/guest.h).
  std::string Say(const std::string& id, std::vector<std::string> words) {
    const Ran ran = machine::Run(*driver_, id, std::move(words), std::chrono::seconds(5));
    return ran.error + ran.out;
  }
  template <typename T>
  static std::string CodeOf(const Result<T>& result) {
    return result ? "fine" : std::string(result.error().code.name);
  }
  State StateOf(const std::string& id) {
    const std::vector<Machine> machines = driver_->List().value();
    for (const Machine& machine : machines) {
      if (machine.id == id) return machine.state;
    }
    return State::kStopped;
  }
  std::size_t DirectoriesLeft() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(helper_->state() + "/machines"), {}));
  }

  std::unique_ptr<HelperProcess> helper_;
  std::unique_ptr<helper::RemoteDriver> driver_;
};

}  // namespace caisson::machine::firecracker
