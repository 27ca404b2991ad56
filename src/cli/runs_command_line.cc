// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <utility>

#include "cli/runs_arguments.h"
#include "http/outbound_guard.h"

namespace caisson::cli {
namespace {

constexpr char kRunsFooter[] =
    R"(A run goes by its id, or by the beginning of it. Runs are kept in --store, else in
$CAISSON_STORE, else in $XDG_STATE_HOME/caisson/runs.db or ~/.local/state/caisson/runs.db.

Examples:
  caisson runs list --status interrupted
  caisson runs show 3f2a --step 4
  caisson runs resume 3f2a --value '"approved"'
  caisson runs fork 3f2a --step 4
  caisson runs events 3f2a --follow)";

constexpr char kBackupFooter[] = R"(Runs may go on meanwhile. The copy is a store like any other.

Example:
  caisson backup runs-2026-12-01.db)";

constexpr char kSecretsFooter[] =
    R"(A value is read from standard input, a file or a variable, never from the command line. The key
is that of --vault-key (env:VARIABLE, @FILE or cmd:COMMAND), else CAISSON_VAULT_KEY, else that in the
file CAISSON_VAULT_KEY_FILE, else what CAISSON_VAULT_KEY_COMMAND prints.

Examples:
  caisson secrets new-key ~/.config/caisson/vault.key
  export CAISSON_VAULT_KEY_FILE=~/.config/caisson/vault.key
  caisson secrets set api_key < api_key.txt
  caisson secrets set mail --oauth --from @tokens.json
  caisson secrets list
  caisson secrets rotate-key --new-key @new.key)";

// What a run can number.
constexpr std::int64_t kMostEvents = 4'294'967'295;

CLI::App* Action(CLI::App* runs, const char* name, const char* help) {
  CLI::App* command = runs->add_subcommand(name, help);
  command->set_help_flag("-h,--help", "Print this help and exit");
  return command;
}

CredentialArgument ParseCredential(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals != 0) {
    const std::string name = text.substr(0, equals);
    const std::string place = text.substr(equals + 1);
    if (place.starts_with("env:") && place.size() > 4) return {name, true, place.substr(4)};
    if (place.starts_with("@") && place.size() > 1) return {name, false, place.substr(1)};
  }
  // The text may hold the secret itself: it is not repeated.
  throw CLI::ValidationError("--credential",
                             "write NAME=env:VARIABLE or NAME=@file; a secret itself does not "
                             "belong on a command line, where others can see it");
}

// "127.0.0.1:8080" of "http://127.0.0.1:8080".
std::string ParseEndpoint(const std::string& text) {
  const auto target = http::ReadTarget(text);
  const std::size_t path = text.find('/', std::min(text.find("://"), text.size() - 1) + 3);
  const bool is_bare = path == std::string::npos || path + 1 == text.size();
  const bool is_own = target && (target->host == "localhost" || target->host == "::1" ||
                                 target->host.starts_with("127."));
  if (is_own && is_bare) return target->host + ":" + std::to_string(target->port);
  throw CLI::ValidationError("--allow-endpoint",
                             "write http://HOST:PORT without a path, where HOST is 127.0.0.1, ::1 "
                             "or localhost; public servers need no permission");
}

void AddStore(CLI::App* command, RecordArguments& record) {
  command->add_option("--store", record.store, "The database of runs")
      ->envname("CAISSON_STORE")
      ->type_name("FILE");
}

void AddDurability(CLI::App* command, RecordArguments& record, bool may_be_none) {
  using Durability = RecordArguments::Durability;
  static const std::map<std::string, Durability> kNames = {
      {"none", Durability::kNone}, {"normal", Durability::kNormal}, {"full", Durability::kFull}};
  const std::string shown = may_be_none ? "none|normal|full" : "normal|full";
  command
      ->add_option_function<std::string>(
          "--durability",
          [&record, shown, may_be_none](const std::string& text) {
            const auto named = kNames.find(text);
            if (named == kNames.end() || (!may_be_none && text == "none")) {
              throw CLI::ValidationError("--durability", "'" + text + "' is none of " + shown);
            }
            record.durability = named->second;
          },
          std::string("What survives: with normal every step the end of the process, and all but "
                      "the last moments a power cut; full: these, too") +
              (may_be_none ? "; none: the run is not recorded" : "") + " (normal)")
      ->type_name(shown);
}

void AddVaultKey(CLI::App* command, VaultArguments& vault) {
  command
      ->add_option("--vault-key", vault.key,
                   "Where the key of the vault is: env:VARIABLE, @FILE or cmd:COMMAND")
      ->type_name("PLACE");
}

using Take = std::function<void(RunsCommand)>;
using Shared = std::shared_ptr<RunsArguments>;

void Finish(CLI::App* command, const Shared& arguments, RunsArguments::Action action,
            const Take& take) {
  command->final_callback([arguments, action, take] {
    arguments->action = action;
    take(*arguments);
  });
}

void AddId(CLI::App* command, const Shared& arguments) {
  command->add_option("RUN", arguments->id, "The run")->required()->type_name("");
}

void AddList(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command = Action(runs, "list", "Show runs, the newest first");
  command
      ->add_option("--status", arguments->statuses,
                   "Only those: running, interrupted, succeeded, failed, cancelled, timed_out or "
                   "crashed; may be repeated")
      ->check(CLI::IsMember({"running", "interrupted", "succeeded", "failed", "cancelled",
                             "timed_out", "crashed"})
                  .description(""))
      ->expected(1)
      ->take_all()
      ->type_name("STATUS");
  command->add_option("--limit", arguments->limit, "How many (100)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}).description(""))
      ->type_name("N");
  command->add_flag("--json", arguments->json, "Print JSON instead of a table");
  AddStore(command, arguments->execution.record);
  Finish(command, arguments, RunsArguments::Action::kList, take);
}

void AddShow(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command = Action(runs, "show", "Show one run: where it stands, its state, its error");
  AddId(command, arguments);
  command->add_option("--step", arguments->step, "The state after that many steps")
      ->check(CLI::Range(std::int64_t{0}, kMostEvents).description(""))
      ->type_name("N");
  AddStore(command, arguments->execution.record);
  Finish(command, arguments, RunsArguments::Action::kShow, take);
}

void AddGoingOn(CLI::App* command, const Shared& arguments) {
  command
      ->add_option("--config", arguments->config,
                   "A run configuration in place of the one before: JSON or @file")
      ->type_name("JSON");
  command->add_flag("--allow-unjailed", arguments->allow_unjailed,
                    "Run even where a mandatory wall of the jail cannot be built");
  command->add_option("--workers", arguments->workers, "Isolate workers, from 1 to 64")
      ->check(CLI::Range(1, 64).description(""))
      ->type_name("N");
  AddExecution(command, arguments->execution);
}

void AddResume(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command = Action(
      runs, "resume", "Go on with a run that waits, failed, was stopped or lost its process");
  AddId(command, arguments);
  command
      ->add_option("--value", arguments->value,
                   "The answer to its question, when there is one: JSON, @file or -")
      ->type_name("JSON");
  command
      ->add_option("--answer", arguments->answers,
                   "The answer to the question of one node; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("NODE=JSON");
  AddGoingOn(command, arguments);
  Finish(command, arguments, RunsArguments::Action::kResume, take);
}

void AddFork(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command =
      Action(runs, "fork", "Begin a run that goes on from a past step of another one");
  AddId(command, arguments);
  command->add_option("--step", arguments->step, "After that many of its steps; 0: its start")
      ->required()
      ->check(CLI::Range(std::int64_t{0}, kMostEvents).description(""))
      ->type_name("N");
  AddGoingOn(command, arguments);
  Finish(command, arguments, RunsArguments::Action::kFork, take);
}

void AddEvents(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command = Action(runs, "events", "Print a run's events, one JSON document a line");
  AddId(command, arguments);
  command->add_option("--after", arguments->after, "Only those with a higher sequence number (0)")
      ->check(CLI::Range(std::int64_t{0}, kMostEvents).description(""))
      ->type_name("N");
  command->add_flag("--follow", arguments->follow, "Wait for more until the run ends or waits");
  AddStore(command, arguments->execution.record);
  Finish(command, arguments, RunsArguments::Action::kEvents, take);
}

void AddFile(CLI::App* runs, const Shared& arguments, const Take& take) {
  CLI::App* command = Action(runs, "file", "Give out a file that a FileUploadNode has stored");
  command->add_option("FILE", arguments->id, "Its attachment_id or download_url")
      ->required()
      ->type_name("");
  command->add_option("-o", arguments->output, "Write it there, not to standard output")
      ->type_name("FILE");
  AddStore(command, arguments->execution.record);
  Finish(command, arguments, RunsArguments::Action::kFile, take);
}

void AddSimple(CLI::App* runs, const char* name, const char* help, RunsArguments::Action action,
               const Shared& arguments, const Take& take) {
  CLI::App* command = Action(runs, name, help);
  AddId(command, arguments);
  AddStore(command, arguments->execution.record);
  Finish(command, arguments, action, take);
}

void AddSecrets(CLI::App* app, const Take& take) {
  using Action_ = SecretsArguments::Action;
  CLI::App* secrets = app->add_subcommand("secrets", "Keep the secrets of [[placeholders]]");
  secrets->footer(kSecretsFooter);
  secrets->set_help_flag("-h,--help", "Print this help and exit");
  secrets->require_subcommand(1);
  const auto arguments = std::make_shared<SecretsArguments>();
  const auto add = [&](const char* name, const char* help, Action_ action) {
    CLI::App* command = Action(secrets, name, help);
    command->final_callback([arguments, action, take] {
      arguments->action = action;
      take(*arguments);
    });
    if (action != Action_::kNewKey) AddStore(command, arguments->record);
    return command;
  };
  const auto add_name = [&](CLI::App* command) {
    command->add_option("NAME", arguments->name, "Its name, as in [[NAME]]")
        ->required()
        ->type_name("");
  };
  CLI::App* set = add("set", "Keep a secret, in place of one of that name", Action_::kSet);
  add_name(set);
  set->add_option("--from", arguments->from,
                  "Where the value is: - (standard input), env:VARIABLE or @FILE (-)")
      ->type_name("PLACE");
  set->add_flag("--oauth", arguments->oauth,
                "The value is a JSON object of access_token, refresh_token, expires_at");
  AddVaultKey(set, arguments->vault);
  CLI::App* list = add("list", "Show names and kinds, no values", Action_::kList);
  list->add_flag("--json", arguments->json, "Print JSON instead of a table");
  add_name(add("rm", "Forget a secret", Action_::kRemove));
  CLI::App* rotate = add("rotate-key", "Seal all secrets under a new key", Action_::kRotateKey);
  rotate
      ->add_option("--new-key", arguments->new_key,
                   "Where the new key is: env:VARIABLE, @FILE or cmd:COMMAND")
      ->required()
      ->type_name("PLACE");
  AddVaultKey(rotate, arguments->vault);
  CLI::App* new_key = add("new-key", "Make a file with a new key", Action_::kNewKey);
  new_key->add_option("FILE", arguments->name, "A new file")->required()->type_name("");
}

}  // namespace

void AddExecution(CLI::App* command, ExecutionArguments& arguments) {
  command->add_flag("--events", arguments.events,
                    "Write events to standard error, one JSON a line");
  command->add_option("--events-file", arguments.events_file, "Write events to this file")
      ->type_name("FILE");
  command
      ->add_option_function<std::vector<std::string>>(
          "--stream",
          [&arguments](const std::vector<std::string>& all) {
            for (const std::string& name : all) {
              const auto mode = graph::FindStreamMode(name);
              if (!mode) {
                throw CLI::ValidationError(
                    "--stream", "'" + name + "' is none of updates|values|messages|debug");
              }
              arguments.streams.insert(*mode);
            }
          },
          "Write that stream, where events would go; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("updates|values|messages|debug");
  command->add_flag("--report", arguments.report,
                    "Write status, state, error, steps and duration, also when the run fails; "
                    "else the final state only");
  command->add_flag("-q,--quiet", arguments.quiet, "No information and no warnings");
  command
      ->add_option_function<std::vector<std::string>>(
          "--credential",
          [&arguments](const std::vector<std::string>& all) {
            for (const std::string& text : all) {
              arguments.credentials.push_back(ParseCredential(text));
            }
          },
          "A secret for [[NAME]]: NAME=env:VARIABLE or NAME=@file; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("NAME=PLACE");
  command
      ->add_option_function<std::vector<std::string>>(
          "--allow-endpoint",
          [&arguments](const std::vector<std::string>& all) {
            for (const std::string& text : all) {
              arguments.endpoints.targets.push_back(ParseEndpoint(text));
            }
          },
          "Let nodes send requests to this server of the own host, http://127.0.0.1:PORT; may be "
          "repeated")
      ->expected(1)
      ->take_all()
      ->type_name("URL");
  AddVaultKey(command, arguments.vault);
  AddNodeHost(command, arguments.node_host);
  AddStore(command, arguments.record);
  AddDurability(command, arguments.record, command->get_name() == "run");
}

void AddRunsCommands(CLI::App* app, const Take& take) {
  CLI::App* runs = app->add_subcommand("runs", "List, inspect, resume, cancel and fork runs");
  runs->footer(kRunsFooter);
  runs->set_help_flag("-h,--help", "Print this help and exit");
  runs->require_subcommand(1);
  const auto arguments = std::make_shared<RunsArguments>();
  AddList(runs, arguments, take);
  AddShow(runs, arguments, take);
  AddResume(runs, arguments, take);
  AddSimple(runs, "cancel", "Stop a run, wherever it is being run", RunsArguments::Action::kCancel,
            arguments, take);
  AddFork(runs, arguments, take);
  AddEvents(runs, arguments, take);
  AddFile(runs, arguments, take);
  AddSimple(runs, "rm", "Forget a run with all its events", RunsArguments::Action::kRemove,
            arguments, take);

  AddSecrets(app, take);
  CLI::App* backup = app->add_subcommand("backup", "Copy the database of runs while it is in use");
  backup->footer(kBackupFooter);
  backup->set_help_flag("-h,--help", "Print this help and exit");
  const auto copy = std::make_shared<BackupArguments>();
  backup->add_option("FILE", copy->copy, "The copy, a new file")->required()->type_name("");
  AddStore(backup, copy->record);
  backup->final_callback([copy, take] { take(*copy); });
}

}  // namespace caisson::cli
