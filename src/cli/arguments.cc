// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "cli/prepared_vm.h"
#include "cli/quantity.h"
#include "errors/cli.h"

namespace caisson::cli {
namespace {

constexpr char kFooter[] =
    R"(Results go to standard output as JSON, everything else to standard error.

Examples:
  caisson check workflow.py                            all diagnostics of a file
  caisson run workflow.py --input '{"score": 7}'       compile and run
  caisson compile workflow.py -o ir.json               the frozen IR
  caisson doctor                                       which walls stand on this host

Exit codes: 0 done, 1 internal, 2 usage, 3 refused, 4 run failed, 5 limit hit,
            6 unavailable, 7 no isolation, 8 file not readable or writable,
            9 the run waits for an answer)";

constexpr char kCheckFooter[] = R"(Examples:
  caisson check workflow.py
  caisson check --strict --format sarif workflows/*.py > report.sarif
  cat workflow.py | caisson check -)";

constexpr char kCompileFooter[] = R"(Examples:
  caisson compile workflow.py -o ir.json
  caisson compile workflow.py --index        the IR with its content id, schedules and credentials
  caisson compile ir.json                    check an IR and write its canonical bytes)";

constexpr char kMigrateFooter[] = R"(Examples:
  caisson migrate workflow.py                          the changes as a diff; what is left to decide
  caisson migrate workflow.py -o restricted.py
  caisson migrate workflow.py --in-place && caisson check workflow.py

Exit code 3: a person has to decide something; the decisions are listed with their lines.)";

constexpr char kRunFooter[] = R"(Examples:
  caisson run workflow.py --input '{"score": 7}'
  caisson run ir.json --input @input.json --config '{"recursion_limit": 50}'
  caisson run workflow.py --input - --events < input.json
  caisson run workflow.py --credential api_key=env:API_KEY --credential db=@/run/secrets/db)";

constexpr char kSchemaFooter[] = R"(Example:
  caisson schema workflow.py)";

constexpr char kGraphFooter[] = R"(Examples:
  caisson graph workflow.py
  caisson graph workflow.py --format dot | dot -Tsvg > workflow.svg)";

constexpr char kMachinedFooter[] =
    R"(Everything that needs root is here; the service asks for it over the socket, to which the user of
--user alone can connect. Machines outlive this process, and the next one goes on with them.

Example:
  sudo caisson machined --state /var/lib/caisson/machines --socket /run/caisson/machined.sock \
                        --user 990)";

constexpr char kEgressFooter[] = R"(Examples:
  caisson egress explain 'api.example.com,*.example.net' files.example.net:443
  caisson egress explain 203.0.113.0/24:443 example.com)";

constexpr char kNodesFooter[] = R"(Examples:
  caisson nodes
  caisson nodes --json)";

constexpr char kRuntimesFooter[] = R"(Examples:
  caisson runtimes install cpython
  caisson runtimes list)";

constexpr char kImagesFooter[] = R"(Examples:
  sudo caisson images build python-science
  sudo caisson images build python-science --verify
  caisson images list
  sudo caisson images rm python-science)";

constexpr char kBlockFooter[] = R"(Examples:
  caisson block run script.py --documents docs.json
  caisson block serve --socket /run/caisson/block.sock
  caisson block check script.py
  caisson block libraries)";

constexpr char kCompletionsFooter[] = R"(Examples:
  source <(caisson completions bash)
  caisson completions zsh > ~/.zfunc/_caisson
  caisson completions fish > ~/.config/fish/completions/caisson.fish)";

using namespace std::chrono_literals;

// What an option takes, with the sentence that help and refusals show.
template <typename Quantity>
struct Range {
  Quantity least;
  Quantity most;
  const char* shown;
  bool takes_zero = false;

  bool Holds(Quantity value) const {
    return (value >= least && value <= most) || (takes_zero && value == Quantity{});
  }
};

constexpr std::uint64_t kKiB = 1u << 10;
constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kGiB = 1u << 30;

// The interpreter starts with no less, and its addresses have 32 bits. Beyond the heap's bound its
// allocator breaks.
constexpr Range<std::uint64_t> kHeapRange{256 * kKiB, 512 * kMiB, "from 256KiB to 512MiB"};
// What the interpreter needs beside its heap.
constexpr std::uint64_t kBesideHeap = 2 * kMiB;
constexpr Range<std::uint64_t> kMemoryRange{kHeapRange.least + kBesideHeap, 4 * kGiB,
                                            "from the heap and 2MiB to 4GiB"};
// A message of a worker has at most 1 GiB.
constexpr Range<std::uint64_t> kOutputRange{kKiB, 512 * kMiB, "from 1KiB to 512MiB"};
// An empty body needs half of the least.
constexpr Range<std::uint64_t> kFuelRange{1'000'000, 1'000'000'000'000'000,
                                          "0, or from 1M to 1000000G", true};
constexpr Range<std::uint64_t> kStateRange{64 * kKiB, 64 * kGiB, "from 64KiB to 64GiB"};
constexpr Range<std::chrono::milliseconds> kTimeRange{1ms, 1000h, "from 1ms to 1000h"};

// Gives the option's text to `take`; CLI11 makes its error of what that throws. (The analyzer of
// clang takes the copy of a function in CLI11's own add_option_function for a leak.)
CLI::Option* AddText(CLI::App* app, const std::string& name,
                     std::function<void(const std::string&)> take, const std::string& help) {
  CLI::callback_t callback = [take = std::move(take)](const CLI::results_t& words) {
    take(words.back());
    return true;
  };
  return app->add_option(name, std::move(callback), help);
}

template <typename Parse, typename Target, typename Quantity>
CLI::Option* AddQuantity(CLI::App* app, const char* name, Target& target, Parse parse,
                         const Range<Quantity>& range, const std::string& help, const char* type) {
  const auto take = [name, &target, parse, range](const std::string& text) {
    auto value = parse(text);
    if (!value) throw CLI::ValidationError(name, value.error());
    if (!range.Holds(*value)) {
      throw CLI::ValidationError(name,
                                 "'" + text + "' is out of range; write a value " + range.shown);
    }
    target = *value;
  };
  return AddText(app, name, take, help + ", " + range.shown)->type_name(type);
}

// One of `choices`. The type name shows them, lower-case words between bars; completions read it.
CLI::Option* AddChoice(CLI::App* app, const std::string& name,
                       const std::vector<std::string>& choices,
                       const std::function<void(const std::string&)>& take, const char* help) {
  const std::string shown = CLI::detail::join(choices, "|");
  const auto check = [name, choices, shown, take](const std::string& text) {
    if (std::ranges::find(choices, text) == choices.end()) {
      throw CLI::ValidationError(name, "'" + text + "' is none of " + shown);
    }
    take(text);
  };
  return AddText(app, name, check, help)->type_name(shown);
}

// One parse: the tree of commands and the structs that it fills.
class CommandLine {
 public:
  CommandLine() {
    app_.name("caisson");
    app_.set_version_flag("--version", "caisson " CAISSON_VERSION);
    app_.require_subcommand(1);
    app_.footer(kFooter);
    app_.set_help_flag("-h,--help", "Print this help and exit");
    AddCheck();
    AddCompile();
    AddMigrate();
    AddRun();
    AddSchema();
    AddGraph();
    AddNodes();
    AddDescribe();
    AddDoctor();
    AddMachined();
    AddEgress();
    AddRuntimes();
    AddImages();
    AddBlock();
    AddServiceCommands(&app_, [this](ServiceArguments chosen) {
      service_ = std::move(chosen);
      chosen_ = &service_;
    });
    AddRunsCommands(&app_, [this](RunsCommand chosen) {
      runs_ = std::move(chosen);
      chosen_ = &runs_;
    });
    AddCompletions();
  }

  Result<Arguments> Parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& wish) {  // --help, --version
      std::ostringstream out;
      std::ostringstream unused;
      app_.exit(wish, out, unused);
      return PrintArguments{out.str()};
    } catch (const CLI::RequiredError& error) {
      const bool has_word = argc > 1 && argv[1][0] != '-' && app_.get_subcommands().empty();
      return Fail(errors::kCliUsage, (has_word ? "'" + std::string(argv[1]) + "' is no subcommand"
                                               : std::string(error.what())) +
                                         "; " + HelpHint());
    } catch (const CLI::Error& error) {
      return Fail(errors::kCliUsage, std::string(error.what()) + "; " + HelpHint());
    }
    return Chosen();
  }

  CLI::App& app() { return app_; }

 private:
  CLI::App* Subcommand(const char* name, const char* help, const char* footer = "") {
    CLI::App* command = app_.add_subcommand(name, help);
    command->footer(footer);
    command->set_help_flag("-h,--help", "Print this help and exit");
    return command;
  }

  std::string HelpHint() const {
    for (const CLI::App* command : app_.get_subcommands()) {
      return "see caisson " + command->get_name() + " --help";
    }
    return "see caisson --help";
  }

  static void AddFile(CLI::App* command, std::string& file, const char* help) {
    command->add_option("FILE", file, help)->required()->type_name("");
  }

  static void AddFormat(CLI::App* command, SourceArguments& source) {
    using workflow::DiagnosticFormat;
    static const std::map<std::string, DiagnosticFormat> kFormats = {
        {"text", DiagnosticFormat::kText},
        {"json", DiagnosticFormat::kJson},
        {"sarif", DiagnosticFormat::kSarif}};
    AddChoice(
        command, "--format", {"text", "json", "sarif"},
        [&source](const std::string& name) { source.format = kFormats.at(name); },
        "How diagnostics are written (text)");
  }

  static void AddSource(CLI::App* command, SourceArguments& source) {
    AddFormat(command, source);
    AddMode(command, source);
    AddRuntimes(command, source.runtimes);
    command->add_flag("--strict", source.strict, "Take warnings for errors");
  }

  static void AddRuntimes(CLI::App* command, workflow::CodeRuntimes& runtimes) {
    AddChoice(
        command, "--runtime", {"micropython", "cpython"},
        [&runtimes](const std::string& name) { runtimes.all = *workflow::FindCodeRuntime(name); },
        "The Python of code nodes (micropython); cpython once it is installed (caisson runtimes)")
        ->envname("CAISSON_CODE_RUNTIME");
    command
        ->add_option_function<std::vector<std::string>>(
            "--node-runtime",
            [&runtimes](const std::vector<std::string>& all) {
              for (const std::string& text : all) AddNodeRuntime(text, runtimes);
            },
            "The Python of one code node: NODE=micropython or NODE=cpython; may be repeated")
        ->type_name("NODE=NAME");
  }

  static void AddNodeRuntime(const std::string& text, workflow::CodeRuntimes& runtimes) {
    const std::size_t equals = text.rfind('=');
    const auto runtime = equals == std::string::npos
                             ? std::nullopt
                             : workflow::FindCodeRuntime(std::string_view(text).substr(equals + 1));
    if (!runtime || equals == 0) {
      throw CLI::ValidationError("--node-runtime",
                                 "'" + text + "' is not NODE=micropython or NODE=cpython");
    }
    runtimes.nodes[text.substr(0, equals)] = *runtime;
  }

  static void AddMode(CLI::App* command, SourceArguments& source) {
    AddText(
        command, "--mode", [&source](const std::string& mode) { source.mode = mode; },
        "Definition mode (unrestricted does not exist yet)")
        ->type_name("restricted");
  }

  static void AddIsolation(CLI::App* command, IsolationArguments& isolation) {
    isolate::Limits& limits = isolation.limits;
    command->add_flag("--allow-unjailed", isolation.allow_unjailed,
                      "Run even where a mandatory wall of the jail cannot be built");
    command
        ->add_option("--workers", isolation.workers,
                     "Isolate workers (default: one per core), from 1 to 64")
        ->check(CLI::Range(1, 64).description(""))
        ->type_name("N");
    AddQuantity(command, "--memory", limits.memory_bytes, ParseBytes, kMemoryRange,
                "Linear memory of one call (256MiB)", "SIZE");
    AddQuantity(command, "--heap", limits.heap_bytes, ParseBytes, kHeapRange,
                "The guest's own heap (8MiB); a snapshot is made per size", "SIZE");
    AddQuantity(command, "--fuel", limits.fuel, ParseCount, kFuelRange,
                "Fuel of one call (1000M; 0: not counted)", "N");
    AddQuantity(command, "--call-timeout", limits.wall_clock, ParseDuration, kTimeRange,
                "Wall clock of one call (30s)", "TIME");
    AddQuantity(command, "--output", limits.output_bytes, ParseBytes, kOutputRange,
                "JSON text that one call may return (64MiB)", "SIZE");
  }

  static void CheckTogether(const isolate::Limits& limits) {
    if (limits.heap_bytes + kBesideHeap <= limits.memory_bytes) return;
    throw CLI::ValidationError(
        "--memory", std::to_string(limits.memory_bytes) +
                        " bytes of linear memory do not hold a heap of " +
                        std::to_string(limits.heap_bytes) +
                        " bytes and 2MiB beside it; give more memory, or a smaller --heap");
  }

  static void CheckForRuntimes(const CLI::App* command, const workflow::CodeRuntimes& runtimes) {
    if (runtimes.Uses(workflow::CodeRuntime::kMicroPython)) return;
    for (const char* name : {"--heap", "--fuel"}) {
      if (command->get_option(name)->count() == 0) continue;
      throw CLI::ValidationError(
          name,
          "only limits MicroPython, and all code nodes run in CPython; limit "
          "them by --memory and --call-timeout");
    }
  }

  void AddCheck() {
    CLI::App* command =
        Subcommand("check", "Report every mistake in workflow files or IRs", kCheckFooter);
    command->add_option("FILE", check_.files, "Workflow files or IRs; - is standard input")
        ->required()
        ->type_name("");
    AddSource(command, check_.source);
    command->final_callback([this] { chosen_ = &check_; });
  }

  void AddCompile() {
    CLI::App* command =
        Subcommand("compile", "Compile a workflow file to its frozen IR", kCompileFooter);
    AddFile(command, compile_.source.file, "A workflow file or IR; - is standard input");
    command->add_option("-o", compile_.output, "Write the IR to this file")->type_name("FILE");
    command->add_flag("--index", compile_.index,
                      "Write {content_id, ir, index}: the IR's hash, and the cron entries, "
                      "listeners and credentials of the source");
    AddSource(command, compile_.source);
    command->final_callback([this] { chosen_ = &compile_; });
  }

  void AddMigrate() {
    CLI::App* command =
        Subcommand("migrate", "Rewrite an unrestricted workflow file into the restricted grammar",
                   kMigrateFooter);
    AddFile(command, migrate_.file, "A workflow file; - is standard input");
    CLI::Option* output =
        command->add_option("-o", migrate_.output, "Write the result to this file")
            ->type_name("FILE");
    CLI::Option* in_place = command
                                ->add_flag("--in-place", migrate_.in_place,
                                           "Replace the file, when nothing is left to decide")
                                ->excludes(output);
    command
        ->add_flag("--check", migrate_.check,
                   "Write nothing: only say what is left to decide, and exit with 3 if there is")
        ->excludes(output)
        ->excludes(in_place);
    command->add_flag("--json", migrate_.json,
                      "Print JSON: the result, the edits, and what is left to decide");
    command->final_callback([this] {
      if (migrate_.in_place && migrate_.file == "-") {
        throw CLI::ValidationError("--in-place", "needs a file; standard input cannot be replaced");
      }
      if (migrate_.json && migrate_.output == "-") {
        throw CLI::ValidationError("--json", "holds the result itself; leave -o - out");
      }
      chosen_ = &migrate_;
    });
  }

  void AddRun() {
    CLI::App* command = Subcommand("run", "Run a workflow file or an IR", kRunFooter);
    AddFile(command, run_.source.file, "A workflow file or IR; - is standard input");
    command->add_option("--input", run_.input, "The run's inputs: JSON, @file or - ({})")
        ->type_name("JSON");
    command->add_option("--config", run_.config, "The run's configuration: JSON or @file")
        ->type_name("JSON");
    AddExecution(command, run_.execution);
    AddPolicy(command);
    AddQuantity(command, "--timeout", run_.timeout, ParseDuration, kTimeRange,
                "Time for the whole run", "TIME");
    AddQuantity(command, "--state", run_.state_bytes, ParseBytes, kStateRange,
                "All that the run may hold (256MiB), shared parts counted each time", "SIZE");
    AddIsolation(command, run_.isolation);
    AddSource(command, run_.source);
    command->final_callback([this, command] {
      CheckTogether(run_.isolation.limits);
      CheckForRuntimes(command, run_.source.runtimes);
      chosen_ = &run_;
    });
  }

  void AddPolicy(CLI::App* command) {
    AddChoice(
        command, "--policy", {"drop", "raise"},
        [this](const std::string& name) {
          run_.policy = name == "raise" ? graph::Policy::kRaise : graph::Policy::kDrop;
        },
        "What to do with state that has no JSON form on its way into a code node (drop)");
  }

  void AddSchema() {
    CLI::App* command = Subcommand(
        "schema", "Print the JSON Schemas of a workflow's tools and responses", kSchemaFooter);
    AddFile(command, schema_.source.file, "A workflow file or IR; - is standard input");
    AddSource(command, schema_.source);
    command->final_callback([this] { chosen_ = &schema_; });
  }

  void AddGraph() {
    CLI::App* command = Subcommand("graph", "Draw a workflow as Mermaid or DOT", kGraphFooter);
    AddFile(command, graph_.source.file, "A workflow file or IR; - is standard input");
    AddChoice(
        command, "--format", {"mermaid", "dot"},
        [this](const std::string& name) { graph_.dot = name == "dot"; },
        "The language of the drawing (mermaid)");
    AddMode(command, graph_.source);
    command->final_callback([this] { chosen_ = &graph_; });
  }

  void AddDescribe() {
    CLI::App* command =
        Subcommand("describe", "Print versions, hashes and limits of the isolate runtime");
    AddIsolation(command, describe_.isolation);
    command->final_callback([this] {
      CheckTogether(describe_.isolation.limits);
      chosen_ = &describe_;
    });
  }

  void AddDoctor() {
    CLI::App* command = Subcommand(
        "doctor", "Say which walls stand on this host, which machines can be made, and why not");
    command->add_flag("--json", doctor_.json, "Print the reports as JSON instead of a table");
    command->add_flag("--attack", doctor_.attack,
                      "Run hostile programs in machines of each driver, and judge what they did");
    command
        ->add_option("--image", doctor_.image,
                     "What machines are made from (default: devbox:1, debian:12 or python-science)")
        ->type_name("NAME");
    command->add_flag("--allow-emulation", doctor_.allow_emulation,
                      "Try virtual machines with an emulated processor where KVM cannot be had");
    command->final_callback([this] { chosen_ = &doctor_; });
  }

  void AddMachined() {
    CLI::App* command =
        Subcommand("machined", "Make machines for a service that is not root; stop with SIGTERM",
                   kMachinedFooter);
    command
        ->add_option(
            "--driver", machined_.drivers,
            "Which machines to make: jail (the default), oci, microvm, firecracker; can be given "
            "several times")
        ->type_name("NAME")
        ->check(CLI::IsMember({"firecracker", "jail", "microvm", "oci"}));
    command
        ->add_option("--oci-runtime", machined_.oci_runtime,
                     "What makes the containers of oci: auto (runsc where it works, else runc), "
                     "podman, docker")
        ->check(CLI::IsMember({"auto", "runsc", "runc", "podman", "docker"}));
    command->add_option("--state", machined_.state, "A directory for disks and records")
        ->type_name("DIR")
        ->required();
    command->add_option("--socket", machined_.socket, "The Unix socket to listen on")
        ->type_name("PATH")
        ->required();
    command->add_option("--user", machined_.user, "The user that the service is, by name or number")
        ->type_name("USER")
        ->required();
    command
        ->add_option("--images", machined_.images,
                     "The store of images (default: as caisson images)")
        ->type_name("DIR");
    command
        ->add_option("--agent", machined_.agent,
                     "The agent's program (default: caisson-agent beside this one)")
        ->type_name("FILE");
    command
        ->add_option(
            "--kernel", machined_.kernel,
            "The kernel of virtual machines (default: where `caisson images kernel` puts it)")
        ->type_name("DIR");
    command->add_flag("--allow-emulation", machined_.allow_emulation,
                      "Make virtual machines with an emulated processor where KVM cannot be had");
    command
        ->add_option(
            "--prepared-vm", machined_.prepared_vms,
            "A kind of virtual machine that is prepared at the start, as IMAGE,CPUS,MEMORY; "
            "can be given several times")
        ->expected(1)
        ->take_all()
        ->type_name("KIND")
        ->check([](const std::string& text) {
          const auto shape = ParsePreparedVm(text);
          return shape ? std::string() : shape.error();
        });
    command
        ->add_option("--waiting-vms", machined_.waiting_vms,
                     "How many virtual machines wait ready, of each kind asked for lately (2)")
        ->type_name("N")
        ->check(CLI::Range(0, 64));
    command
        ->add_option("--max-vm-templates", machined_.max_vm_templates,
                     "How many kinds of virtual machines are kept prepared (16)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    command
        ->add_option_function<std::string>(
            "--max-vm-template-bytes",
            [this](const std::string& text) {
              const auto bytes = ParseBytes(text);
              if (!bytes) throw CLI::ValidationError("--max-vm-template-bytes", bytes.error());
              machined_.max_vm_template_bytes = *bytes;
            },
            "What they may take of the disk together (8GiB)")
        ->type_name("SIZE");
    command
        ->add_option("--prepared", machined_.prepared,
                     "How many machines wait ready, of each kind that was asked for lately (8)")
        ->type_name("N")
        ->check(CLI::Range(0, 256));
    command->add_option("--builders", machined_.builders, "How many are prepared at once (8)")
        ->type_name("N")
        ->check(CLI::Range(1, 64));
    command
        ->add_option("--network", machined_.network,
                     "A directory for the machines' network namespaces (/run/caisson/network)")
        ->type_name("DIR");
    command->add_flag("--without-network", machined_.without_network,
                      "Give machines a loopback device and nothing else");
    command->final_callback([this] { chosen_ = &machined_; });
  }

  void AddEgress() {
    CLI::App* command =
        Subcommand("egress", "Say what a network policy does with a destination", kEgressFooter);
    command->require_subcommand(1);
    CLI::App* explain = command->add_subcommand(
        "explain",
        "Which rule decides, how it is enforced and what the guest sees; nothing is looked up");
    explain->set_help_flag("-h,--help", "Print this help and exit");
    explain->add_option("RULES", egress_.rules, "The rules, with commas between them")
        ->required()
        ->type_name("");
    explain
        ->add_option("HOST", egress_.destination,
                     "A name or an IPv4 address, with :PORT or without")
        ->required()
        ->type_name("");
    explain->final_callback([this] { chosen_ = &egress_; });
  }

  void AddNodes() {
    CLI::App* command =
        Subcommand("nodes", "List the node types, and which of them run here", kNodesFooter);
    command->add_flag("--json", nodes_.json, "Print JSON instead of a table");
    command->final_callback([this] { chosen_ = &nodes_; });
  }

  void AddRuntimes() {
    CLI::App* command =
        Subcommand("runtimes", "Install and list the runtimes of logic blocks", kRuntimesFooter);
    command->require_subcommand(1);
    CLI::App* install = RuntimesAction(
        command, "install",
        "Fetch, compile and prepare a runtime: some minutes, once; again does nothing",
        RuntimesArguments::Action::kInstall);
    AddChoice(
        install, "NAME", {"cpython"}, [this](const std::string& name) { runtimes_.name = name; },
        "The runtime (images build makes those of native and oci)");
    install->get_option("NAME")->required();
    CLI::App* list =
        RuntimesAction(command, "list", "Say which runtimes work on this host, and why not",
                       RuntimesArguments::Action::kList);
    list->add_flag("--json", runtimes_.json, "Print JSON instead of a table");
  }

  CLI::App* RuntimesAction(CLI::App* runtimes, const char* name, const char* help,
                           RuntimesArguments::Action action) {
    CLI::App* command = runtimes->add_subcommand(name, help);
    command->set_help_flag("-h,--help", "Print this help and exit");
    command->final_callback([this, action] {
      runtimes_.action = action;
      chosen_ = &runtimes_;
    });
    return command;
  }

  void AddImages() {
    CLI::App* command =
        Subcommand("images", "Build, list and remove root file systems", kImagesFooter);
    command->require_subcommand(1);
    AddImagesBuild(command);
    AddImagesList(command);
    AddImagesRemove(command);
    CLI::App* kernel = ImagesAction(command, "kernel",
                                    "Fetch the kernel of virtual machines by apt; installs nothing",
                                    ImagesArguments::Action::kKernel);
    kernel->add_option("--directory", images_.kernel, "Where to (default: beside the images)")
        ->type_name("DIR");
  }

  CLI::App* ImagesAction(CLI::App* images, const char* name, const char* help,
                         ImagesArguments::Action action) {
    CLI::App* command = images->add_subcommand(name, help);
    command->set_help_flag("-h,--help", "Print this help and exit");
    command->final_callback([this, action] {
      images_.action = action;
      chosen_ = &images_;
    });
    return command;
  }

  void AddImagesBuild(CLI::App* images) {
    CLI::App* command =
        ImagesAction(images, "build", "Build an image from its definition (as root)",
                     ImagesArguments::Action::kBuild);
    command->add_option("NAME", images_.names, "The definition")
        ->required()
        ->expected(1)
        ->type_name("");
    CLI::Option* verify =
        command->add_flag("--verify", images_.verify, "Build twice and list what differs");
    command
        ->add_flag("--unless-built", images_.unless_built,
                   "Give the image that is there when it was built from this very definition")
        ->excludes(verify);
    CLI::Option* update =
        command->add_flag("--update-lock", images_.update_lock,
                          "Take the packages that apt has now, and write them into the lock");
    command
        ->add_flag("--allow-newer", images_.allow_newer,
                   "Take the archive's newer version of a package where the locked one is gone")
        ->excludes(update);
    command->add_flag("--erofs", images_.erofs, "Make an EROFS file beside the directory");
    command->add_option("--bundle", images_.bundle, "Also write an OCI bundle for runc there")
        ->type_name("DIR");
    command
        ->add_option("--oci", images_.oci,
                     "Also write an OCI image there, for docker load and others: an archive "
                     "where the name ends in .tar, else a directory")
        ->type_name("PATH");
    command->add_option("--definitions", images_.definitions, "Where definitions are")
        ->type_name("DIR");
    command
        ->add_option("--apt-sources", images_.apt_sources,
                     "Apt sources in place of this host's; may be repeated")
        ->expected(1)
        ->take_all()
        ->type_name("FILE");
    command
        ->add_option(
            "--guest-apt-sources", images_.guest_apt_sources,
            "Apt sources for apt inside the image, in place of those that it is built from; "
            "may be repeated")
        ->expected(1)
        ->take_all()
        ->type_name("FILE");
  }

  void AddImagesList(CLI::App* images) {
    CLI::App* command = ImagesAction(images, "list", "Show the images of this host",
                                     ImagesArguments::Action::kList);
    command->add_flag("--json", images_.json, "Print JSON instead of a table");
  }

  void AddImagesRemove(CLI::App* images) {
    CLI::App* command =
        ImagesAction(images, "rm", "Remove names, and data that no name stands for any more",
                     ImagesArguments::Action::kRemove);
    command->add_option("NAME", images_.names, "A name, an id, or the first 12 digits of an id")
        ->required()
        ->type_name("");
  }

  void AddBlock() {
    AddBlockActions(
        Subcommand("block", "Run logic blocks: scripts on JSON documents", kBlockFooter),
        [this](BlockArguments chosen) {
          block_ = std::move(chosen);
          chosen_ = &block_;
        });
  }

  void AddCompletions() {
    CLI::App* command =
        Subcommand("completions", "Print a completion script for a shell", kCompletionsFooter);
    AddChoice(
        command, "SHELL", {"bash", "zsh", "fish"},
        [this](const std::string& name) { completions_.shell = name; }, "The shell");
    command->get_option("SHELL")->required();
    command->final_callback([this] { chosen_ = &completions_; });
  }

  Arguments Chosen() {
    return std::visit([](auto* chosen) { return Arguments(std::move(*chosen)); }, chosen_);
  }

  CLI::App app_{
      "Compiles restricted Python workflows to a frozen IR and runs them, their code "
      "isolated."};
  CheckArguments check_;
  CompileArguments compile_;
  MigrateArguments migrate_;
  RunArguments run_;
  SchemaArguments schema_;
  GraphArguments graph_;
  DescribeArguments describe_;
  DoctorArguments doctor_;
  RuntimesArguments runtimes_;
  ImagesArguments images_;
  BlockArguments block_;
  ServiceArguments service_;
  MachinedArguments machined_;
  EgressArguments egress_;
  NodesArguments nodes_;
  CompletionsArguments completions_;
  RunsCommand runs_;
  std::variant<CheckArguments*, CompileArguments*, MigrateArguments*, RunArguments*,
               SchemaArguments*, GraphArguments*, DescribeArguments*, DoctorArguments*,
               RuntimesArguments*, ImagesArguments*, BlockArguments*, ServiceArguments*,
               MachinedArguments*, EgressArguments*, NodesArguments*, CompletionsArguments*,
               RunsCommand*>
      chosen_;
};

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string shown = option.get_type_name();
  if (shown.empty() || std::islower(static_cast<unsigned char>(shown[0])) == 0) return {};
  return CLI::detail::split(shown, '|');
}

void DescribeOption(CommandInfo& info, const CLI::Option& option) {
  if (option.get_positional()) {
    info.choices = ChoicesOf(option);
    info.takes_files = info.choices.empty();
    return;
  }
  OptionInfo& described = info.options.emplace_back();
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  described.help = option.get_description();
  if (option.get_items_expected_max() > 0) described.value_name = option.get_type_name();
  described.takes_file = described.value_name == "FILE";
  described.is_repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  described.choices = ChoicesOf(option);
}

bool Knows(const CommandInfo& info, const CLI::Option& option) {
  return std::ranges::any_of(info.options, [&](const OptionInfo& known) {
    return option.check_name(known.names.front());
  });
}

// Of a command with actions, their names are offered, and the options of all of them.
void DescribeAction(CommandInfo& info, const CLI::App& action) {
  info.choices.push_back(action.get_name());
  for (const CLI::Option* option : action.get_options()) {
    if (!option->get_positional() && !Knows(info, *option)) DescribeOption(info, *option);
  }
}

}  // namespace

Result<Arguments> ParseArguments(int argc, const char* const* argv) {
  return CommandLine().Parse(argc, argv);
}

std::vector<CommandInfo> DescribeCommands() {
  CommandLine line;
  std::vector<CommandInfo> commands;
  for (const CLI::App* command : line.app().get_subcommands({})) {
    CommandInfo& info = commands.emplace_back();
    info.name = command->get_name();
    info.help = command->get_description();
    for (const CLI::Option* option : command->get_options()) DescribeOption(info, *option);
    for (const CLI::App* action : command->get_subcommands({})) DescribeAction(info, *action);
  }
  return commands;
}

}  // namespace caisson::cli
