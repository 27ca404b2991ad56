// SPDX-License-Identifier: Apache-2.0
// Probes the artifact as the build uses it: the names of its builtins, and what some six hundred
// snippets print (runtimes/micropython/probes.json). The compiler's tables rest on these answers,
// so a change of any of them fails here until the tables are renewed; with CAISSON_BLESS=1 in the
// environment the file is rewritten with what the artifact says now.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "isolate/micropython/builtins.h"
#include "isolate/micropython/layout.h"
#include "isolate/micropython/pins.h"
#include "isolate/micropython/test_runtime.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

constexpr const char* kFile = CAISSON_SOURCE_DIR "/runtimes/micropython/probes.json";

json::Value ReadProbes() {
  std::ifstream file(kFile);
  std::stringstream text;
  text << file.rdbuf();
  Result<json::Value> probes = json::Read(text.str());
  EXPECT_TRUE(probes) << kFile << ": " << probes.error().message;
  return probes ? *probes : json::Value();
}

std::string WithoutLastNewline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string Probe(const std::string& code) {
  json::Object payload{{"state", json::Object{{"code", code}}}};
  Limits limits;
  limits.heap_bytes = 1u << 20;  // the artifact's default, with which the answers were recorded
  const Outcome outcome = CallOn(OpenExecutor(),
                                 "def run(self, state, config):\n"
                                 "    probe(state['code'])\n"
                                 "    return {}\n",
                                 *json::Write(json::Value(std::move(payload))), limits);
  return outcome.ok() ? WithoutLastNewline(outcome.stdout_text) : "!!" + Show(outcome);
}

// One probe a line, so that a change shows as one line.
void Bless(const json::Value& names, const std::vector<json::Value>& probes) {
  std::ofstream file(kFile);
  file << "{\n \"artifact_sha256\": \"" << pins::kDerivedSha256
       << "\",\n \"builtins\": " << *json::Write(names, {.spaced = true}) << ",\n \"probes\": [\n";
  for (std::size_t i = 0; i < probes.size(); ++i) {
    file << "  " << *json::Write(probes[i], {.spaced = true})
         << (i + 1 == probes.size() ? "\n" : ",\n");
  }
  file << " ]\n}\n";
}

std::string BuiltinNames() {
  return Probe("import builtins\nprint(sorted([n for n in dir(builtins) if n[0] != '_']))");
}

json::Value ParseNames(std::string text) {
  std::ranges::replace(text, '\'', '"');
  return json::Read(text).value_or(json::Value());
}

TEST(Probe, TheArtifactIsTheOneThatTheAnswersAreOf) {
  EXPECT_EQ(ReadProbes().Find("artifact_sha256")->as_string(), pins::kDerivedSha256);
  EXPECT_EQ(layout::kArtifactSha256, pins::kDerivedSha256);
}

TEST(Probe, TheBuiltinsAreThoseOfTheTablesAndTheAllowedOnesAreAmongThem) {
  const json::Value names = ParseNames(BuiltinNames());
  ASSERT_TRUE(names.is_array());
  const json::Value probes = ReadProbes();
  const json::Value* recorded = probes.Find("builtins");
  if (std::getenv("CAISSON_BLESS") == nullptr) {
    EXPECT_TRUE(names == *recorded);
  }
  for (const std::string_view allowed : kAllowedBuiltins) {
    EXPECT_TRUE(std::ranges::any_of(names.as_array(), [&](const json::Value& name) {
      return name.as_string() == allowed;
    })) << allowed;
  }
}

TEST(Probe, ABodySeesTheAllowedBuiltinsAndNoOther) {
  const json::Value names = ParseNames(BuiltinNames());
  ASSERT_TRUE(names.is_array());
  std::size_t seen = 0;
  for (const json::Value& name : names.as_array()) {
    const Outcome outcome =
        Call("def run(self, state, config):\n    x = " + name.as_string() + "\n    return {}\n");
    const bool allowed =
        std::ranges::find(kAllowedBuiltins, name.as_string()) != kAllowedBuiltins.end();
    EXPECT_EQ(outcome.ok(), allowed) << name.as_string() << " " << Show(outcome);
    seen += outcome.ok() ? 1 : 0;
  }
  EXPECT_EQ(seen, kAllowedBuiltins.size());
}

TEST(Probe, EverySnippetPrintsWhatIsRecorded) {
  const json::Value file = ReadProbes();
  const bool bless = std::getenv("CAISSON_BLESS") != nullptr;
  std::vector<json::Value> now;
  for (const json::Value& probe : file.Find("probes")->as_array()) {
    const std::string& code = probe.Find("code")->as_string();
    const std::string output = Probe(code);
    if (!bless) {
      EXPECT_EQ(output, probe.Find("output")->as_string()) << probe.Find("id")->as_string() << ":\n"
                                                           << code;
    }
    now.emplace_back(json::Object{{"id", *probe.Find("id")}, {"code", code}, {"output", output}});
  }
  EXPECT_GT(now.size(), 500u);
  if (bless) Bless(ParseNames(BuiltinNames()), now);
}

}  // namespace
}  // namespace caisson::isolate
