// SPDX-License-Identifier: Apache-2.0
// Runs scripts in the root file system of tests and collects what they say.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "isolate/native/native.h"
#include "jail/test_root.h"
#include "json/reader.h"

namespace caisson::isolate::native {

using jail::RootForTests;

// Old builds of a numeric library may need to be told which processor they run on.
inline std::vector<std::string> PassedOn() {
  std::vector<std::string> passed;
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (const char* value = std::getenv(name)) passed.push_back(std::string(name) + "=" + value);
  }
  return passed;
}

inline std::unique_ptr<NativeRuntime> MakeRuntime(NativeOptions options = {}) {
  options.root = RootForTests();
  options.tenant = "test";
  options.environment = PassedOn();
  auto runtime = NativeRuntime::Create(std::move(options));
  EXPECT_TRUE(runtime) << runtime.error().message;
  if (!runtime) return nullptr;
  auto prepared = (*runtime)->Prepare();
  EXPECT_TRUE(prepared) << prepared.error().message << "\n" << prepared.error().details;
  return prepared ? *std::move(runtime) : nullptr;
}

inline bool Stands(const NativeRuntime& runtime, jail::Wall wall) {
  for (const jail::WallReport& report : runtime.Walls()) {
    if (report.name == jail::InfoOf(wall).name) return report.stands;
  }
  return false;
}

class Collector final : public ScriptSink {
 public:
  bool Take(const ScriptMessage& message) override {
    switch (message.kind) {
      case MessageKind::kDone:
        done.emplace_back(message.text);
        finals += message.final ? 1 : 0;
        break;
      case MessageKind::kStdout:
        out += message.text;
        break;
      case MessageKind::kStderr:
        err += message.text;
        break;
      default:
        others.emplace_back(message.text);
    }
    return done.size() + others.size() < stop_after;
  }
  std::vector<std::string> done;
  std::vector<std::string> others;
  std::string out;
  std::string err;
  int finals = 0;
  std::size_t stop_after = ~std::size_t{0};
};

struct Ran {
  ScriptOutcome outcome;
  Collector sink;
  std::string error;  // of a Status
};

inline Ran RunJob(ScriptRuntime& runtime, const ScriptJob& job, std::stop_token stop = {}) {
  Ran ran;
  auto outcome = runtime.Run(job, ran.sink, std::move(stop));
  if (outcome) {
    ran.outcome = *std::move(outcome);
  } else {
    ran.error = outcome.error().message;
  }
  return ran;
}

// Null for what is no JSON.
inline json::Value Parsed(const std::string& text) { return json::Read(text).value_or(nullptr); }

inline ScriptJob BlockJob(std::string source, const std::string& document = "{}") {
  ScriptJob job;
  job.source = std::move(source);
  job.inputs = "{\"user\":{},\"documents\":[" + document +
               "],\"artifacts\":[],\"sources\":[],\"tables\":{}}";
  job.limits.wall_clock = std::chrono::seconds(60);
  return job;
}

// `body` is the indented inside of run(self, state, config).
inline ScriptJob BodyJob(const std::string& body, const std::string& config = "{}") {
  ScriptJob job;
  job.entry = ScriptEntry::kBody;
  job.source = "def run(self, state, config):\n" + body;
  job.inputs = "{\"self\":{},\"state\":{},\"config\":" + config + "}";
  job.limits.wall_clock = std::chrono::seconds(60);
  return job;
}

inline std::string Show(const Ran& ran) {
  std::string text = "fault " + std::to_string(static_cast<int>(ran.outcome.fault)) + " " +
                     ran.outcome.error_type + ": " + ran.outcome.message + "\n" +
                     ran.outcome.traceback_text + ran.error;
  for (const std::string& done : ran.sink.done) text += "\ndone " + done.substr(0, 500);
  return text + "\nout " + ran.sink.out.substr(0, 500) + "\nerr " + ran.sink.err.substr(0, 2000);
}

}  // namespace caisson::isolate::native
