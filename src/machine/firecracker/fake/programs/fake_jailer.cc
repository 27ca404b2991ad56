// SPDX-License-Identifier: Apache-2.0
// A double of Firecracker's jailer, for tests: its command line and, step by step, what its
// documentation says that it does (docs/jailer.md). Beyond that it shows the host's libraries in
// the jail, since the double of Firecracker is not static, and the directory of its control.h.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "machine/firecracker/fake/control.h"

namespace {

namespace fake = caisson::machine::firecracker::fake;
namespace fs = std::filesystem;

[[noreturn]] void GiveUp(const std::string& what) {
  std::fprintf(stderr, "Jailer error: %s\n", what.c_str());
  std::exit(1);
}
void Must(bool done, const std::string& what) {
  if (!done) GiveUp(what + ": " + std::strerror(errno));
}

struct Arguments {
  std::map<std::string, std::string> values;
  bool new_pid_ns = false;
  std::vector<std::string> extra;
  std::string at(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }
};

Arguments Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      arguments.extra.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word == "--new-pid-ns") {
      arguments.new_pid_ns = true;
      continue;
    }
    const bool known = word == "--id" || word == "--exec-file" || word == "--uid" ||
                       word == "--gid" || word == "--chroot-base-dir" || word == "--netns";
    if (!known || i + 1 >= words.size()) {
      GiveUp("Failed to parse arguments: Found argument '" + word + "' which wasn't expected");
    }
    if (!arguments.values.emplace(word, words[++i]).second) {
      GiveUp("Failed to parse arguments: The argument '" + word + "' was provided more than once");
    }
  }
  for (const char* needed : {"--id", "--exec-file", "--uid", "--gid"}) {
    if (arguments.at(needed).empty()) {
      GiveUp(std::string("Failed to parse arguments: Argument '") + needed + "' required");
    }
  }
  return arguments;
}

void CheckId(const std::string& id) {
  if (id.empty() || id.size() > 64) GiveUp("Invalid instance ID: Invalid len");
  for (const unsigned char c : id) {
    if (std::isalnum(c) == 0 && c != '-') GiveUp("Invalid instance ID: Invalid char");
  }
}

// Not the jailer's.
void ShowForTests(const fs::path& root, const std::string& control) {
  for (const char* folder : {"/usr", "/lib", "/lib64"}) {
    const fs::path place = root / std::string(folder).substr(1);
    if (fs::is_symlink(folder)) {
      fs::create_symlink(fs::read_symlink(folder), place);
      continue;
    }
    fs::create_directories(place);
    Must(::mount(folder, place.c_str(), nullptr, MS_BIND, nullptr) == 0, "show libraries");
  }
  fs::create_directories(root / "control");
  Must(::mount(control.c_str(), (root / "control").c_str(), nullptr, MS_BIND, nullptr) == 0,
       "show the control");
}

void EnterRoot(const fs::path& root) {
  Must(::unshare(CLONE_NEWNS) == 0, "Failed to unshare into new mount namespace");
  Must(::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0, "MountPropagationSlave");
  Must(::mount(root.c_str(), root.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0, "MountBind");
  Must(::chdir(root.c_str()) == 0, "SetCurrentDir");
  Must(::mkdir("old_root", 0600) == 0, "MkdirOldRoot");
  Must(::syscall(SYS_pivot_root, ".", "old_root") == 0, "PivotRoot");
  Must(::chdir("/") == 0, "ChdirNewRoot");
  Must(::umount2("old_root", MNT_DETACH) == 0, "UmountOldRoot");
  Must(::rmdir("old_root") == 0, "RmOldRootDir");
}

void MakeDevice(const char* path, unsigned minor, uid_t uid, gid_t gid) {
  Must(::mknod(path, S_IFCHR | 0600, makedev(10, minor)) == 0,
       std::string("Failed to create ") + path + " via mknod inside the jail");
  Must(::chown(path, uid, gid) == 0, std::string("Failed to change owner for ") + path);
}

[[noreturn]] void Execute(const std::string& program, const Arguments& arguments, uid_t uid,
                          gid_t gid) {
  Must(::setgroups(0, nullptr) == 0 && ::setresgid(gid, gid, gid) == 0 &&
           ::setresuid(uid, uid, uid) == 0,
       "drop privileges");
  std::vector<std::string> words = {program,
                                    "--id",
                                    arguments.at("--id"),
                                    "--start-time-us",
                                    "1",
                                    "--start-time-cpu-us",
                                    "1",
                                    "--parent-cpu-time-us",
                                    "1"};
  words.insert(words.end(), arguments.extra.begin(), arguments.extra.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  GiveUp("Failed to exec into Firecracker: " + std::string(std::strerror(errno)));
}

int Main(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[1] == "--version") {
    std::printf("Jailer %s\n", fake::ReadControl("jailer_version").value_or("v1.12.1").c_str());
    return 0;
  }
  const std::string control = fake::ControlDirectory();
  std::string line = "jailer";
  for (std::size_t i = 1; i < words.size(); ++i) line += " " + words[i];
  fake::Record(line);
  if (const auto wish = fake::ReadControl("jailer_fails")) GiveUp(*wish);
  ::syscall(SYS_close_range, 3, ~0U, 0);
  ::clearenv();
  const Arguments arguments = Parse(words);
  CheckId(arguments.at("--id"));
  const fs::path program = fs::canonical(arguments.at("--exec-file"));
  if (program.filename().string().find("firecracker") == std::string::npos) {
    GiveUp("Invalid filename. The filename of `--exec-file` option must contain \"firecracker\"");
  }
  const std::string base = arguments.at("--chroot-base-dir");
  const fs::path root = fs::canonical(base.empty() ? "/srv/jailer" : base) / program.filename() /
                        arguments.at("--id") / "root";
  const auto uid = static_cast<uid_t>(std::stoul(arguments.at("--uid")));
  const auto gid = static_cast<gid_t>(std::stoul(arguments.at("--gid")));
  fs::create_directories(root);
  fs::copy_file(program, root / program.filename(), fs::copy_options::overwrite_existing);
  if (const std::string netns = arguments.at("--netns"); !netns.empty()) {
    const int fd = ::open(netns.c_str(), O_RDONLY | O_CLOEXEC);
    Must(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0, "Failed to join network namespace: netns");
    ::close(fd);
  }
  const rlimit files{.rlim_cur = 2048, .rlim_max = 2048};
  Must(::setrlimit(RLIMIT_NOFILE, &files) == 0, "Failed to set limit for resource");
  ShowForTests(root, control);
  EnterRoot(root);
  for (const char* folder : {"/", "/dev", "/dev/net", "/run"}) {
    fs::create_directories(folder);
    Must(::chmod(folder, 0700) == 0 && ::chown(folder, uid, gid) == 0, folder);
  }
  MakeDevice("/dev/net/tun", 200, uid, gid);
  MakeDevice("/dev/kvm", 232, uid, gid);
  const std::string inside = "/" + program.filename().string();
  if (!arguments.new_pid_ns) Execute(inside, arguments, uid, gid);
  const auto pid = static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  Must(pid >= 0, "Failed cloning into a new child process");
  if (pid == 0) Execute(inside, arguments, uid, gid);
  std::ofstream(inside + ".pid") << pid;
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return Main({argv, argv + argc}); }
