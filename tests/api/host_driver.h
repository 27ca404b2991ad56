// SPDX-License-Identifier: Apache-2.0
// For tests of the API alone: "machines" that are the real agent in namespaces of this host,
// without the rights of root, over this host's files with private /tmp, /root, /srv and /workspace,
// and with the `timeout` of our images. No wall worth the name, no network of their own, no limits.
// CAISSON_TEST_GUEST_PYTHON names what `python3` is in them.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "agent/client.h"
#include "errors/machine.h"
#include "machine/driver.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::tests {

class HostDriver final : public machine::Driver {
 public:
  explicit HostDriver(std::string directory) : directory_(std::move(directory)) {}
  ~HostDriver() override {
    for (auto& [id, entry] : machines_) entry.agent.Kill();
  }

  machine::Capabilities capabilities() const override {
    return {.driver = "host",
            .isolation_class = "namespaces",
            .pause = machine::Level::kMemory,
            .fork = machine::Extent::kFilesystem,
            .resize_disk = true,
            .shared_networks = true};
  }

  Result<machine::Machine> Create(const machine::MachineSpec& spec) override {
    const std::lock_guard lock(mutex_);
    const std::string home = directory_ + "/" + spec.id;
    std::filesystem::create_directories(home);
    return Start(spec, home);
  }
  Result<void> Destroy(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = machines_.find(id);
    if (found == machines_.end()) return {};
    found->second.agent.Kill();
    found->second.agent.Wait(std::chrono::seconds(10));
    machines_.erase(found);
    std::filesystem::remove_all(directory_ + "/" + id);
    return {};
  }
  Result<void> Pause(const std::string& id, machine::Level) override {
    return Signal(id, SIGSTOP, machine::State::kPausedInMemory);
  }
  Result<void> Resume(const std::string& id) override {
    return Signal(id, SIGCONT, machine::State::kRunning);
  }
  // The files of /root, /tmp and /srv.
  Result<machine::Machine> Fork(const std::string& parent, const machine::MachineSpec& child,
                                machine::Extent) override {
    const std::lock_guard lock(mutex_);
    const std::string home = directory_ + "/" + child.id;
    for (const char* name : {"tmp", "root", "srv", "workspace"}) {
      std::filesystem::create_directories(home);
      std::filesystem::copy(directory_ + "/" + parent + "/" + name, home + "/" + name,
                            std::filesystem::copy_options::recursive);
    }
    return Start(child, home);
  }
  Result<machine::Snapshot> TakeSnapshot(const std::string&, const std::string&,
                                         machine::Extent) override {
    return Unsupported();
  }
  Result<machine::Machine> Restore(const std::string&, const machine::MachineSpec&) override {
    return Unsupported();
  }
  Result<void> RemoveSnapshot(const std::string&) override { return Unsupported(); }
  Result<std::vector<machine::Snapshot>> ListSnapshots() override { return Unsupported(); }
  Result<void> Resize(const std::string&, std::uint64_t) override { return {}; }
  Result<void> SetNetwork(const std::string&, const egress::Policy&, machine::SentCap) override {
    return {};
  }
  Result<void> SetSharedNetworks(const std::string& id, const std::set<std::string>&) override {
    const std::lock_guard lock(mutex_);
    return machines_.contains(id) ? Result<void>() : Unknown(id);
  }
  Result<egress::NetworkLog> ReadNetworkLog(const std::string& id, std::uint64_t) override {
    const std::lock_guard lock(mutex_);
    if (!machines_.contains(id)) return Unknown(id);
    return egress::NetworkLog{};
  }
  Result<machine::Stats> ReadStats(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    if (!machines_.contains(id)) return Unknown(id);
    return machine::Stats{.memory_bytes = 1 << 20, .memory_limit_bytes = 1 << 28, .pids = 1};
  }
  Result<std::vector<machine::Machine>> List() override {
    const std::lock_guard lock(mutex_);
    std::vector<machine::Machine> all;
    for (auto& [id, entry] : machines_) all.push_back(entry.machine);
    return all;
  }
  Result<os::UniqueFd> Connect(const std::string& id) override {
    sockaddr_un address = AddressOf(directory_ + "/" + id);
    os::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return Unknown(id);
    }
    return fd;
  }

 private:
  struct Entry {
    machine::Machine machine;
    os::ChildProcess agent;
  };

  static sockaddr_un AddressOf(const std::string& home) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (home + "/agent").copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  static std::unexpected<Status> Unsupported() {
    return Fail(errors::kMachineUnsupported, "not here");
  }
  static std::unexpected<Status> Unknown(const std::string& id) {
    return Fail(errors::kMachineUnknown, "there is no machine " + id);
  }
  static std::unexpected<Status> Failed(const char* what) {
    return Fail(errors::kMachineUnavailable, what);
  }

  Result<void> Signal(const std::string& id, int signal, machine::State state) {
    const std::lock_guard lock(mutex_);
    const auto found = machines_.find(id);
    if (found == machines_.end()) return Unknown(id);
    kill(found->second.agent.pid(), signal);
    found->second.machine.state = state;
    return {};
  }

  static bool Bind(const std::string& what, const std::string& where) {
    return mount(what.c_str(), where.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
  }

  // Everything that stands in / in a root of its own, where directories can be added.
  static bool EnterRoot(const std::string& home) {
    namespace fs = std::filesystem;
    const std::string root = home + "/tree";
    if (mount("tree", root.c_str(), "tmpfs", 0, "mode=755") != 0) return false;
    for (const fs::directory_entry& entry : fs::directory_iterator("/")) {
      const std::string inside = root + entry.path().string();
      if (entry.is_symlink()) {
        fs::copy_symlink(entry.path(), inside);
      } else if (entry.is_directory()) {
        fs::create_directory(inside);
        const std::string own = home + entry.path().string();
        if (!Bind(fs::exists(own) ? own : entry.path().string(), inside)) return false;
      }
    }
    fs::create_directory(root + "/workspace");
    const bool ready = Bind(home + "/workspace", root + "/workspace") &&
                       Bind(CAISSON_BINARY_DIR "/bin/caisson-agent", root + "/usr/bin/timeout") &&
                       Bind(home + "/programs", root + "/usr/local/sbin");
    if (const char* python = std::getenv("CAISSON_TEST_GUEST_PYTHON"); ready && python != nullptr) {
      // The environment that it belongs to may lie in what is private here.
      const fs::path environment = fs::path(python).parent_path().parent_path();
      fs::create_directories(root + environment.string());
      if (!Bind(environment, root + environment.string())) return false;
    }
    return ready && chroot(root.c_str()) == 0 && chdir("/") == 0;
  }

  // What stands first in the guests' PATH.
  static void WritePrograms(const std::string& home) {
    const char* python = std::getenv("CAISSON_TEST_GUEST_PYTHON");
    if (python == nullptr) return;
    const std::string path = home + "/programs/python3";
    std::ofstream(path) << "#!/bin/sh\nexec " << python << " \"$@\"\n";
    chmod(path.c_str(), 0755);
  }

  [[noreturn]] static void BeAgent(const std::string& home, int listener, int go) {
    char byte = 0;
    if (read(go, &byte, 1) != 1) _exit(1);  // the maps are written
    // Before anything is mounted over where it lies.
    const int program = open(CAISSON_BINARY_DIR "/bin/caisson-agent", O_RDONLY | O_CLOEXEC);
    bool ready = setgroups(0, nullptr) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 &&
                 program >= 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 mount("proc", "/proc", "proc", 0, nullptr) == 0 && EnterRoot(home);
    dup2(listener, 100);
    dup2(100, 3);
    close(100);
    char name[] = "caisson-agent";
    char option[] = "--self-port";
    char none[] = "0";
    char* const words[] = {name, option, none, nullptr};
    if (ready) fexecve(program, words, environ);
    _exit(1);
  }

  Result<machine::Machine> Start(const machine::MachineSpec& spec, const std::string& home) {
    for (const char* name : {"tmp", "root", "srv", "workspace", "programs", "tree"}) {
      std::filesystem::create_directories(home + "/" + name);
      if (chown((home + "/" + name).c_str(), kGuestId, kGuestId) != 0) return Failed("chown");
    }
    WritePrograms(home);
    sockaddr_un address = AddressOf(home);
    os::UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener.get(), 128) != 0) {
      return Failed("bind");
    }
    CAISSON_ASSIGN(const os::FdPair go, os::MakePipe());
    CAISSON_ASSIGN(os::CloneResult clone,
                   os::CloneWithNamespaces(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS));
    if (clone.pid == 0) BeAgent(home, listener.get(), go.first.get());
    const std::string proc = fmt::format("/proc/{}/", clone.pid);
    CAISSON_TRY(os::WriteSmallFile(proc + "uid_map", fmt::format("0 {} 1000", kGuestId)));
    CAISSON_TRY(os::WriteSmallFile(proc + "gid_map", fmt::format("0 {} 1000", kGuestId)));
    if (write(go.second.get(), "g", 1) != 1) return Failed("write");
    Entry& entry = machines_[spec.id];
    entry.agent = os::ChildProcess(clone.pid, std::move(clone.pidfd));
    entry.machine = {.id = spec.id,
                     .state = machine::State::kRunning,
                     .ip = fmt::format("10.99.0.{}", ++last_ % 250 + 1),
                     .image = spec.image,
                     .disk_bytes = spec.disk_bytes};
    CAISSON_ASSIGN(os::UniqueFd fd, Connect(spec.id));
    CAISSON_TRY(agent::Ping(std::move(fd)));
    return entry.machine;
  }

  static constexpr unsigned kGuestId = 200'000;
  std::string directory_;
  std::mutex mutex_;
  std::map<std::string, Entry> machines_;
  int last_ = 0;
};

}  // namespace caisson::tests
