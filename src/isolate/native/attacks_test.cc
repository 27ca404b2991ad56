// SPDX-License-Identifier: Apache-2.0
// Every attack of tests/corpora/attacks with real canaries and the oracle that its first line
// names, and every script of tests/corpora/benign with its expected result.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "isolate/native/native.h"
#include "isolate/native/test_support.h"
#include "jail/test_canaries.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::isolate::native {
namespace {

using namespace std::chrono_literals;

const std::filesystem::path kCorpora =
    std::filesystem::path(CAISSON_SOURCE_DIR) / "tests" / "corpora";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> ScriptsIn(const std::string& corpus) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpora / corpus)) {
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) { return info.param; }

NativeOptions With(std::vector<std::string> imports) {
  NativeOptions options;
  options.sets = {{.name = "corpus", .imports = std::move(imports)}};
  return options;
}

void ExpectServes(NativeRuntime& runtime) {
  const Ran ran = RunJob(runtime, BlockJob("done({'benign': sum(range(10))})\n"));
  ASSERT_EQ(ran.sink.done.size(), 1u) << Show(ran);
  EXPECT_EQ(Parsed(ran.sink.done[0]), Parsed("{\"benign\":45}"));
}

class Attack : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    CAISSON_NEEDS_ROOT();
    source_ = ReadFile(kCorpora / "attacks" / (GetParam() + ".py"));
    const bool numpy = source_.find("import numpy") != std::string::npos;
    runtime_ =
        MakeRuntime(With(numpy ? std::vector<std::string>{"numpy"} : std::vector<std::string>{}));
    ASSERT_NE(runtime_, nullptr);
  }
  bool Oracle(const std::string& name) const {
    return source_.substr(0, source_.find('\n')).find("oracle: " + name) != std::string::npos;
  }
  ScriptJob Job() const {
    ScriptJob job = BlockJob(source_, canaries_.Document());
    job.limits = {.memory_bytes = 256u << 20,
                  .wall_clock = 6s,
                  .output_bytes = 16u << 20,
                  .stream_bytes = 64u << 10,
                  .disk_bytes = 16u << 20,
                  .pids = 64};
    return job;
  }
  // What every run promises, whatever it did.
  void ExpectContained(const Ran& ran) const {
    EXPECT_TRUE(ran.error.empty()) << ran.error;
    for (const std::string& done : ran.sink.done) {
      const auto value = json::Read(done);
      ASSERT_TRUE(value) << done;
      EXPECT_EQ(done.find(jail::Canaries::kText), std::string::npos) << done;
      const json::Value* escaped = value->Find("escaped");
      EXPECT_FALSE(escaped != nullptr && escaped->is_bool() && escaped->as_bool()) << done;
    }
    EXPECT_EQ(ran.sink.out.find(jail::Canaries::kText), std::string::npos);
    canaries_.ExpectUntouched();
  }

  jail::TestCanaries canaries_;
  std::string source_;
  std::unique_ptr<NativeRuntime> runtime_;
};

TEST_P(Attack, IsContained) {
  const auto begin = std::chrono::steady_clock::now();
  Ran beside;
  std::jthread neighbour(
      [&] { beside = RunJob(*runtime_, BlockJob("done({'benign': sum(range(10))})\n")); });
  const Ran ran = RunJob(*runtime_, Job());
  neighbour.join();
  ExpectContained(ran);
  // Its deadline is 6 s; the rest is for a machine that has other things to do.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
  EXPECT_EQ(beside.sink.done.size(), 1u) << Show(beside);
  if (Oracle("no-forge") || GetParam() == "proc_inherited_fds") {
    EXPECT_LE(ran.sink.finals, 1) << Show(ran);
    for (const std::string& done : ran.sink.done) {
      const auto value = json::Read(done);
      ASSERT_TRUE(value && value->Find("real") != nullptr) << done;
      EXPECT_EQ(value->Find("forged"), nullptr) << done;
    }
    EXPECT_TRUE(!ran.sink.done.empty() || !ran.outcome.ok()) << Show(ran);
  }
  if (Oracle("limit")) {
    EXPECT_TRUE(!ran.sink.done.empty() || !ran.outcome.ok()) << Show(ran);
  }
  ExpectServes(*runtime_);
  if (GetParam() == "state_leak_between_runs") ExpectContained(RunJob(*runtime_, Job()));
}

INSTANTIATE_TEST_SUITE_P(Corpus, Attack, testing::ValuesIn(ScriptsIn("attacks")), NameOf);

bool Near(double a, double b) {
  return std::abs(a - b) <= std::max(1e-9, 1e-6 * std::max(std::abs(a), std::abs(b)));
}

bool Matches(const json::Value& got, const json::Value& want) {
  if (got.is_number() && want.is_number()) return Near(got.ToDouble(), want.ToDouble());
  if (got.is_array() && want.is_array()) {
    return std::ranges::equal(got.as_array(), want.as_array(), Matches);
  }
  if (got.is_object() && want.is_object()) {
    return got.as_object().size() == want.as_object().size() &&
           std::ranges::all_of(want.as_object(), [&got](const auto& member) {
             const json::Value* value = got.Find(member.first);
             return value != nullptr && Matches(*value, member.second);
           });
  }
  return got == want;
}

class Benign : public testing::TestWithParam<std::string> {};

TEST_P(Benign, GivesWhatIsExpected) {
  CAISSON_NEEDS_ROOT();
  const auto runtime = MakeRuntime();
  ASSERT_NE(runtime, nullptr);
  const auto data = json::Read(ReadFile(kCorpora / "benign" / (GetParam() + ".json")));
  ASSERT_TRUE(data);
  ScriptJob job = BlockJob(ReadFile(kCorpora / "benign" / (GetParam() + ".py")));
  job.inputs = "{\"user\":{},\"artifacts\":[],\"sources\":[],\"tables\":{},\"documents\":" +
               *json::Write(*data->Find("input")) + "}";
  const Ran ran = RunJob(*runtime, job);
  if (ran.outcome.error_type == "ModuleNotFoundError" || ran.outcome.error_type == "ImportError") {
    GTEST_SKIP() << "the root file system lacks a library: " << ran.outcome.message;
  }
  ASSERT_EQ(ran.sink.done.size(), 1u) << Show(ran);
  const auto got = json::Read(ran.sink.done[0]);
  ASSERT_TRUE(got);
  EXPECT_TRUE(Matches(*got, *data->Find("expected"))) << ran.sink.done[0] << "\nexpected\n"
                                                      << *json::Write(*data->Find("expected"));
}

INSTANTIATE_TEST_SUITE_P(Corpus, Benign, testing::ValuesIn(ScriptsIn("benign")), NameOf);

}  // namespace
}  // namespace caisson::isolate::native
