// SPDX-License-Identifier: Apache-2.0
// The command lines of the service and of those who use it, as plain data: serve, keys, tenants,
// shapes, sandbox.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace caisson::cli {

struct ServeArguments {
  std::string listen = "127.0.0.1:8787";
  std::optional<std::string> tls_listen;
  std::optional<std::string> certificate;
  std::optional<std::string> certificate_key;
  std::optional<std::string> state;          // directory; /var/lib/caisson
  std::optional<std::string> machined;       // socket of a helper that somebody else runs
  std::vector<std::string> drivers{"jail"};  // the first is the standard one
  std::string oci_runtime = "auto";          // these three of its own helper
  std::optional<std::string> kernel;
  bool allow_emulation = false;
  std::optional<std::string> user;  // to become before listening
  std::optional<std::string> public_url;
  std::optional<std::string> ingress_domain;
  std::optional<std::string> images;  // directory
  std::string host = "local";
  std::string region = "local";
  std::string rootfs = "devbox:1";
  std::optional<std::uint64_t> max_sandboxes;
  std::optional<std::uint64_t> max_memory;  // bytes, of all sandboxes together
  std::optional<std::uint64_t> max_disk;
  std::size_t threads = 256;
  std::chrono::milliseconds drain{20'000};
  int keep_audit_days = 90;
};

struct KeysArguments {
  enum class Action { kCreate, kList, kRevoke };
  Action action = Action::kList;
  std::optional<std::string> state;
  std::string tenant = "default";
  std::string label;
  std::string id;
  bool is_admin = false;
  bool json = false;
};

struct TenantsArguments {
  enum class Action { kList, kSet };
  Action action = Action::kList;
  std::optional<std::string> state;
  std::string tenant;
  // In the units of store::Quota; -1: no limit.
  std::map<std::string, std::int64_t> quota;
  bool json = false;
};

struct ShapesArguments {
  bool json = false;
};

// Where the service is: options, else CAISSON_URL and CAISSON_API_KEY.
struct ConnectionArguments {
  std::optional<std::string> url;
  std::optional<std::string> key;
};

struct SandboxArguments {
  enum class Action {
    kCreate,
    kList,
    kExec,
    kCopy,
    kLogs,
    kPause,
    kResume,
    kFork,
    kRemove,
    kReap,
    kShell,
    kEgress,
    kNetworks,
    kJoin,
    kLeave
  };
  Action action = Action::kList;
  ConnectionArguments connection;
  std::vector<std::string> names;    // ids or names of sandboxes
  std::vector<std::string> command;  // exec, shell
  std::string source;                // cp: PATH or SANDBOX:PATH
  std::string destination;
  std::string shape = "s-1vcpu-1gb";
  std::optional<std::string> rootfs;
  std::optional<std::string> driver;
  std::optional<std::string> name;
  std::vector<std::string> labels;  // key=value
  std::vector<std::string> envs;    // KEY=VALUE, or KEY of this environment
  std::vector<std::string> egress;
  std::optional<std::chrono::milliseconds> auto_pause;
  std::optional<std::chrono::milliseconds> delete_after;
  std::optional<std::chrono::milliseconds> timeout;  // exec
  std::optional<std::chrono::milliseconds> idle;     // reap
  std::optional<std::string> cwd;
  std::optional<std::string> process;  // logs
  std::string network;                 // join, leave
  std::optional<std::string> network_to_make;
  std::optional<std::string> network_to_remove;
  bool log = false;  // egress
  bool ingress = false;
  bool start_paused = false;
  std::string extent;  // of a fork; empty: the service's default
  bool follow = false;
  bool all = false;
  bool interactive = false;  // exec: standard input goes to the command
  bool dry_run = false;
  bool json = false;
};

using ServiceArguments = std::variant<ServeArguments, KeysArguments, TenantsArguments,
                                      ShapesArguments, SandboxArguments>;

// Adds the commands to `app`. Once the command line has been read, `take` gets the chosen one.
void AddServiceCommands(CLI::App* app, const std::function<void(ServiceArguments)>& take);

}  // namespace caisson::cli
