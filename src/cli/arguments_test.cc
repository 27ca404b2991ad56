// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "cli/completions.h"
#include "errors/cli.h"

namespace caisson::cli {
namespace {

Result<Arguments> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "caisson");
  return ParseArguments(static_cast<int>(words.size()), words.data());
}

template <typename T>
T Expect(std::vector<const char*> words) {
  auto arguments = Parse(std::move(words));
  if (!arguments) {
    ADD_FAILURE() << arguments.error().message;
    return {};
  }
  EXPECT_TRUE(std::holds_alternative<T>(*arguments));
  return std::holds_alternative<T>(*arguments) ? std::get<T>(*std::move(arguments)) : T{};
}

TEST(Arguments, RunTakesEverything) {
  const auto run = Expect<RunArguments>({"run",      "w.py",
                                         "--input",  R"({"a":[1]})",
                                         "--config", "@c.json",
                                         "--events", "--policy",
                                         "raise",    "--credential",
                                         "a=env:A",  "--credential",
                                         "b=@f",     "--timeout",
                                         "1.5s",     "--allow-unjailed",
                                         "--mode",   "restricted",
                                         "--format", "json",
                                         "--strict", "--workers",
                                         "3",        "--memory",
                                         "64MiB",    "--heap",
                                         "16MiB",    "--fuel",
                                         "2G",       "--call-timeout",
                                         "250ms",    "--output",
                                         "1MiB",     "-q",
                                         "--report"});
  EXPECT_EQ(run.source.file, "w.py");
  EXPECT_EQ(run.source.format, workflow::DiagnosticFormat::kJson);
  EXPECT_EQ(run.source.mode, "restricted");
  EXPECT_TRUE(run.source.strict && run.execution.events && run.execution.quiet &&
              run.execution.report);
  EXPECT_EQ(run.input, R"({"a":[1]})");
  EXPECT_EQ(run.config, "@c.json");
  EXPECT_EQ(run.policy, graph::Policy::kRaise);
  ASSERT_EQ(run.execution.credentials.size(), 2u);
  EXPECT_TRUE(run.execution.credentials[0].from_environment);
  EXPECT_EQ(run.execution.credentials[0].place, "A");
  EXPECT_FALSE(run.execution.credentials[1].from_environment);
  EXPECT_EQ(run.execution.credentials[1].name, "b");
  EXPECT_EQ(run.timeout, std::chrono::milliseconds(1500));
  EXPECT_TRUE(run.isolation.allow_unjailed);
  EXPECT_EQ(run.isolation.workers, 3);
  EXPECT_EQ(run.isolation.limits.memory_bytes, 64u << 20);
  EXPECT_EQ(run.isolation.limits.heap_bytes, 16u << 20);
  EXPECT_EQ(run.isolation.limits.fuel, 2'000'000'000u);
  EXPECT_EQ(run.isolation.limits.wall_clock, std::chrono::milliseconds(250));
  EXPECT_EQ(run.isolation.limits.output_bytes, 1u << 20);
}

TEST(Arguments, DefaultsAreThoseOfTheLimits) {
  const auto run = Expect<RunArguments>({"run", "-"});
  EXPECT_EQ(run.source.file, "-");
  EXPECT_EQ(run.isolation.limits, isolate::Limits{});
  EXPECT_EQ(run.input, "{}");
  EXPECT_FALSE(run.timeout || run.config || run.source.mode || run.isolation.allow_unjailed);
}

TEST(Arguments, CheckTakesManyFiles) {
  const auto check = Expect<CheckArguments>({"check", "a.py", "b.py", "--format", "sarif", "c.py"});
  EXPECT_EQ(check.files, (std::vector<std::string>{"a.py", "b.py", "c.py"}));
  EXPECT_EQ(check.source.format, workflow::DiagnosticFormat::kSarif);
}

TEST(Arguments, OthersParse) {
  EXPECT_EQ(Expect<CompileArguments>({"compile", "w.py", "-o", "ir.json"}).output, "ir.json");
  EXPECT_TRUE(Expect<GraphArguments>({"graph", "w.py", "--format", "dot"}).dot);
  EXPECT_FALSE(Expect<GraphArguments>({"graph", "w.py"}).dot);
  EXPECT_EQ(Expect<SchemaArguments>({"schema", "w.py"}).source.file, "w.py");
  EXPECT_TRUE(Expect<DoctorArguments>({"doctor", "--json"}).json);
  EXPECT_EQ(Expect<CompletionsArguments>({"completions", "zsh"}).shell, "zsh");
  const auto explain =
      Expect<EgressArguments>({"egress", "explain", "a.test,b.test", "b.test:443"});
  EXPECT_EQ(explain.rules, "a.test,b.test");
  EXPECT_EQ(explain.destination, "b.test:443");
}

TEST(Arguments, HelpHasExamplesAndVersionANumber) {
  for (const char* command : {"check", "compile", "run", "schema", "graph"}) {
    const auto help = Expect<PrintArguments>({command, "--help"});
    EXPECT_NE(help.text.find("Example"), std::string::npos) << command;
  }
  EXPECT_TRUE(Expect<PrintArguments>({"--version"}).text.starts_with("caisson "));
  EXPECT_NE(Expect<PrintArguments>({"--help"}).text.find("Exit codes"), std::string::npos);
}

TEST(Arguments, WrongOnesAreUsageErrors) {
  const std::vector<std::vector<const char*>> cases = {{},
                                                       {"fly"},
                                                       {"check"},
                                                       {"run"},
                                                       {"run", "a.py", "b.py"},
                                                       {"run", "a.py", "--policy", "keep"},
                                                       {"run", "a.py", "--timeout", "soon"},
                                                       {"run", "a.py", "--memory", "-1"},
                                                       {"run", "a.py", "--workers", "0"},
                                                       {"run", "a.py", "--unknown"},
                                                       {"run", "a.py", "--credential", "x"},
                                                       {"compile", "a.py", "--format", "yaml"},
                                                       {"completions", "tcsh"},
                                                       {"egress"},
                                                       {"egress", "explain", "a.test"}};
  for (const auto& words : cases) {
    auto arguments = Parse(words);
    ASSERT_FALSE(arguments);
    EXPECT_EQ(arguments.error().code, errors::kCliUsage);
    EXPECT_NE(arguments.error().message.find("--help"), std::string::npos);
  }
}

TEST(Arguments, ASecretOnTheCommandLineIsNotRepeated) {
  auto arguments = Parse({"run", "a.py", "--credential", "key=hunter2"});
  ASSERT_FALSE(arguments);
  EXPECT_EQ(arguments.error().message.find("hunter2"), std::string::npos);
}

TEST(Completions, NameEveryCommandAndOption) {
  const auto commands = DescribeCommands();
  ASSERT_GE(commands.size(), 8u);
  for (const std::string& script :
       {BashCompletions(commands), ZshCompletions(commands), FishCompletions(commands)}) {
    for (const CommandInfo& command : commands) {
      EXPECT_NE(script.find(command.name), std::string::npos);
      for (const OptionInfo& option : command.options) {
        for (const std::string& name : option.names) {
          EXPECT_NE(script.find(name.substr(name.find_first_not_of('-'))), std::string::npos)
              << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace caisson::cli
