// SPDX-License-Identifier: Apache-2.0
// The first program of a virtual machine, /init of its initial file system: loads the modules that
// /modules/order names, mounts the image (vda, EROFS) in a small root that is in memory, makes the
// cgroup of commands, and becomes the agent, which is beside it and mounts the machine's disk (vdb)
// over the image when it is told to: a machine that is saved before that goes on with any disk. The
// host reaches it through the virtual serial port, or by vsock where the kernel is told
// caisson.vsock=PORT. What fails is told on the console, and the kernel then gives up for want of a
// first process.
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "agent/guest/computer.h"

namespace {

namespace guest = caisson::agent::guest;

constexpr int kDeviceSteps = 5'000;  // of a millisecond
const std::string kStage = "/stage";

void Must(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "caisson-guest-init: %s: %s\n", what, std::strerror(errno));
  std::fflush(stderr);
  std::exit(1);
}

void Directory(const char* path) { Must(::mkdir(path, 0755) == 0 || errno == EEXIST, path); }

void Mount(const char* what, const char* place, const char* type, unsigned long flags,
           const char* options = nullptr) {
  Directory(place);
  Must(::mount(what, place, type, flags, options) == 0, place);
}

std::string ReadAll(const char* path) {
  std::string text;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; file >= 0 && (n = ::read(file, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  if (file >= 0) ::close(file);
  return text;
}

void Write(const char* path, const char* text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  Must(file >= 0 && ::write(file, text, std::strlen(text)) > 0, path);
  ::close(file);
}

void LoadModules() {
  const std::string order = ReadAll("/modules/order");
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t end = order.find('\n', begin);
    const std::string path = "/modules/" + order.substr(begin, end - begin);
    begin = end == std::string::npos ? order.size() : end + 1;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    Must(file >= 0, path.c_str());
    Must(::syscall(SYS_finit_module, file, "", 0) == 0 || errno == EEXIST, path.c_str());
    ::close(file);
  }
}

// What a command writes is on its way to the disk after a second or two, not after half a minute:
// no more is lost when the host ends this machine at once. What goes on from a template has it,
// too.
void WriteBackSoon() {
  Write("/proc/sys/vm/dirty_expire_centisecs", "200");
  Write("/proc/sys/vm/dirty_writeback_centisecs", "100");
}

void AwaitDevice(const char* path) {
  for (int step = 0; step < kDeviceSteps && ::access(path, F_OK) != 0; ++step) ::usleep(1'000);
  Must(::access(path, F_OK) == 0, path);
}

// Empty when it is not there.
std::string WordAfter(const std::string& words, const std::string& key) {
  const std::size_t at = words.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return words.substr(begin, words.find_first_of(" \n", begin) - begin);
}

// "/dev/vport2p1": the first number is that of its device on the bus.
std::string AwaitPort() {
  std::string path;
  for (int step = 0; step < kDeviceSteps && path.empty(); ++step) {
    if (step > 0) ::usleep(1'000);
    DIR* const devices = ::opendir("/dev");
    while (const dirent* entry = devices != nullptr ? ::readdir(devices) : nullptr) {
      if (std::strncmp(entry->d_name, "vport", 5) == 0) path = std::string("/dev/") + entry->d_name;
    }
    if (devices != nullptr) ::closedir(devices);
  }
  errno = ENODEV;
  Must(!path.empty(), "find the virtual serial port");
  return path;
}

void RaiseLoopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP;
  Must(socket >= 0 && ::ioctl(socket, SIOCSIFFLAGS, &request) == 0, "raise lo");
  ::close(socket);
}

// Not the initial file system itself, which cannot be left by pivot_root(2).
void MakeStage() {
  Mount("stage", "/stage", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=1m");
  Mount("/dev/vda", (kStage + guest::kImagePlace).c_str(), "erofs", MS_RDONLY | MS_NODEV);
  for (const char* place : {"/dev", "/proc", "/sys"}) {
    const std::string to = kStage + place;
    Directory(to.c_str());
    Must(::mount(place, to.c_str(), nullptr, MS_MOVE, nullptr) == 0, place);
  }
}

// What the first commands read of the image is in memory already, which copies of a machine share.
void ReadAhead() {
  constexpr std::array<const char*, 10> kFiles = {"/lib64/ld-linux-x86-64.so.2",
                                                  "/lib/x86_64-linux-gnu/libc.so.6",
                                                  "/lib/x86_64-linux-gnu/libm.so.6",
                                                  "/lib/x86_64-linux-gnu/libz.so.1",
                                                  "/lib/x86_64-linux-gnu/libexpat.so.1",
                                                  "/lib/x86_64-linux-gnu/libtinfo.so.6",
                                                  "/bin/sh",
                                                  "/bin/bash",
                                                  "/bin/true",
                                                  "/usr/bin/python3"};
  std::array<char, 65536> piece{};
  for (const char* name : kFiles) {
    // Links in the image are absolute at times, and not the image's then.
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT;
    const int image = ::open((kStage + guest::kImagePlace).c_str(), O_PATH | O_CLOEXEC);
    const int file = static_cast<int>(::syscall(SYS_openat2, image, name + 1, &how, sizeof how));
    while (file >= 0 && ::read(file, piece.data(), piece.size()) > 0) continue;
    if (file >= 0) ::close(file);
    if (image >= 0) ::close(image);
  }
}

// Commands run in a group of their own, beside the agent.
int MakeCommandsGroup() {
  const std::string groups = kStage + "/sys/fs/cgroup";
  Mount("cgroup2", groups.c_str(), "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  Write((groups + "/cgroup.subtree_control").c_str(), "+memory +pids");
  Directory((kStage + guest::kCommandsGroup).c_str());
  const int procs = ::open((kStage + guest::kCommandsGroup + "/cgroup.procs").c_str(), O_WRONLY);
  Must(procs >= 0, "open the commands' cgroup");
  return procs;
}

void EnterStage() {
  Must(::chdir(kStage.c_str()) == 0 && ::mount(".", "/", nullptr, MS_MOVE, nullptr) == 0 &&
           ::chroot(".") == 0 && ::chdir("/") == 0,
       "enter the root");
}

}  // namespace

int main() {
  ::umask(022);
  Mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=755");
  Mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  Mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  LoadModules();
  // There is nobody to load any more; the agent undoes it once there is (guest/disk_root.cc).
  Write(guest::kModuleLoader, "\n");
  const std::string words = ReadAll("/proc/cmdline");
  if (words.find("caisson.trial") != std::string::npos) {
    std::fprintf(stderr, "caisson-guest-init: trial\n");
    ::sync();
    ::reboot(RB_AUTOBOOT);
  }
  WriteBackSoon();
  RaiseLoopback();
  for (const char* device : {"/dev/vda", guest::kDiskDevice}) AwaitDevice(device);
  std::string place = WordAfter(words, " caisson.vsock=");
  const bool by_vsock = !place.empty();
  if (!by_vsock) place = AwaitPort();
  const int agent = ::open("/caisson-agent", O_RDONLY | O_CLOEXEC);
  Must(agent >= 0, "open the agent");
  MakeStage();
  const int procs = MakeCommandsGroup();
  ReadAhead();
  EnterStage();
  std::string descriptor = std::to_string(procs);
  char name[] = "caisson-agent";
  char port[] = "--port";
  char vsock[] = "--vsock";
  char groups[] = "--cgroup-procs";
  std::array<char*, 6> arguments = {name,   by_vsock ? vsock : port, place.data(),
                                    groups, descriptor.data(),       nullptr};
  char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::array<char*, 2> environment = {path, nullptr};
  ::syscall(SYS_execveat, agent, "", arguments.data(), environment.data(), AT_EMPTY_PATH);
  Must(false, "execute the agent");
}
