// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/computer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "os/fd.h"

namespace caisson::agent::guest {
namespace {

// Of ext4 (fs/ext4/ext4.h): the size in blocks that the file system is to have.
constexpr unsigned long kResizeExt4 = _IOW('f', 16, std::uint64_t);
constexpr std::size_t kMaxEntropy = 512;
// How long commands may take to stand still: a call into a disk that is busy is not left at once.
constexpr int kFreezeSteps = 2'000;
constexpr int kSizeSteps = 2'000;

std::unexpected<Failure> Failed(const char* what) {
  return Fail(FailureKind::kInternal, what, errno);
}

bool WriteTo(const std::string& path, std::string_view text) {
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Attempt<void> AddEntropy(const std::string& bytes) {
  if (bytes.empty() || bytes.size() > kMaxEntropy) {
    return Fail(FailureKind::kBadRequest, "entropy has 1 to 512 bytes");
  }
  const os::UniqueFd device(::open("/dev/urandom", O_RDWR | O_CLOEXEC));
  std::vector<char> buffer(sizeof(rand_pool_info) + bytes.size() + sizeof(std::uint32_t));
  auto* pool = reinterpret_cast<rand_pool_info*>(buffer.data());
  pool->entropy_count = static_cast<int>(bytes.size() * 8);
  pool->buf_size = static_cast<int>(bytes.size());
  std::memcpy(pool->buf, bytes.data(), bytes.size());
  // The generator takes what is added when it is seeded anew, which is else a while.
  if (!device.valid() || ::ioctl(device.get(), RNDADDENTROPY, pool) != 0 ||
      ::ioctl(device.get(), RNDRESEEDCRNG) != 0) {
    return Failed("seed the random generator anew");
  }
  return {};
}

Attempt<void> SetClock(std::int64_t now_ns) {
  const timespec now{.tv_sec = now_ns / 1'000'000'000, .tv_nsec = now_ns % 1'000'000'000};
  if (now_ns <= 0 || ::clock_settime(CLOCK_REALTIME, &now) != 0) return Failed("set the clock");
  return {};
}

// A disk of a copy may be full, or its owner may have put something odd there: its own affair.
void WriteFile(const std::string& path, const std::string& content) {
  (void)::mkdir(path.substr(0, path.rfind('/')).c_str(), 0755);
  const os::UniqueFd file(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (file.valid()) (void)!::write(file.get(), content.data(), content.size());
}

sockaddr Address(const in_addr& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr = address;
  sockaddr plain{};
  std::memcpy(&plain, &name, sizeof plain);
  return plain;
}

ifreq Device(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  return request;
}

bool SetUp(int socket, const char* name, bool up) {
  ifreq request = Device(name);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags =
      static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

bool ReadMac(const std::string& text, char* bytes) {
  std::array<unsigned, 6> parts{};
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x", &parts[0], &parts[1], &parts[2],
                  &parts[3], &parts[4], &parts[5]) != 6) {
    return false;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) bytes[i] = static_cast<char>(parts[i]);
  return true;
}

// One address, and one neighbour through whom everything is reached, with no question asked on the
// wire: as the gateway's end of the link is set up.
Attempt<void> SetNetwork(const RenewRequest& request) {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || !SetUp(socket.get(), "lo", true)) return Failed("raise lo");
  // Down first: routes and what is known of neighbours go with it.
  (void)SetUp(socket.get(), "eth0", false);
  if (request.address.empty()) return {};
  in_addr own{};
  in_addr gateway{};
  ifreq device = Device("eth0");
  arpreq neighbour{};
  device.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  neighbour.arp_ha.sa_family = ARPHRD_ETHER;
  if (::inet_pton(AF_INET, request.address.c_str(), &own) != 1 ||
      ::inet_pton(AF_INET, request.gateway.c_str(), &gateway) != 1 ||
      !ReadMac(request.mac, device.ifr_hwaddr.sa_data) ||
      !ReadMac(request.gateway_mac, neighbour.arp_ha.sa_data)) {
    return Fail(FailureKind::kBadRequest, "the network has no valid addresses");
  }
  if (::ioctl(socket.get(), SIOCSIFHWADDR, &device) != 0) return Failed("name eth0 on the wire");
  device.ifr_addr = Address(own);
  if (::ioctl(socket.get(), SIOCSIFADDR, &device) != 0) return Failed("set the address of eth0");
  device.ifr_netmask = Address({htonl(0xffffffff)});
  if (::ioctl(socket.get(), SIOCSIFNETMASK, &device) != 0) return Failed("set the net of eth0");
  if (!SetUp(socket.get(), "eth0", true)) return Failed("raise eth0");
  char name[] = "eth0";
  rtentry to_gateway{};
  to_gateway.rt_dst = Address(gateway);
  to_gateway.rt_genmask = Address({htonl(0xffffffff)});
  to_gateway.rt_dev = name;
  to_gateway.rt_flags = RTF_UP | RTF_HOST;
  if (::ioctl(socket.get(), SIOCADDRT, &to_gateway) != 0 && errno != EEXIST) {
    return Failed("make the route to the gateway");
  }
  neighbour.arp_pa = Address(gateway);
  neighbour.arp_flags = ATF_COM | ATF_PERM;
  std::strncpy(neighbour.arp_dev, name, sizeof neighbour.arp_dev - 1);
  if (::ioctl(socket.get(), SIOCSARP, &neighbour) != 0) return Failed("name the gateway");
  rtentry route{};
  route.rt_dst = Address({0});
  route.rt_genmask = Address({0});
  route.rt_gateway = Address(gateway);
  route.rt_dev = name;
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  if (::ioctl(socket.get(), SIOCADDRT, &route) != 0) return Failed("make the default route");
  return {};
}

Attempt<void> SetLimits(const RenewRequest& request) {
  const std::string group = kCommandsGroup;
  if (!WriteTo(group + "/memory.max", std::to_string(request.memory_bytes)) ||
      !WriteTo(group + "/pids.max", std::to_string(request.pids))) {
    return Failed("limit commands");
  }
  // Swap there is none; this file need not be there then.
  (void)WriteTo(group + "/memory.swap.max", "0");
  return {};
}

bool IsMachineId(const std::string& id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The kernel hears of a device's new size a little later than we do.
void AwaitSize(int disk, std::uint64_t bytes) {
  struct stat info{};
  ::fstat(disk, &info);
  const std::string file = "/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                           std::to_string(minor(info.st_dev)) + "/size";
  for (int step = 0; step < kSizeSteps; ++step) {
    const auto sectors = os::ReadSmallFile(file);
    if (!sectors || std::strtoull(sectors->c_str(), nullptr, 10) * 512 >= bytes) return;
    ::usleep(1'000);
  }
}

bool IsFrozen() {
  const auto events = os::ReadSmallFile(std::string(kCommandsGroup) + "/cgroup.events");
  return events && events->find("frozen 1") != std::string::npos;
}

}  // namespace

Attempt<void> Identify(const IdentifyRequest& request) {
  if (!IsMachineId(request.machine_id)) {
    return Fail(FailureKind::kBadRequest, "machine_id has 32 hexadecimal digits");
  }
  if (::sethostname(request.host_name.data(), request.host_name.size()) != 0) {
    return Failed("set the host name");
  }
  WriteFile("/etc/machine-id", request.machine_id + "\n");
  for (const auto& [path, content] : request.files) WriteFile(path, content);
  return {};
}

Attempt<void> Renew(const RenewRequest& request) {
  if (auto done = AddEntropy(request.entropy); !done) return done;
  if (!request.host_name.empty()) {
    if (auto done = Identify({request.host_name, request.machine_id, request.files}); !done) {
      return done;
    }
  }
  if (auto done = SetNetwork(request); !done) return done;
  if (auto done = SetLimits(request); !done) return done;
  return Thaw({.now_ns = request.now_ns});
}

Attempt<void> Quiesce() {
  const std::string file = std::string(kCommandsGroup) + "/cgroup.freeze";
  if (!WriteTo(file, "1")) return Failed("freeze commands");
  for (int step = 0; !IsFrozen(); ++step) {
    if (step == kFreezeSteps) {
      // Whoever goes on with this machine's memory must not find commands at work.
      (void)WriteTo(file, "0");
      errno = EBUSY;
      return Failed("make commands stand still");
    }
    ::usleep(1'000);
  }
  const os::UniqueFd disk(::open(kDiskPlace, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (disk.valid() && ::syncfs(disk.get()) == 0) return {};
  const int error = errno;
  (void)WriteTo(file, "0");
  errno = error;
  return Failed("write the disk");
}

Attempt<void> Thaw(const ThawRequest& request) {
  if (auto done = SetClock(request.now_ns); !done) return done;
  if (!WriteTo(std::string(kCommandsGroup) + "/cgroup.freeze", "0")) {
    return Failed("let commands go on");
  }
  return {};
}

Attempt<void> GrowDisk(const GrowDiskRequest& request) {
  constexpr std::uint64_t kBlock = 4096;  // as mkfs.ext4 was told
  const os::UniqueFd disk(::open(kDiskPlace, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::uint64_t blocks = request.bytes / kBlock;
  if (disk.valid()) AwaitSize(disk.get(), request.bytes);
  if (!disk.valid() || ::ioctl(disk.get(), kResizeExt4, &blocks) != 0) {
    return Failed("grow the disk's file system");
  }
  return {};
}

}  // namespace caisson::agent::guest
