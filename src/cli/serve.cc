// SPDX-License-Identifier: Apache-2.0
// caisson serve: the sandbox API on this host. As root it starts the helper that handles machines
// and then gives root up for good; the process that speaks HTTP is never root.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "api/serve.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/service.h"
#include "cli/service_user.h"
#include "errors/cli.h"
#include "errors/machine.h"
#include "images/store.h"
#include "machine/helper/client.h"
#include "os/rlimit.h"
#include "os/service_manager.h"
#include "os/syscall_error.h"

namespace caisson::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelperPatience = 30s;

// What is where. The service's directory is its own; what the helper keeps is beside it, since the
// owner of a directory can put anything in the place of what is in it.
struct Places {
  std::string base;
  std::string service;
  std::string machines;
  std::string socket;
  std::string network;
  std::string images;
};

Places PlacesOf(const ServeArguments& arguments) {
  const bool is_standard = !arguments.state;
  Places places{.base = StateDirectory(arguments.state)};
  places.service = places.base + "/service";
  places.machines = places.base + "/machines";
  places.socket = arguments.machined.value_or(places.base + "/machined.sock");
  places.network = is_standard ? "/run/caisson/network" : places.base + "/network";
  places.images = arguments.images.value_or(images::Store::DefaultDirectory());
  return places;
}

Result<void> MakeRootDirectory(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) {
      return os::SyscallError("mkdir " + path.substr(0, slash));
    }
    if (slash == std::string::npos) return {};
  }
}

bool Answers(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return false;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const os::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The helper's process, which ends when `life` is closed: with this one, however that ends.
// Machines live on.
struct Helper {
  pid_t pid = -1;
  os::UniqueFd life;
};

// Stays root beside us and does nothing but wait: who has given root up cannot signal the helper,
// and neither can the kernel on his behalf (PR_SET_PDEATHSIG).
[[noreturn]] void WatchOver(char* const* argv, int life) {
  setpgid(0, 0);  // a Ctrl-C is for the service, which needs the helper while it drains
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const pid_t helper = fork();
  if (helper == 0) {
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, helper, 0));
  pollfd ends[2] = {{.fd = life, .events = POLLIN, .revents = 0},
                    {.fd = pidfd, .events = POLLIN, .revents = 0}};
  while (helper > 0 && pidfd >= 0 && poll(ends, 2, -1) < 0) continue;
  if (helper > 0) kill(helper, SIGTERM);
  _exit(waitpid(helper, nullptr, 0) == helper ? 0 : 1);
}

// The right to have a helper here. Whoever watches over one holds it until that has ended, so that
// a service which comes right after another one neither meets its helper nor uses it while it ends.
Result<os::UniqueFd> TakeHelperLock(const Places& places) {
  const std::string path = places.base + "/helper.lock";
  os::UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return os::SyscallError("open " + path);
  const auto deadline = std::chrono::steady_clock::now() + kHelperPatience;
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Fail(errors::kMachineUnavailable,
                  "another caisson serve runs with " + places.base +
                      "; stop it, or choose another directory with --state");
    }
    std::this_thread::sleep_for(50ms);
  }
  return lock;
}

Result<Helper> StartHelper(const Places& places, const ServiceUser& user,
                           const ServeArguments& arguments) {
  std::vector<std::string> words{
      "caisson",       "machined",           "--state",   places.machines,
      "--socket",      places.socket,        "--user",    std::to_string(user.uid),
      "--images",      places.images,        "--network", places.network,
      "--oci-runtime", arguments.oci_runtime};
  for (const std::string& driver : arguments.drivers)
    words.insert(words.end(), {"--driver", driver});
  if (arguments.kernel) words.insert(words.end(), {"--kernel", *arguments.kernel});
  if (arguments.allow_emulation) words.emplace_back("--allow-emulation");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  CAISSON_ASSIGN(os::FdPair life, os::MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return os::SyscallError("fork");
  if (pid == 0) {
    close(life.second.get());
    WatchOver(argv.data(), life.first.get());
  }
  return Helper{.pid = pid, .life = std::move(life.second)};
}

Result<void> AwaitHelper(const Places& places, pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kHelperPatience;
  while (!Answers(places.socket)) {
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      return Fail(
          errors::kMachineUnavailable,
          "the helper for machines (caisson machined) has ended; its last words stand above");
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return Fail(errors::kMachineUnavailable,
                  "the helper for machines (caisson machined) does not answer on " + places.socket);
    }
    std::this_thread::sleep_for(10ms);
  }
  return {};
}

// Shows the service the image store, which may lie in a home of root's, at a place that it can
// reach: read-only, and for this process alone.
Result<std::string> ShowImages(const Places& places) {
  std::string shown = places.base + "/images-shown";
  CAISSON_TRY(MakeRootDirectory(places.images));
  CAISSON_TRY(MakeRootDirectory(shown));
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      mount(places.images.c_str(), shown.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      mount(nullptr, shown.c_str(), nullptr,
            MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return os::SyscallError("showing the images at " + shown);
  }
  return shown;
}

// All that needs root; afterwards there is none.
struct Prepared {
  std::string images;
  Helper helper;
};
Result<Prepared> PrepareAsRoot(const ServeArguments& arguments, const Places& places) {
  CAISSON_ASSIGN(const ServiceUser user, FindServiceUser(arguments.user));
  CAISSON_TRY(MakeRootDirectory(places.base));
  CAISSON_TRY(MakeServiceDirectory(places.service, user));
  Prepared prepared;
  if (!arguments.machined) {
    // The helper's watcher inherits it.
    CAISSON_ASSIGN(const os::UniqueFd lock, TakeHelperLock(places));
    CAISSON_ASSIGN(prepared.helper, StartHelper(places, user, arguments));
    CAISSON_TRY(AwaitHelper(places, prepared.helper.pid));
  }
  CAISSON_ASSIGN(prepared.images, ShowImages(places));
  CAISSON_TRY(BecomeServiceUser(user));
  return prepared;
}

Result<std::vector<http::Listener>> ListenersOf(const ServeArguments& arguments) {
  std::vector<http::Listener> listeners{{.address = arguments.listen}};
  const bool has_files = arguments.certificate && arguments.certificate_key;
  if (arguments.tls_listen.has_value() != has_files) {
    return Fail(errors::kCliUsage,
                "--tls-listen, --certificate and --certificate-key belong together");
  }
  if (has_files) {
    listeners.push_back({.address = *arguments.tls_listen,
                         .tls = http::TlsFiles{.certificate = *arguments.certificate,
                                               .key = *arguments.certificate_key}});
  }
  return listeners;
}

api::ServeOptions OptionsOf(const ServeArguments& arguments, const Places& places,
                            std::vector<http::Listener> listeners) {
  api::ServeOptions options{.version = CAISSON_VERSION,
                            .state_directory = places.service,
                            .listeners = std::move(listeners),
                            .public_url = arguments.public_url.value_or(""),
                            .ingress_domain = arguments.ingress_domain.value_or(""),
                            .host = arguments.host,
                            .region = arguments.region,
                            .images_directory = places.images,
                            .default_rootfs = arguments.rootfs,
                            .capacity = api::DefaultCapacity(),
                            .handler_threads = arguments.threads,
                            .drain = arguments.drain,
                            .keep_audit = std::chrono::days(arguments.keep_audit_days)};
  constexpr std::uint64_t kMib = 1 << 20;
  auto set = [](const std::optional<std::uint64_t>& value, std::uint64_t unit, std::int64_t& into) {
    if (value) into = static_cast<std::int64_t>(*value / unit);
  };
  set(arguments.max_sandboxes, 1, options.capacity.sandboxes);
  set(arguments.max_memory, kMib, options.capacity.memory_mib);
  set(arguments.max_disk, kMib, options.capacity.disk_mib);
  return options;
}

void Tell(const api::Ready& ready, Console& console) {
  json::Object out{{"url", ready.url}};
  if (!ready.first_key.empty()) {
    console.Info("the first key, of tenant default and an administrator, is shown this once");
    out.Set("tenant", ready.tenant);
    out.Set("key", ready.first_key);
  }
  static_cast<void>(PrintJson(std::move(out), console));
}

Result<void> Run(const ServeArguments& arguments, Console& console, const std::stop_token& stop) {
  // Every connection, stream and tunnel takes a descriptor or two; the soft limit that programs
  // start with is meant for those that use select.
  CAISSON_TRY(os::RaiseSoftLimit(RLIMIT_NOFILE, RLIM_INFINITY));
  Places places = PlacesOf(arguments);
  Prepared prepared;  // the helper lives as long as this
  CAISSON_ASSIGN(auto listeners, ListenersOf(arguments));
  if (geteuid() == 0) {
    CAISSON_ASSIGN(prepared, PrepareAsRoot(arguments, places));
    places.images = prepared.images;
  } else if (!arguments.machined) {
    return Fail(errors::kMachineUnavailable,
                "machines need root: run this with sudo, or name the socket of a helper that root "
                "runs (caisson machined) with --machined");
  } else {
    CAISSON_TRY(MakeServiceDirectory(places.service, {.uid = geteuid(), .gid = getegid()}));
  }
  std::vector<std::unique_ptr<machine::Driver>> opened;
  std::vector<machine::Driver*> drivers;
  for (const std::string& name : arguments.drivers) {
    CAISSON_ASSIGN(auto driver,
                   machine::helper::RemoteDriver::Open({.socket = places.socket, .driver = name}));
    drivers.push_back(driver.get());
    opened.push_back(std::move(driver));
  }
  api::Log log(STDERR_FILENO);
  return api::Serve(
      OptionsOf(arguments, places, std::move(listeners)), control::Drivers(drivers), log,
      [&](const api::Ready& ready) {
        Tell(ready, console);
        os::TellServiceManager("READY=1");
      },
      stop);
}

}  // namespace

ExitCode ServeApi(const ServeArguments& arguments, Console& console) {
  const Interrupt interrupt(console);
  auto served = Run(arguments, console, interrupt.token());
  return served ? ExitCode::kOk : console.Complain(served.error());
}

}  // namespace caisson::cli
