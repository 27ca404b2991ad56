// SPDX-License-Identifier: Apache-2.0
// A tap that a monitor opens by name, as an ordinary user: its machine is under the same rules as
// one whose link is a pair. The machine is a second stack of this kernel, whose frames a thread
// carries to the tap, as a monitor would.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "egress/links.h"
#include "egress/network.h"
#include "egress/tap.h"
#include "egress/test_world.h"
#include "os/network_namespace.h"

namespace caisson::egress {
namespace {

constexpr uid_t kMonitor = 1'879'048'192;
constexpr const char* kPublic = "203.0.113.10";
constexpr const char* kPrivate = "192.168.7.7";

// As Firecracker opens one: with headers for what the card may leave undone. 0, or the errno. The
// thread has no other right than `user` has once the device is open, which only root may be.
int OpenTap(const char* name, os::UniqueFd& tap, uid_t user = 0) {
  tap.Reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (user != 0) ::syscall(SYS_setresuid, -1, user, -1);
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  return ::ioctl(tap.get(), TUNSETIFF, &request) == 0 ? 0 : errno;
}

// On a thread of its own in the namespace.
int OpenTapAs(uid_t user, const std::string& space, os::UniqueFd& tap) {
  int error = 0;
  const os::UniqueFd fd = os::OpenNetworkNamespace(space).value();
  EXPECT_TRUE(os::InNetworkNamespace(fd.get(), [&]() -> Result<void> {
    error = OpenTap(kNamedTap, tap, user);
    return {};
  }));
  return error;
}

Mac ReadMac(const std::string& text) {
  std::array<unsigned, 6> parts{};
  EXPECT_EQ(std::sscanf(text.c_str(), "%x:%x:%x:%x:%x:%x", &parts[0], &parts[1], &parts[2],
                        &parts[3], &parts[4], &parts[5]),
            6);
  Mac mac{};
  for (std::size_t i = 0; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>(parts[i]);
  return mac;
}

std::uint32_t AddressIn(const std::string& text) {
  return ntohl(SocketAddress(text, 0).sin_addr.s_addr);
}

class Machine {
 public:
  Machine(const TapNetwork& network, const std::string& space, os::UniqueFd outside)
      : outside_(std::move(outside)) {
    const auto fd = os::MakeNetworkNamespace(space, []() -> Result<void> { return {}; });
    EXPECT_TRUE(fd) << fd.error().message;
    const auto made = os::InNetworkNamespace(fd->get(), [&]() -> Result<void> {
      EXPECT_EQ(OpenTap("eth0", inside_), 0);
      Shell("ip link set eth0 address " + network.mac);
      CAISSON_ASSIGN(Links links, Links::Open());
      return links.SetUp({.name = "eth0",
                          .address = AddressIn(network.network.address),
                          .neighbour = AddressIn(network.gateway),
                          .neighbour_mac = ReadMac(network.gateway_mac),
                          .is_default_route = true});
    });
    EXPECT_TRUE(made) << made.error().message;
    carrier_ = std::thread([this] { Carry(); });
  }
  ~Machine() {
    stop_ = true;
    carrier_.join();
  }

 private:
  void Carry() {
    std::array<char, 70'000> frame;
    while (!stop_) {
      std::array<pollfd, 2> events = {pollfd{inside_.get(), POLLIN, 0},
                                      pollfd{outside_.get(), POLLIN, 0}};
      ::poll(events.data(), events.size(), 10);
      for (const bool out : {true, false}) {
        const int from = out ? inside_.get() : outside_.get();
        const int to = out ? outside_.get() : inside_.get();
        for (ssize_t n = 0; (n = ::read(from, frame.data(), frame.size())) > 0;) {
          (void)!::write(to, frame.data(), static_cast<std::size_t>(n));
        }
      }
    }
  }
  os::UniqueFd inside_, outside_;
  std::atomic<bool> stop_ = false;
  std::thread carrier_;
};

class NamedTap : public testing::Test {
 protected:
  void SetUp() override {
    if (!CanMakeNetworks()) GTEST_SKIP() << "needs root, nft and ip";
    world_.emplace();
    auto opened = Gateway::Open(world_->Options());
    ASSERT_TRUE(opened) << opened.error().message;
    gateway_ = *std::move(opened);
  }
  void TearDown() override {
    if (gateway_) {
      EXPECT_TRUE(gateway_->Dismantle());
    }
  }
  std::optional<World> world_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(NamedTap, is_under_the_rules_of_its_machine) {
  const auto made = gateway_->MakeNamedTap(Policy::PublicOnly(), kMonitor);
  ASSERT_TRUE(made) << made.error().message << made.error().details;
  os::UniqueFd tap;
  ASSERT_EQ(OpenTapAs(kMonitor, made->network.namespace_path, tap), 0);
  ASSERT_TRUE(gateway_->AwaitNamedTap(made->network.index));
  const std::string space = world_->directory() + "/network/guest";
  Machine machine(*made, space, std::move(tap));
  Network seen = made->network;
  seen.namespace_path = space;
  {
    const Guest guest(seen);
    EXPECT_EQ(guest.Tcp(kPublic, 80), "open");
    EXPECT_NE(guest.Tcp(kPrivate, 80), "open");
    ASSERT_TRUE(gateway_->Apply(made->network.index, Policy::DenyAll()));
    EXPECT_NE(guest.Tcp(kPublic, 80), "open");
  }
  EXPECT_TRUE(os::DropNetworkNamespace(space));
  EXPECT_TRUE(gateway_->Remove(made->network.index));
}

TEST_F(NamedTap, can_be_opened_by_its_owner_alone) {
  const auto made = gateway_->MakeNamedTap(Policy::DenyAll(), kMonitor);
  ASSERT_TRUE(made) << made.error().message;
  os::UniqueFd tap;
  EXPECT_EQ(OpenTapAs(kMonitor + 1, made->network.namespace_path, tap), EPERM);
  EXPECT_EQ(OpenTapAs(kMonitor, made->network.namespace_path, tap), 0);
  os::UniqueFd second;
  EXPECT_EQ(OpenTapAs(kMonitor, made->network.namespace_path, second), EBUSY);
}

}  // namespace
}  // namespace caisson::egress
