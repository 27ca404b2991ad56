// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/boot_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "errors/machine.h"
#include "machine/microvm/command_line.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class BootFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/caisson-boot-XXXXXX";
    directory_ = ::mkdtemp(name);
    Write("kernel/vmlinuz", "a kernel");
    Write("kernel/modules/order", "one.ko\ntwo.ko\n");
    Write("kernel/modules/one.ko", "1");
    Write("kernel/modules/two.ko", "22");
    Write("agent", "the agent");
    Write("init", "the first program");
  }
  void TearDown() override { fs::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) const {
    const fs::path path = fs::path(directory_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Result<BootFiles> Make() const {
    return MakeBootFiles(directory_ + "/kernel", directory_ + "/agent", directory_ + "/init",
                         directory_ + "/boot");
  }
  std::string directory_;
};

TEST_F(BootFilesTest, are_made_anew_when_what_goes_in_is_another_and_only_then) {
  const auto first = Make();
  ASSERT_TRUE(first) << first.error().message;
  const auto time = fs::last_write_time(directory_ + "/boot/initrd");
  const auto again = Make();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(fs::last_write_time(directory_ + "/boot/initrd"), time);
  Write("agent", "another agent");
  const auto other = Make();
  ASSERT_TRUE(other);
  EXPECT_NE(other->id, first->id);
}

TEST_F(BootFilesTest, a_kernel_that_was_not_fetched_is_told_with_what_to_do) {
  fs::remove(directory_ + "/kernel/vmlinuz");
  const auto files = Make();
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, errors::kMachineUnavailable);
  EXPECT_NE(files.error().message.find("caisson images kernel"), std::string::npos);
}

TEST_F(BootFilesTest, the_initial_file_system_has_every_file_at_its_place) {
  ASSERT_TRUE(Make());
  std::ifstream file(directory_ + "/boot/initrd");
  std::stringstream text;
  text << file.rdbuf();
  const std::string bytes = text.str();
  EXPECT_EQ(bytes.size() % 4, 0u);
  std::size_t at = 0;
  for (const char* name : {"dev", "dev/console", "modules", "modules/order", "modules/one.ko",
                           "modules/two.ko", "init", "caisson-agent", "TRAILER!!!"}) {
    ASSERT_EQ(bytes.substr(at, 6), "070701") << name;
    const auto number = [&](std::size_t field) {
      return std::stoul(bytes.substr(at + 6 + 8 * field, 8), nullptr, 16);
    };
    const std::size_t size = number(6);
    const std::size_t name_size = number(11);
    EXPECT_EQ(bytes.substr(at + 110, name_size), std::string(name) + '\0');
    at += (110 + name_size + 3) / 4 * 4;
    at += (size + 3) / 4 * 4;
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(ModuleDependencies, are_what_the_object_says) {
  EXPECT_EQ(DependenciesOf("\0license=GPL\0depends=virtio,virtio_ring\0name=x\0"s),
            "virtio,virtio_ring");
  EXPECT_EQ(DependenciesOf("\0depends=\0"s), "");
  EXPECT_EQ(DependenciesOf("depends="s), "");
  EXPECT_EQ(DependenciesOf(""), "");
}

TEST(Plans, come_out_as_they_went_in) {
  Plan plan;
  plan.uid = 0x70010000;
  plan.own = "/a/b";
  plan.base = "/c";
  plan.accelerator = Accelerator::kKvm;
  plan.ram_bytes = 1ull << 33;
  plan.processors = 3;
  plan.network = true;
  plan.mac = "02:00:00:00:00:01";
  plan.disk_bytes = 1ull << 40;
  const auto back = PlanFromJson(ToJson(plan));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(ToJson(*back), ToJson(plan));
  EXPECT_FALSE(PlanFromJson(json::Object{{"uid", 1}}));
}

TEST(KernelCommands, tell_an_emulated_processor_its_pace_and_no_other) {
  Plan plan;
  plan.tsc_khz = 2'300'000;
  EXPECT_NE(KernelCommand(plan).find("tsc_early_khz=2300000 lpj=9200000"), std::string::npos);
  plan.accelerator = Accelerator::kKvm;
  EXPECT_EQ(KernelCommand(plan).find("tsc"), std::string::npos);
}

}  // namespace
}  // namespace caisson::machine::microvm
