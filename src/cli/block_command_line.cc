// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/block_arguments.h"
#include "cli/quantity.h"

namespace caisson::cli {
namespace {

constexpr char kRunFooter[] = R"(Each input is JSON, the name of a file, or - for standard input.

Examples:
  caisson block run script.py --documents docs.json
  caisson block run script.py --documents docs.json --sources sources.json --debug
  caisson block run script.py --documents '[{"document": {}}]' --format report)";

constexpr char kServeFooter[] = R"(The protocol stands in docs/block-protocol.md.

Examples:
  caisson block serve
  caisson block serve --socket /run/caisson/block.sock --runs 4 --timeout 30s)";

constexpr char kCheckFooter[] = R"(Examples:
  caisson block check script.py
  caisson block check --runtime native --format sarif scripts/*.py > report.sarif)";

// CLI11 makes its error of what is thrown.
template <typename Target, typename Parse, typename Holds>
void AddParsed(CLI::App* app, const std::string& name, Target& target, Parse parse, Holds holds,
               const char* range, const std::string& help, const char* type) {
  app->add_option_function<std::string>(
         name,
         [name, &target, parse, holds, range](const std::string& text) {
           auto value = parse(text);
           if (!value) throw CLI::ValidationError(name, value.error());
           if (!holds(*value)) {
             throw CLI::ValidationError(name,
                                        "'" + text + "' is out of range; write a value " + range);
           }
           target = *value;
         },
         help + ", " + range)
      ->type_name(type);
}

void AddChoice(CLI::App* app, const std::string& name, const std::vector<std::string>& choices,
               const std::function<void(const std::string&)>& take, const std::string& help) {
  const std::string shown = CLI::detail::join(choices, "|");
  app->add_option_function<std::string>(
         name,
         [name, choices, shown, take](const std::string& text) {
           if (std::ranges::find(choices, text) == choices.end()) {
             throw CLI::ValidationError(name, "'" + text + "' is none of " + shown);
           }
           take(text);
         },
         help)
      ->type_name(shown);
}

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kGiB = 1u << 30;

auto Between(std::uint64_t least, std::uint64_t most) {
  return [least, most](std::uint64_t value) { return value >= least && value <= most; };
}
auto ZeroOrBetween(std::uint64_t least, std::uint64_t most) {
  return [least, most](std::uint64_t value) {
    return value == 0 || (value >= least && value <= most);
  };
}
bool IsRunTime(std::chrono::milliseconds time) {
  return time >= std::chrono::milliseconds(1) && time <= std::chrono::hours(1000);
}

void AddBytes(CLI::App* app, const char* name, std::optional<std::uint64_t>& target,
              std::uint64_t least, std::uint64_t most, const char* range, const std::string& help) {
  AddParsed(app, name, target, ParseBytes, Between(least, most), range, help, "SIZE");
}

void AddLimits(CLI::App* app, BlockLimitArguments& limits) {
  AddParsed(app, "--timeout", limits.timeout, ParseDuration, IsRunTime, "from 1ms to 1000h",
            "Wall clock of a run (120s, or PYTHON_SANDBOX_TIMEOUT_MS)", "TIME");
  AddParsed(app, "--cpu-time", limits.cpu_time, ParseDuration, IsRunTime, "from 1ms to 1000h",
            "Processor time of a run (not counted)", "TIME");
  AddBytes(app, "--memory", limits.memory, 16 * kMiB, 1024 * kGiB, "from 16MiB to 1024GiB",
           "Memory of a run (512MiB, or what PYTHON_SANDBOX_... says)");
  AddBytes(app, "--output", limits.output, 1024, 64 * kGiB, "from 1KiB to 64GiB",
           "JSON text of all results of a run (256MiB)");
  AddParsed(app, "--messages", limits.messages, ParseCount, ZeroOrBetween(1, 1'000'000'000'000),
            "0 (not counted), or from 1 to 1000G",
            "Calls of done and debug, and parts of lists (1M)", "N");
  AddBytes(app, "--stream", limits.stream, 1024, 64 * kGiB, "from 1KiB to 64GiB",
           "What is kept of the script's stdout and of its stderr (1MiB)");
  AddBytes(app, "--disk", limits.disk, 1, 64 * kGiB, "from 1B to 64GiB",
           "What a script may write in its own file system (64MiB)");
  AddParsed(app, "--pids", limits.pids, ParseCount, ZeroOrBetween(1, 1'000'000),
            "0 (not counted), or from 1 to 1M",
            "Processes and threads of a run (128, or PYTHON_SANDBOX_PIDS)", "N");
}

void AddRuntimeChoice(CLI::App* app, std::optional<std::string>& runtime, const char* help) {
  AddChoice(
      app, "--runtime", {"cpython", "native", "oci", "auto"},
      [&runtime](const std::string& name) { runtime = name; }, help);
}

void AddRuntime(CLI::App* app, BlockRuntimeArguments& arguments) {
  AddRuntimeChoice(app, arguments.runtime,
                   "Where scripts run (cpython, or PYTHON_SANDBOX_MODE); auto: chosen by imports");
  app->add_option("--image", arguments.image,
                  "Image of the runtimes native and oci, by name (python-science, or for oci "
                  "PYTHON_SANDBOX_IMAGE)")
      ->type_name("NAME");
  app->add_option("--root", arguments.root,
                  "Root file system of the runtimes native and oci, in place of an image")
      ->type_name("DIR");
  AddChoice(
      app, "--container-runtime", {"runc", "runsc", "docker", "podman"},
      [&arguments](const std::string& name) { arguments.container_runtime = name; },
      "What makes the containers of oci (runc, else runsc)");
  app->add_flag("--allow-unjailed", arguments.allow_unjailed,
                "Run even where a mandatory wall of the jail cannot be built");
  app->add_option("--workers", arguments.workers,
                  "Isolate workers (default: one per core), from 1 to 64")
      ->check(CLI::Range(1, 64).description(""))
      ->type_name("N");
}

// One set of arguments per action, and where the chosen one goes.
struct Actions {
  BlockRunArguments run;
  BlockServeArguments serve;
  BlockCheckArguments check;
  BlockLibrariesArguments libraries;
  std::function<void(BlockArguments)> take;
};

CLI::App* AddAction(CLI::App* block, const char* name, const char* help, const char* footer) {
  CLI::App* action = block->add_subcommand(name, help);
  action->footer(footer);
  action->set_help_flag("-h,--help", "Print this help and exit");
  return action;
}

void AddRun(CLI::App* block, const std::shared_ptr<Actions>& actions) {
  CLI::App* action =
      AddAction(block, "run", "Run a script on documents and print its results", kRunFooter);
  BlockRunArguments& run = actions->run;
  action->add_option("SCRIPT", run.script, "A Python file; - is standard input")
      ->required()
      ->type_name("");
  action->add_option("--documents", run.documents, "The documents: a list, or one object ([])")
      ->type_name("FILE");
  action->add_option("--sources", run.sources, "The documents of the source add-ons ([])")
      ->type_name("FILE");
  action->add_option("--artifacts", run.artifacts, "The JSON artifacts, a list ([])")
      ->type_name("FILE");
  action->add_option("--user", run.user, "The user ({})")->type_name("FILE");
  action->add_option("--tables", run.tables, "Tables by file id ({})")->type_name("FILE");
  action->add_option("--options", run.options, "Options of the serializer ({})")->type_name("FILE");
  action->add_flag("--debug", run.debug, "Show the values of debug(...)");
  using Format = BlockRunArguments::Format;
  static const std::map<std::string, Format> kFormats = {
      {"results", Format::kResults}, {"report", Format::kReport}, {"frames", Format::kFrames}};
  AddChoice(
      action, "--format", {"results", "report", "frames"},
      [&run](const std::string& name) { run.format = kFormats.at(name); },
      "results: one JSON a line; report: one document with all there is to say; frames: the lines "
      "of block serve (results)");
  AddLimits(action, run.limits);
  AddRuntime(action, run.runtime);
  action->final_callback([actions] { actions->take(actions->run); });
}

void AddServe(CLI::App* block, const std::shared_ptr<Actions>& actions) {
  CLI::App* action =
      AddAction(block, "serve", "Run blocks for a host program, by lines of JSON", kServeFooter);
  BlockServeArguments& serve = actions->serve;
  action
      ->add_option("--socket", serve.socket,
                   "Serve connections of this Unix socket, in place of standard input")
      ->type_name("PATH");
  action->add_flag("--allow-auto", serve.allow_auto,
                   "Let a request ask for the runtime auto: chosen by the imports of its script");
  AddParsed(action, "--max-line", serve.max_line_bytes, ParseBytes, Between(1024, 2 * kGiB),
            "from 1KiB to 2GiB", "The longest request (64MiB)", "SIZE");
  AddParsed(action, "--runs", serve.runs, ParseCount, Between(1, 256), "from 1 to 256",
            "Runs at a time (default: one per core)", "N");
  AddParsed(action, "--waiting", serve.waiting, ParseCount, Between(0, 100'000), "from 0 to 100K",
            "Runs that may wait for their turn (256)", "N");
  AddParsed(action, "--max-timeout", serve.max_timeout, ParseDuration, IsRunTime,
            "from 1ms to 1000h", "Wall clock that a request may ask for (1h)", "TIME");
  AddBytes(action, "--max-memory", serve.max_memory, 16 * kMiB, 1024 * kGiB,
           "from 16MiB to 1024GiB", "Memory that a request may ask for (4GiB)");
  AddBytes(action, "--max-output", serve.max_output, 1024, 64 * kGiB, "from 1KiB to 64GiB",
           "Output that a request may ask for (1GiB)");
  AddLimits(action, serve.limits);
  AddRuntime(action, serve.runtime);
  action->final_callback([actions] { actions->take(actions->serve); });
}

void AddCheck(CLI::App* block, const std::shared_ptr<Actions>& actions) {
  CLI::App* action =
      AddAction(block, "check", "Report what will fail in scripts: syntax, imports, a missing done",
                kCheckFooter);
  BlockCheckArguments& check = actions->check;
  action->add_option("FILE", check.files, "Python files; - is standard input")
      ->required()
      ->type_name("");
  AddRuntimeChoice(action, check.runtime,
                   "The runtime to check for (cpython, or PYTHON_SANDBOX_MODE); auto: any");
  using workflow::DiagnosticFormat;
  static const std::map<std::string, DiagnosticFormat> kFormats = {
      {"text", DiagnosticFormat::kText},
      {"json", DiagnosticFormat::kJson},
      {"sarif", DiagnosticFormat::kSarif}};
  AddChoice(
      action, "--format", {"text", "json", "sarif"},
      [&check](const std::string& name) { check.format = kFormats.at(name); },
      "How diagnostics are written (text)");
  action->add_flag("--strict", check.strict, "Take warnings for errors");
  action->final_callback([actions] { actions->take(actions->check); });
}

void AddLibraries(CLI::App* block, const std::shared_ptr<Actions>& actions) {
  CLI::App* action =
      AddAction(block, "libraries", "Print the libraries that scripts may import, by runtime", "");
  action->add_flag("--json", actions->libraries.json, "Print JSON instead of a table");
  action->final_callback([actions] { actions->take(actions->libraries); });
}

}  // namespace

void AddBlockActions(CLI::App* block, std::function<void(BlockArguments)> take) {
  const auto actions = std::make_shared<Actions>();
  actions->take = std::move(take);
  block->require_subcommand(1);
  AddRun(block, actions);
  AddServe(block, actions);
  AddCheck(block, actions);
  AddLibraries(block, actions);
}

}  // namespace caisson::cli
