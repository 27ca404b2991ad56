// SPDX-License-Identifier: Apache-2.0
// Every attack of tests/corpora/attacks as a program of a machine, which is root there: a few lines
// of Python give it `documents` and `done`. Judged by the oracle that its first line names, but
// for no-forge: programs of machines settle nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jail/test_canaries.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/jail/test_jail.h"
#include "machine/test_guest.h"

namespace caisson::machine::jail {
namespace {

using namespace std::chrono_literals;

const std::filesystem::path kAttacks =
    std::filesystem::path(CAISSON_SOURCE_DIR) / "tests" / "corpora" / "attacks";

constexpr std::chrono::seconds kDeadline{6};
constexpr const char* kMark = "done: ";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> AttackNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kAttacks)) {
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

// What a block's script has and a program has not.
std::string Shim(const std::string& source, const std::string& document) {
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
         json::Quote(source) + ", 'attack', 'exec'))\n";
}

MachineSpec Spec(const std::string& id) {
  return {.id = id,
          .image = ImageForTests(),
          .memory_bytes = 256ull << 20,
          .disk_bytes = 64ull << 20,
          .pids = 64,
          .network = egress::Policy::DenyAll()};
}

class MachineAttack : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    if (WhyNoMachines().empty()) helper_ = std::make_unique<HelperProcess>(JailHelper());
  }
  static void TearDownTestSuite() { helper_.reset(); }
  void SetUp() override {
    if (const std::string why = WhyNoMachines(); !why.empty()) GTEST_SKIP() << why;
    auto driver = helper_->Open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = *std::move(driver);
    source_ = ReadFile(kAttacks / (GetParam() + ".py"));
    ASSERT_TRUE(driver_->Create(Spec("neighbour")));
  }
  void TearDown() override {
    if (driver_ == nullptr) return;
    EXPECT_TRUE(driver_->Destroy("neighbour"));
  }

  Ran Attack() {
    const auto made = driver_->Create(Spec("victim"));
    EXPECT_TRUE(made) << made.error().message;
    // With the image's libraries, which some attacks use.
    const std::string program = Shim(source_, canaries_.Document());
    Ran ran = machine::Run(*driver_, "victim", {"python3", "-Ic", program}, kDeadline);
    EXPECT_TRUE(driver_->Destroy("victim"));
    return ran;
  }
  void ExpectContained(const Ran& ran) const {
    EXPECT_EQ(ran.out.find(caisson::jail::Canaries::kText), std::string::npos) << ran.out;
    for (std::size_t at = ran.out.find(kMark); at != std::string::npos;
         at = ran.out.find(kMark, at + 1)) {
      const std::size_t begin = at + std::string(kMark).size();
      const auto value = json::Read(ran.out.substr(begin, ran.out.find('\n', begin) - begin));
      if (!value) continue;  // cut off, or printed by the attack itself
      const json::Value* escaped = value->Find("escaped");
      EXPECT_FALSE(escaped != nullptr && escaped->is_bool() && escaped->as_bool()) << ran.out;
    }
    canaries_.ExpectUntouched();
  }
  bool Oracle(const std::string& name) const {
    return source_.substr(0, source_.find('\n')).find("oracle: " + name) != std::string::npos;
  }

  static std::unique_ptr<HelperProcess> helper_;
  caisson::jail::Canaries canaries_;
  std::unique_ptr<helper::RemoteDriver> driver_;
  std::string source_;
};
std::unique_ptr<HelperProcess> MachineAttack::helper_;

TEST_P(MachineAttack, IsContained) {
  std::vector<Ran> beside;
  std::atomic<bool> over = false;
  std::thread neighbour([&] {
    do {
      beside.push_back(Python(*driver_, "neighbour", "print(sum(range(10)))"));
    } while (!over);
  });
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = Attack();
  // Its deadline is 6 s; the rest is for a machine that has other things to do.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
  over = true;
  neighbour.join();
  ExpectContained(ran);
  for (const Ran& other : beside) {
    EXPECT_EQ(other, (Ran{.error = "", .out = "45\n", .exit_code = 0, .signal = 0}))
        << other.error << other.out;
  }
  if (Oracle("limit")) {
    EXPECT_TRUE(ran.out.find(kMark) != std::string::npos || !ran.error.empty() || ran.signal != 0 ||
                ran.exit_code != 0)
        << ran.out;
  }
  if (GetParam() == "state_leak_between_runs") ExpectContained(Attack());
  EXPECT_EQ(driver_->List().value_or(std::vector<Machine>{}).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Corpus, MachineAttack, testing::ValuesIn(AttackNames()),
                         [](const auto& attack) { return attack.param; });

}  // namespace
}  // namespace caisson::machine::jail
