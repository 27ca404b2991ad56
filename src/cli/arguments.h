// SPDX-License-Identifier: Apache-2.0
// The command line as plain data. The parser (CLI11, slow to compile) is known to arguments.cc
// only; each subcommand gets one struct. Parsing reads no file and decides nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "cli/block_arguments.h"
#include "cli/runs_arguments.h"
#include "cli/service_arguments.h"
#include "graph/run.h"
#include "isolate/runtime.h"
#include "workflow/diagnostic.h"

namespace caisson::cli {

struct SourceArguments {
  std::string file;  // "-": standard input
  workflow::DiagnosticFormat format = workflow::DiagnosticFormat::kText;
  std::optional<std::string> mode;  // --mode as written
  bool strict = false;
  workflow::CodeRuntimes runtimes;  // of the code nodes
};

struct IsolationArguments {
  bool allow_unjailed = false;
  int workers = 0;  // 0: one per core
  isolate::Limits limits;
  std::string program;    // caisson-isolate; empty: it is beside this program
  std::string data_dir;   // MicroPython's artifact is below it; empty: as the environment says
  std::string cache_dir;  // of compiled modules; empty: as the environment says
};

struct CheckArguments {
  SourceArguments source;  // `file` is unused
  std::vector<std::string> files;
};

struct CompileArguments {
  SourceArguments source;
  std::optional<std::string> output;
  bool index = false;
};

struct MigrateArguments {
  std::string file;  // "-": standard input
  std::optional<std::string> output;
  bool in_place = false;
  bool check = false;
  bool json = false;
};

struct RunArguments {
  SourceArguments source;
  IsolationArguments isolation;
  std::string input = "{}";  // JSON, @file or "-"
  std::optional<std::string> config;
  ExecutionArguments execution;
  graph::Policy policy = graph::Policy::kDrop;
  std::optional<std::chrono::milliseconds> timeout;
  std::uint64_t state_bytes = graph::kDefaultStateBytes;
};

struct SchemaArguments {
  SourceArguments source;
};

struct GraphArguments {
  SourceArguments source;
  bool dot = false;
};

struct DescribeArguments {
  IsolationArguments isolation;
};

struct DoctorArguments {
  bool json = false;
  bool attack = false;           // in place of all else
  std::string image;             // of machines that are made for it; empty: one that is there
  bool allow_emulation = false;  // of virtual machines' processors
};

struct RuntimesArguments {
  enum class Action { kInstall, kList };
  Action action = Action::kList;
  std::string name;
  bool json = false;
};

struct ImagesArguments {
  enum class Action { kBuild, kList, kRemove, kKernel };
  Action action = Action::kList;
  std::optional<std::string> kernel;           // --directory of kernel
  std::vector<std::string> names;              // build: one definition; rm: names or ids
  std::optional<std::string> definitions;      // --definitions
  std::vector<std::string> apt_sources;        // --apt-sources
  std::vector<std::string> guest_apt_sources;  // --guest-apt-sources
  std::optional<std::string> bundle;           // --bundle
  std::optional<std::string> oci;              // --oci
  bool update_lock = false;
  bool allow_newer = false;
  bool verify = false;
  bool unless_built = false;
  bool erofs = false;
  bool json = false;
};

struct MachinedArguments {
  std::vector<std::string> drivers;  // names; none: the jail
  std::string oci_runtime = "auto";  // what the driver oci uses: runsc, runc, podman, docker, auto
  std::string state;
  std::string socket;
  std::string user;                   // of the service: a name or a number
  std::optional<std::string> images;  // else the store's own place
  std::optional<std::string> agent;   // else beside the command
  std::optional<std::string> kernel;  // else where `caisson images kernel` puts it
  bool allow_emulation = false;
  std::vector<std::string> prepared_vms;  // IMAGE,CPUS,MEMORY each (cli/prepared_vm.h)
  std::size_t waiting_vms = 2;
  std::size_t max_vm_templates = 16;
  std::uint64_t max_vm_template_bytes = 8ull << 30;
  std::size_t prepared = 8;
  std::size_t builders = 8;
  std::string network = "/run/caisson/network";
  bool without_network = false;
};

// caisson egress explain
struct EgressArguments {
  std::string rules;  // separated by commas
  std::string destination;
};

// caisson nodes
struct NodesArguments {
  bool json = false;
};

struct CompletionsArguments {
  std::string shell;  // bash, zsh or fish
};

// Nothing left to do but to print.
struct PrintArguments {
  std::string text;
};

using Arguments = std::variant<PrintArguments, CheckArguments, CompileArguments, MigrateArguments,
                               RunArguments, SchemaArguments, GraphArguments, DescribeArguments,
                               DoctorArguments, RuntimesArguments, ImagesArguments, BlockArguments,
                               MachinedArguments, EgressArguments, ServiceArguments, NodesArguments,
                               CompletionsArguments, RunsCommand>;

// Fails with cli.usage: words that are not known, quantities out of their range.
Result<Arguments> ParseArguments(int argc, const char* const* argv);

// What completions need to know of the command line.
struct OptionInfo {
  std::vector<std::string> names;  // "--quiet", "-q"
  std::string help;
  std::string value_name;  // "SIZE"; empty for a flag
  bool takes_file = false;
  bool is_repeatable = false;
  std::vector<std::string> choices;
  bool takes_value() const { return !value_name.empty(); }
};
struct CommandInfo {
  std::string name;
  std::string help;
  std::vector<OptionInfo> options;
  bool takes_files = false;
  std::vector<std::string> choices;  // of a positional that is no file
};
std::vector<CommandInfo> DescribeCommands();

}  // namespace caisson::cli
