// SPDX-License-Identifier: Apache-2.0
// For tests: a ScriptRuntime whose script says what it does, one thing a line:
//
//   done JSON | more JSON | part JSON | debug JSON | warning JSON   `more` is a done that is not
//   final out TEXT | err TEXT       "\xff" and "\n" are understood flood COUNT JSON          so
//   many `more` raise | syntax | memory | wall | cpu | output | messages | artifact | killed |
//   protocol exit CODE | fail | throw  `fail` gives a Status, `throw` an exception wait until it is
//   asked to stop, then ends as killed inputs                    `more` with the job's inputs
//
// It believes nobody's limits, so that what stands above it is seen to enforce them.
#pragma once

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "errors/internal.h"
#include "isolate/script.h"
#include "json/value.h"

namespace caisson::block {

class ScriptedRuntime final : public isolate::ScriptRuntime {
 public:
  Result<isolate::ScriptOutcome> Run(const isolate::ScriptJob& job, isolate::ScriptSink& sink,
                                     std::stop_token stop) override {
    ++runs;
    ++running;
    auto outcome = Interpret(job, sink, stop);
    --running;
    return outcome;
  }
  json::Value Describe() const override { return json::Object{{"name", "scripted"}}; }

  std::atomic<int> runs = 0;
  std::atomic<int> running = 0;
  std::atomic<int> sent = 0;  // messages that were taken

 private:
  using Kind = isolate::MessageKind;
  using Fault = isolate::Fault;

  static std::string Unescape(std::string text) {
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"\\xff", "\xff"},
                                   {"\\xc3", "\xc3"},
                                   {"\\xa9", "\xa9"},
                                   {"\\n", "\n"}}) {
      for (std::size_t at; (at = text.find(from)) != std::string::npos;) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }

  static isolate::ScriptOutcome Ended(Fault fault) {
    isolate::ScriptOutcome outcome{.fault = fault};
    outcome.usage.memory_bytes = 1024;
    if (fault == Fault::kRaised || fault == Fault::kSyntax) {
      outcome.error_type = fault == Fault::kRaised ? "ValueError" : "SyntaxError";
      outcome.message = "no \xff good";
      outcome.line = 3;
      outcome.column = 5;
      outcome.traceback = {{1, "<module>"}, {3, "f"}};
      outcome.traceback_text = "Traceback ...\nValueError: no good\n";
    }
    return outcome;
  }

  Result<isolate::ScriptOutcome> Interpret(const isolate::ScriptJob& job, isolate::ScriptSink& sink,
                                           const std::stop_token& stop) {
    std::istringstream lines(job.source);
    for (std::string line; std::getline(lines, line);) {
      const std::string op = line.substr(0, line.find(' '));
      const std::string argument = op.size() < line.size() ? line.substr(op.size() + 1) : "";
      const auto send = [&](Kind kind, std::string_view text, bool final) {
        if (!sink.Take({.kind = kind, .final = final, .text = text})) return false;
        ++sent;
        return true;
      };
      bool taken = true;
      if (op == "done") taken = send(Kind::kDone, Unescape(argument), true);
      if (op == "more") taken = send(Kind::kDone, Unescape(argument), false);
      if (op == "part") taken = send(Kind::kPart, Unescape(argument), false);
      if (op == "debug") taken = send(Kind::kDebug, Unescape(argument), false);
      if (op == "warning") taken = send(Kind::kWarning, argument, false);
      if (op == "out") taken = send(Kind::kStdout, Unescape(argument), false);
      if (op == "err") taken = send(Kind::kStderr, Unescape(argument), false);
      if (op == "inputs") taken = send(Kind::kDone, job.inputs, false);
      if (op == "flood") {
        const int count = std::stoi(argument);
        const std::string text = argument.substr(argument.find(' ') + 1);
        for (int i = 0; i < count && taken; ++i) taken = send(Kind::kDone, text, false);
      }
      if (!taken) return Ended(Fault::kKilled);
      if (op == "wait") {
        while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return Ended(Fault::kKilled);
      }
      if (op == "exit") {
        auto outcome = Ended(Fault::kExited);
        outcome.exit_code = std::stoi(argument);
        return outcome;
      }
      if (op == "fail") return Fail(errors::kInternalFailed, "no interpreter");
      if (op == "throw") throw std::runtime_error("thrown");
      for (const auto& [name, fault] : {std::pair{"raise", Fault::kRaised},
                                        {"syntax", Fault::kSyntax},
                                        {"memory", Fault::kMemory},
                                        {"wall", Fault::kWallClock},
                                        {"cpu", Fault::kCpu},
                                        {"output", Fault::kOutput},
                                        {"messages", Fault::kMessages},
                                        {"artifact", Fault::kArtifact},
                                        {"killed", Fault::kKilled},
                                        {"protocol", Fault::kProtocol}}) {
        if (op == name) return Ended(fault);
      }
    }
    return Ended(Fault::kNone);
  }
};

}  // namespace caisson::block
