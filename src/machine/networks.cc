// SPDX-License-Identifier: Apache-2.0
#include "machine/networks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "os/syscall_error.h"

namespace caisson::machine {
namespace {

Result<void> RaiseLoopback() {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return os::SyscallError("raise lo");
  return {};
}

Result<os::UniqueFd> MakeNamespace() {
  Result<os::UniqueFd> made;
  std::thread([&made] {
    made = []() -> Result<os::UniqueFd> {
      if (::unshare(CLONE_NEWNET) != 0) return os::SyscallError("make a network namespace");
      CAISSON_TRY(RaiseLoopback());
      return os::OpenFile("/proc/thread-self/ns/net", O_RDONLY);
    }();
  }).join();
  return made;
}

class LoopbackOnly final : public Networks {
 public:
  bool enforces() const override { return false; }
  bool enforces_names() const override { return false; }

  Result<NetworkPlace> Make() override {
    CAISSON_ASSIGN(os::UniqueFd made, MakeNamespace());
    NetworkPlace place;
    place.path = "/proc/self/fd/" + std::to_string(made.get());
    const std::lock_guard lock(mutex_);
    place.index = ++last_;
    namespaces_.emplace(place.index, std::move(made));
    return place;
  }

  Result<TapPlace> MakeTap() override { return TapPlace{}; }
  Result<TapPlace> MakeNamedTap(uid_t) override { return TapPlace{}; }
  Result<void> AwaitNamedTap(std::uint32_t) override { return {}; }
  Result<void> Apply(std::uint32_t, const egress::Policy&, SentCap) override { return {}; }
  Result<void> Adopt(std::uint32_t, const egress::Policy&, SentCap) override { return {}; }
  Result<void> Remove(std::uint32_t index) override {
    const std::lock_guard lock(mutex_);
    namespaces_.erase(index);
    return {};
  }
  Result<void> Share(std::uint32_t, uid_t, const std::set<std::string>& networks) override {
    if (networks.empty()) return {};
    return Fail(errors::kMachineUnsupported, "machines have no network here");
  }
  Result<egress::NetworkLog> ReadLog(std::uint32_t, std::uint64_t) override {
    return egress::NetworkLog{};
  }
  Result<NetworkTraffic> ReadTraffic(std::uint32_t) override { return NetworkTraffic{}; }
  Result<std::vector<std::uint32_t>> List() override { return std::vector<std::uint32_t>{}; }
  std::vector<std::string> name_servers() const override { return {}; }

 private:
  std::mutex mutex_;
  // Other numbers than those in records of earlier runs, whose namespaces are not here.
  std::uint32_t last_ = std::random_device{}() & 0x7ff00000;
  std::map<std::uint32_t, os::UniqueFd> namespaces_;
};

class OfGateway final : public Networks {
 public:
  explicit OfGateway(std::unique_ptr<egress::Gateway> gateway)
      : gateway_(std::move(gateway)),
        keeper_([this](const std::stop_token& stop) { Keep(stop); }) {}

  bool enforces() const override { return true; }
  bool enforces_names() const override { return gateway_->enforces_names(); }
  std::string WhyNoNames() const override {
    const auto& failure = gateway_->gate_failure();
    return failure ? failure->message : "";
  }
  Result<NetworkPlace> Make() override {
    CAISSON_ASSIGN(egress::Network network, gateway_->Make(egress::Policy::DenyAll()));
    return NetworkPlace{.index = network.index,
                        .address = std::move(network.address),
                        .path = std::move(network.namespace_path)};
  }
  Result<TapPlace> MakeTap() override {
    CAISSON_ASSIGN(egress::TapNetwork made, gateway_->MakeTap(egress::Policy::DenyAll()));
    return PlaceOf(std::move(made));
  }
  Result<TapPlace> MakeNamedTap(uid_t owner) override {
    CAISSON_ASSIGN(egress::TapNetwork made,
                   gateway_->MakeNamedTap(egress::Policy::DenyAll(), owner));
    return PlaceOf(std::move(made));
  }
  Result<void> AwaitNamedTap(std::uint32_t index) override {
    return gateway_->AwaitNamedTap(index);
  }
  Result<void> Apply(std::uint32_t index, const egress::Policy& policy, SentCap cap) override {
    return gateway_->Apply(index, policy, cap.value_or(egress::kNoCap));
  }
  Result<void> Adopt(std::uint32_t index, const egress::Policy& policy, SentCap cap) override {
    CAISSON_TRY(gateway_->Adopt(index, policy, cap.value_or(egress::kNoCap)));
    return {};
  }
  Result<void> Remove(std::uint32_t index) override { return gateway_->Remove(index); }
  Result<void> Share(std::uint32_t index, uid_t owner,
                     const std::set<std::string>& networks) override {
    std::set<std::string> of_owner;
    for (const std::string& id : networks) of_owner.insert(fmt::format("{}/{}", owner, id));
    return gateway_->Share(index, of_owner);
  }
  Result<egress::NetworkLog> ReadLog(std::uint32_t index, std::uint64_t after) override {
    return gateway_->ReadLog(index, after);
  }
  Result<NetworkTraffic> ReadTraffic(std::uint32_t index) override {
    CAISSON_ASSIGN(const egress::Traffic traffic, gateway_->ReadTraffic(index));
    return NetworkTraffic{.received_bytes = traffic.received_bytes,
                          .sent_bytes = traffic.sent_bytes};
  }
  Result<std::vector<std::uint32_t>> List() override { return gateway_->List(); }
  std::vector<std::string> name_servers() const override { return gateway_->name_servers(); }

 private:
  static TapPlace PlaceOf(egress::TapNetwork made) {
    return {.place = {.index = made.network.index,
                      .address = std::move(made.network.address),
                      .path = std::move(made.network.namespace_path)},
            .tap = std::move(made.tap),
            .mac = std::move(made.mac),
            .gateway = std::move(made.gateway),
            .gateway_mac = std::move(made.gateway_mac)};
  }
  void Keep(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, std::chrono::seconds(3),
                          [&stop] { return stop.stop_requested(); })) {
      (void)gateway_->Refresh();  // tried again
    }
  }

  std::unique_ptr<egress::Gateway> gateway_;
  std::jthread keeper_;
};

}  // namespace

Result<std::unique_ptr<Networks>> GatewayNetworks(const egress::GatewayOptions& options) {
  CAISSON_ASSIGN(std::unique_ptr<egress::Gateway> gateway, egress::Gateway::Open(options));
  return std::make_unique<OfGateway>(std::move(gateway));
}

std::unique_ptr<Networks> NoNetworks() { return std::make_unique<LoopbackOnly>(); }

}  // namespace caisson::machine
