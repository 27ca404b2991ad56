// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/quantity.h"
#include "cli/service_arguments.h"

namespace caisson::cli {
namespace {

constexpr char kServeFooter[] = R"(As root without any option: makes its state directory, starts the
helper that handles machines, and becomes an unprivileged user before it listens. The first start
makes a key and shows it once.

Examples:
  sudo caisson serve
  sudo caisson serve --listen 0.0.0.0:8787 --ingress-domain preview.example.org
  sudo caisson serve --driver microvm --driver jail --allow-emulation
  caisson serve --machined /run/caisson/machined.sock --state ~/.local/state/caisson)";

constexpr char kKeysFooter[] = R"(Examples:
  sudo caisson keys create --tenant alice --label laptop
  sudo caisson keys create --tenant ops --admin
  sudo caisson keys ls
  sudo caisson keys revoke key-01jd…)";

constexpr char kTenantsFooter[] = R"(A limit is a number, or "unlimited".

Examples:
  sudo caisson tenants set alice --sandboxes 20 --memory 64GiB --bandwidth unlimited
  sudo caisson tenants ls)";

constexpr char kSandboxFooter[] =
    R"(The service is that of --url or CAISSON_URL (http://127.0.0.1:8787), the key that of --key or
CAISSON_API_KEY. A sandbox goes by its id or its name.

Examples:
  caisson sandbox create --name box --label team=red
  caisson sandbox exec box -- python3 -c 'print(6 * 7)'
  caisson sandbox cp data.csv box:/root/data.csv
  caisson sandbox shell box
  caisson sandbox ls --label team=red
  caisson sandbox rm box
  caisson sandbox reap --label team=red --idle 1h)";

CLI::App* Command(CLI::App* app, const char* name, const char* help, const char* footer = "") {
  CLI::App* command = app->add_subcommand(name, help);
  command->footer(footer);
  command->set_help_flag("-h,--help", "Print this help and exit");
  return command;
}

template <typename Target, typename Parse>
void AddParsed(CLI::App* app, const std::string& name, Target& target, Parse parse,
               const std::string& help, const char* type) {
  app->add_option_function<std::string>(
         name,
         [name, &target, parse](const std::string& text) {
           auto value = parse(text);
           if (!value) throw CLI::ValidationError(name, value.error());
           target = *value;
         },
         help)
      ->type_name(type);
}

void AddState(CLI::App* app, std::optional<std::string>& state) {
  app->add_option("--state", state, "State directory (/var/lib/caisson)")->type_name("DIR");
}

void AddServe(CLI::App* app, const std::function<void(ServiceArguments)>& take) {
  CLI::App* command = Command(app, "serve", "Serve the sandbox API", kServeFooter);
  auto arguments = std::make_shared<ServeArguments>();
  command
      ->add_option("--listen", arguments->listen,
                   "Plain port: HTTP/1.1 and h2c (127.0.0.1:8787), or unix:/path")
      ->type_name("ADDRESS");
  command->add_option("--tls-listen", arguments->tls_listen, "Port with TLS")->type_name("ADDRESS");
  command->add_option("--certificate", arguments->certificate, "Its certificates, PEM")
      ->type_name("FILE");
  command->add_option("--certificate-key", arguments->certificate_key, "Its key, PEM")
      ->type_name("FILE");
  AddState(command, arguments->state);
  command
      ->add_option("--machined", arguments->machined,
                   "Socket of a helper that runs already, in place of one of its own")
      ->type_name("PATH");
  command
      ->add_option("--driver", arguments->drivers,
                   "What machines are made with (jail); can be given several times, the first is "
                   "taken when nobody asks for another one")
      ->expected(1)
      ->take_all()
      ->type_name("NAME");
  command
      ->add_option("--oci-runtime", arguments->oci_runtime,
                   "What makes the containers of oci: auto (runsc where it works, else runc), "
                   "podman, docker")
      ->check(CLI::IsMember({"auto", "runsc", "runc", "podman", "docker"}));
  command
      ->add_option(
          "--kernel", arguments->kernel,
          "The kernel of virtual machines (default: where `caisson images kernel` puts it)")
      ->type_name("DIR");
  command->add_flag("--allow-emulation", arguments->allow_emulation,
                    "Make virtual machines with an emulated processor where KVM cannot be had");
  command
      ->add_option("--user", arguments->user,
                   "User to become (caisson where there is one, else a number of its own)")
      ->type_name("USER");
  command->add_option("--public-url", arguments->public_url, "URL by which clients come")
      ->type_name("URL");
  command
      ->add_option("--ingress-domain", arguments->ingress_domain,
                   "Preview URLs are <id>-<port>.DOMAIN; else by path")
      ->type_name("DOMAIN");
  command->add_option("--images", arguments->images, "Image store (that of caisson images)")
      ->type_name("DIR");
  command->add_option("--host-id", arguments->host, "Name of this host (local)")->type_name("NAME");
  command->add_option("--region", arguments->region, "Name of this region (local)")
      ->type_name("NAME");
  command->add_option("--rootfs", arguments->rootfs, "Root file system by default (devbox:1)")
      ->type_name("NAME");
  AddParsed(command, "--max-sandboxes", arguments->max_sandboxes, ParseCount,
            "Sandboxes on this host (1000)", "N");
  AddParsed(command, "--max-memory", arguments->max_memory, ParseBytes,
            "Memory that all sandboxes together may have at most (10 times the host's)", "SIZE");
  AddParsed(command, "--max-disk", arguments->max_disk, ParseBytes,
            "Disk that all sandboxes together may have at most (not counted)", "SIZE");
  command->add_option("--threads", arguments->threads, "Requests at once (256)")
      ->check(CLI::Range(std::size_t{4}, std::size_t{16384}))
      ->type_name("N");
  AddParsed(command, "--drain", arguments->drain, ParseDuration,
            "How long requests may go on after a request to stop (20s)", "TIME");
  command
      ->add_option("--keep-audit", arguments->keep_audit_days,
                   "Days for which entries of the audit log are kept (90)")
      ->check(CLI::Range(1, 36'500))
      ->type_name("DAYS");
  command->final_callback([arguments, take] { take(*arguments); });
}

void AddKeys(CLI::App* app, const std::function<void(ServiceArguments)>& take) {
  CLI::App* keys = Command(app, "keys", "Make, list and revoke API keys", kKeysFooter);
  keys->require_subcommand(1);
  auto arguments = std::make_shared<KeysArguments>();
  auto action = [&](const char* name, const char* help, KeysArguments::Action which) {
    CLI::App* command = Command(keys, name, help);
    AddState(command, arguments->state);
    command->final_callback([arguments, take, which] {
      arguments->action = which;
      take(*arguments);
    });
    return command;
  };
  CLI::App* create =
      action("create", "Make a key and show it once", KeysArguments::Action::kCreate);
  create->add_option("--tenant", arguments->tenant, "Whose it is (default)")->type_name("NAME");
  create->add_option("--label", arguments->label, "What it is for")->type_name("TEXT");
  create->add_flag("--admin", arguments->is_admin, "For hosts, the audit log and metrics, too");
  CLI::App* list =
      action("ls", "Show all keys, without their secrets", KeysArguments::Action::kList);
  list->add_flag("--json", arguments->json, "Print JSON instead of a table");
  CLI::App* revoke =
      action("revoke", "Make a key worthless at once", KeysArguments::Action::kRevoke);
  revoke->add_option("ID", arguments->id, "The key")->required()->type_name("");
}

// "unlimited" is -1; else what `parse` makes of it, in `unit`.
template <typename Parse>
void AddLimit(CLI::App* app, const std::string& option, const std::string& field,
              std::map<std::string, std::int64_t>& quota, Parse parse, std::uint64_t unit,
              const std::string& help, const char* type) {
  app->add_option_function<std::string>(
         option,
         [=, &quota](const std::string& text) {
           if (text == "unlimited") {
             quota[field] = -1;
             return;
           }
           auto value = parse(text);
           if (!value) throw CLI::ValidationError(option, value.error());
           quota[field] = static_cast<std::int64_t>(*value / unit);
         },
         help)
      ->type_name(type);
}

void AddTenants(CLI::App* app, const std::function<void(ServiceArguments)>& take) {
  CLI::App* tenants = Command(app, "tenants", "Show tenants and set their quotas", kTenantsFooter);
  tenants->require_subcommand(1);
  auto arguments = std::make_shared<TenantsArguments>();
  CLI::App* list = Command(tenants, "ls", "Show all tenants with quota and use");
  AddState(list, arguments->state);
  list->add_flag("--json", arguments->json, "Print JSON instead of a table");
  list->final_callback([arguments, take] {
    arguments->action = TenantsArguments::Action::kList;
    take(*arguments);
  });
  CLI::App* set = Command(tenants, "set", "Make a tenant, or change its quota", kTenantsFooter);
  AddState(set, arguments->state);
  set->add_option("TENANT", arguments->tenant, "The tenant")->required()->type_name("");
  auto& quota = arguments->quota;
  constexpr std::uint64_t kMib = 1 << 20;
  AddLimit(set, "--sandboxes", "sandboxes", quota, ParseCount, 1, "Sandboxes at once (100)", "N");
  AddLimit(set, "--vcpus", "vcpus", quota, ParseCount, 1, "vCPUs of all of them (unlimited)", "N");
  AddLimit(set, "--memory", "memory_mib", quota, ParseBytes, kMib,
           "Memory of all of them (unlimited)", "SIZE");
  AddLimit(set, "--disk", "disk_mib", quota, ParseBytes, kMib, "Disk of all of them (unlimited)",
           "SIZE");
  AddLimit(set, "--templates", "templates", quota, ParseCount, 1, "Templates (50)", "N");
  AddLimit(set, "--networks", "networks", quota, ParseCount, 1, "Networks (20)", "N");
  AddLimit(set, "--bandwidth", "bandwidth_bytes", quota, ParseBytes, 1,
           "What each new sandbox may send (5GiB)", "SIZE");
  set->final_callback([arguments, take] {
    arguments->action = TenantsArguments::Action::kSet;
    take(*arguments);
  });
}

void AddShapes(CLI::App* app, const std::function<void(ServiceArguments)>& take) {
  CLI::App* command = Command(app, "shapes", "Show the sizes in which sandboxes come");
  auto arguments = std::make_shared<ShapesArguments>();
  command->add_flag("--json", arguments->json, "Print JSON instead of a table");
  command->final_callback([arguments, take] { take(*arguments); });
}

class SandboxCommands {
 public:
  SandboxCommands(CLI::App* app, const std::function<void(ServiceArguments)>& take)
      : sandbox_(Command(app, "sandbox", "Use sandboxes of a service", kSandboxFooter)),
        take_(take) {
    sandbox_->require_subcommand(1);
    AddCreate();
    AddList();
    AddExec();
    AddCopy();
    AddLogs();
    AddSimple("pause", "Pause sandboxes", SandboxArguments::Action::kPause);
    AddSimple("resume", "Resume sandboxes", SandboxArguments::Action::kResume);
    AddFork();
    AddSimple("rm", "Delete sandboxes", SandboxArguments::Action::kRemove);
    AddReap();
    AddShell();
    AddEgress();
    AddNetworks();
    AddMembership("join", "Put a sandbox into a network", SandboxArguments::Action::kJoin);
    AddMembership("leave", "Take a sandbox out of a network", SandboxArguments::Action::kLeave);
  }

 private:
  using Action = SandboxArguments::Action;

  CLI::App* Add(const char* name, const char* help, Action action) {
    CLI::App* command = Command(sandbox_, name, help);
    command->add_option("--url", arguments_->connection.url, "Where the service is")
        ->type_name("URL");
    command->add_option("--key", arguments_->connection.key, "API key (better: CAISSON_API_KEY)")
        ->type_name("KEY");
    command->final_callback([arguments = arguments_, take = take_, action] {
      arguments->action = action;
      take(*arguments);
    });
    return command;
  }
  void AddNames(CLI::App* command) {
    command->add_option("SANDBOX", arguments_->names, "Ids or names")->required()->type_name("");
  }
  void AddName(CLI::App* command) {
    auto* option = command->add_option_function<std::string>(
        "SANDBOX", [arguments = arguments_](const std::string& name) { arguments->names = {name}; },
        "Its id or name");
    option->required()->type_name("");
  }
  void AddLabels(CLI::App* command, const char* help) {
    command->add_option("--label", arguments_->labels, help)
        ->expected(1)
        ->take_all()
        ->type_name("KEY=VALUE");
  }
  void AddMaking(CLI::App* command) {
    command->add_option("--name", arguments_->name, "Its name (one is made)")->type_name("NAME");
    AddLabels(command, "A label; may be repeated");
    command
        ->add_option("--env", arguments_->envs,
                     "A variable of all its commands, KEY=VALUE, or KEY as it is here; may be "
                     "repeated")
        ->expected(1)
        ->take_all()
        ->type_name("KEY[=VALUE]");
    command
        ->add_option("--egress", arguments_->egress,
                     "A rule of what it may reach (all that is public); may be repeated")
        ->expected(1)
        ->take_all()
        ->type_name("RULE");
    command->add_flag("--ingress", arguments_->ingress, "Let its ports be reached by preview URLs");
  }
  void AddCreate() {
    CLI::App* command = Add("create", "Make a sandbox", Action::kCreate);
    command->add_option("--shape", arguments_->shape, "Its size (s-1vcpu-1gb)")->type_name("ID");
    command->add_option("--driver", arguments_->driver, "What the machine is made with")
        ->type_name("NAME");
    command->add_option("--rootfs", arguments_->rootfs, "Root file system or template (devbox:1)")
        ->type_name("NAME");
    AddMaking(command);
    AddParsed(command, "--auto-pause", arguments_->auto_pause, ParseDuration,
              "Pause it when it has been idle for so long, from 60s to 24h", "TIME");
    AddParsed(command, "--delete-after", arguments_->delete_after, ParseDuration,
              "Delete it after so long", "TIME");
  }
  void AddList() {
    CLI::App* command = Add("ls", "List sandboxes", Action::kList);
    AddLabels(command, "Only those with this label; may be repeated");
    command->add_flag("--all", arguments_->all, "Also those that were destroyed lately");
    command->add_flag("--json", arguments_->json, "Print JSON instead of a table");
  }
  void AddExec() {
    CLI::App* command = Add("exec", "Run a command, its output as it comes", Action::kExec);
    AddName(command);
    command->add_option("COMMAND", arguments_->command, "After --: the command")
        ->required()
        ->type_name("");
    command->add_option("--cwd", arguments_->cwd, "Directory to start in (/root)")
        ->type_name("DIR");
    command->add_option("--env", arguments_->envs, "Override a declared variable; may be repeated")
        ->expected(1)
        ->take_all()
        ->type_name("KEY=VALUE");
    command->add_flag("-i,--interactive", arguments_->interactive, "Give it all of standard input");
    AddParsed(command, "--timeout", arguments_->timeout, ParseDuration, "Kill it after so long",
              "TIME");
  }
  void AddCopy() {
    CLI::App* command = Add("cp", "Copy a file to or from a sandbox", Action::kCopy);
    command->add_option("FROM", arguments_->source, "PATH or SANDBOX:PATH")
        ->required()
        ->type_name("");
    command->add_option("TO", arguments_->destination, "PATH or SANDBOX:PATH")
        ->required()
        ->type_name("");
  }
  void AddLogs() {
    CLI::App* command = Add("logs", "Show what managed processes printed", Action::kLogs);
    AddName(command);
    command->add_option("--process", arguments_->process, "Only this one")->type_name("ID");
    command->add_flag("-f,--follow", arguments_->follow, "Go on until it ends");
  }
  void AddSimple(const char* name, const char* help, Action action) {
    AddNames(Add(name, help, action));
  }
  void AddFork() {
    CLI::App* command = Add("fork", "Make a copy of a paused sandbox", Action::kFork);
    AddName(command);
    AddMaking(command);
    command->add_flag("--paused", arguments_->start_paused, "Leave the copy paused");
    command
        ->add_option("--extent", arguments_->extent,
                     "full: memory and processes, too, where the driver can; filesystem: files")
        ->check(CLI::IsMember({"full", "filesystem"}));
  }
  void AddReap() {
    CLI::App* command = Add("reap", "Delete sandboxes by label and age", Action::kReap);
    AddLabels(command, "Only those with this label; may be repeated");
    AddParsed(command, "--idle", arguments_->idle, ParseDuration,
              "Only those made or resumed at least so long ago", "TIME");
    command->add_flag("--all", arguments_->all, "All of them, when neither label nor age is given");
    command->add_flag("--dry-run", arguments_->dry_run, "Only say which");
  }
  void AddShell() {
    CLI::App* command = Add("shell", "Open a terminal in a sandbox", Action::kShell);
    AddName(command);
    command->add_option("COMMAND", arguments_->command, "After --: a command in place of a shell")
        ->type_name("");
  }

  void AddEgress() {
    CLI::App* command = Add("egress", "Show or change what a sandbox may reach", Action::kEgress);
    AddName(command);
    command->add_option("RULE", arguments_->egress, "Rules in place of those that it has")
        ->type_name("");
    command->add_flag("--log", arguments_->log, "Show what was denied to it");
  }
  void AddNetworks() {
    CLI::App* command = Add("networks", "List networks between sandboxes", Action::kNetworks);
    command->add_option("--create", arguments_->network_to_make, "Make one")->type_name("NAME");
    command->add_option("--rm", arguments_->network_to_remove, "Delete one")->type_name("NAME");
  }
  void AddMembership(const char* name, const char* help, Action action) {
    CLI::App* command = Add(name, help, action);
    AddName(command);
    command->add_option("NETWORK", arguments_->network, "Its id or name")
        ->required()
        ->type_name("");
  }

  CLI::App* sandbox_;
  std::function<void(ServiceArguments)> take_;
  std::shared_ptr<SandboxArguments> arguments_ = std::make_shared<SandboxArguments>();
};

}  // namespace

void AddServiceCommands(CLI::App* app, const std::function<void(ServiceArguments)>& take) {
  AddServe(app, take);
  AddKeys(app, take);
  AddTenants(app, take);
  AddShapes(app, take);
  SandboxCommands(app, take);
}

}  // namespace caisson::cli
