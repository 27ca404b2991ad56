// SPDX-License-Identifier: Apache-2.0
// What of the gateway makes the gateway itself, links it to the host and looks after both.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/foreign_text.h"
#include "egress/network.h"
#include "egress/network_parts.h"
#include "errors/egress.h"
#include "os/network_namespace.h"
#include "os/run_program.h"
#include "os/syscall_error.h"
#include "os/write_all.h"

namespace caisson::egress {
namespace {

constexpr Mac kHostMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x01};
constexpr Mac kUplinkMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x02};
constexpr std::size_t kMaxResolvers = 3;  // as resolv.conf(5)

std::unexpected<Status> Unavailable(const std::string& what) {
  return Fail(errors::kEgressUnavailable, what);
}
std::unexpected<Status> NotLoaded() {
  return Fail(errors::kEgressFilterFailed,
              "nft says that it loaded the rules, but they are not there");
}

Result<void> PrepareGateway() {
  CAISSON_TRY(SwitchOffIpv6("all"));
  CAISSON_TRY(SwitchOffIpv6("default"));
  for (const char* scope : {"all", "default"}) {
    const std::string conf = fmt::format("ipv4/conf/{}/", scope);
    CAISSON_TRY(SetSysctl(conf + "send_redirects", "0"));
    CAISSON_TRY(SetSysctl(conf + "accept_redirects", "0"));
    CAISSON_TRY(SetSysctl(conf + "accept_source_route", "0"));
    CAISSON_TRY(SetSysctl(conf + "arp_ignore", "1"));
  }
  CAISSON_TRY(SetSysctl("ipv4/icmp_ratelimit", "0"));  // a refusal that is not told is a hang
  return SetSysctl("ipv4/ip_forward", "1");
}

Result<void> WriteText(const std::string& file, std::string_view text) {
  os::UniqueFd fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return os::SyscallError("make " + file);
  const int error = os::WriteAll(fd.get(), text);
  if (error != 0) return os::SyscallError("write " + file, error);
  return {};
}

Result<void> MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return os::SyscallError("make " + path, error.value());
  return {};
}

}  // namespace

std::vector<std::uint32_t> HostResolvers(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const auto text = os::ReadSmallFile(path);
    std::vector<std::uint32_t> found;
    for (std::string_view rest = text ? *text : std::string_view(); !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      constexpr std::string_view kKeyword = "nameserver";
      if (!line.starts_with(kKeyword)) continue;
      line.remove_prefix(kKeyword.size());
      const std::size_t begin = line.find_first_not_of(" \t");
      if (begin == 0 || begin == std::string_view::npos) continue;
      line = line.substr(begin, line.find_first_of(" \t\r#;", begin) - begin);
      const auto address = ParseAddress(line);
      if (address && *address >> 24 != 127 && found.size() < kMaxResolvers)
        found.push_back(*address);
    }
    if (!found.empty()) return found;
  }
  return {};
}

Result<std::unique_ptr<Gateway>> Gateway::Open(const GatewayOptions& options) {
  if (!OpenParts(options.pool).empty() || !OpenParts(options.transit).empty()) {
    return Unavailable("the addresses for machines and for the link to the host must be private");
  }
  if (options.pool.last - options.pool.first < 2 * kFirstIndex ||
      options.transit.last - options.transit.first < 3 || options.uplink.empty() ||
      options.uplink.size() > 15) {
    return Unavailable(
        "the pool must have 32 addresses, the link 4, and its name 15 characters at most");
  }
  std::unique_ptr<Gateway> gateway(new Gateway(options));
  CAISSON_TRY(gateway->Start());
  return gateway;
}

Result<void> Gateway::Start() {
  const auto resolvers = options_.resolvers.value_or(HostResolvers());
  for (std::size_t i = 0; i < std::min(resolvers.size(), kMaxResolvers); ++i) {
    resolvers_.push_back({inside() + static_cast<std::uint32_t>(i), resolvers[i]});
  }
  CAISSON_TRY(MakeDirectories(options_.directory + "/machines"));
  lock_ = os::UniqueFd(
      ::open((options_.directory + "/.lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid()) return os::SyscallError("open " + options_.directory + "/.lock");
  // Children of a process that was killed end by themselves, but not at once.
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Unavailable("another process manages the networks in " + options_.directory);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CAISSON_TRY(OpenNamespace());
  CAISSON_TRY(LoadGatewayRules());
  CAISSON_TRY(CloseHostAddresses());
  CAISSON_TRY(LinkToHost());
  CAISSON_ASSIGN(const std::vector<std::uint32_t> indexes, ListLocked());
  used_.insert(indexes.begin(), indexes.end());
  last_ = used_.empty() ? kFirstIndex - 1 : *used_.rbegin();
  CAISSON_TRY(KnowShared());
  CAISSON_ASSIGN(refused_, RefusedPackets::Listen(namespace_.get(), kLogGroup));
  listener_ = std::jthread([this](const std::stop_token& stop) { NoteRefusals(stop); });
  return StartGate();
}

Result<void> Gateway::OpenNamespace() {
  if (auto adopted = os::OpenNetworkNamespace(GatewayPath())) {
    namespace_ = *std::move(adopted);
  } else {
    CAISSON_TRY(os::DropNetworkNamespace(GatewayPath()));
    auto made = os::MakeNetworkNamespace(GatewayPath(), PrepareGateway);
    if (!made) return Unavailable("the gateway's namespace: " + made.error().message);
    namespace_ = *std::move(made);
  }
  CAISSON_TRY(os::InNetworkNamespace(namespace_.get(), [&]() -> Result<void> {
    CAISSON_ASSIGN(links_, Links::Open());
    CAISSON_ASSIGN(remover_, Links::Open());
    return {};
  }));
  CAISSON_ASSIGN(host_links_, Links::Open());
  CAISSON_ASSIGN(filter_, PacketFilter::Open(namespace_.get(), kTable));
  CAISSON_ASSIGN(const os::UniqueFd host, os::OpenFile("/proc/thread-self/ns/net", O_RDONLY));
  CAISSON_ASSIGN(host_filter_, PacketFilter::Open(host.get(), HostTable(options_.uplink)));
  return {};
}

Result<void> Gateway::LoadGatewayRules() {
  const RuleText rules = GatewayText(resolvers_);
  CAISSON_ASSIGN(const auto mark, filter_->ReadCounter(rules.mark));
  if (mark) return {};
  const auto loaded = os::InNetworkNamespace(
      namespace_.get(), [&] { return RunNft(options_.directory + "/gateway.nft", rules.text); });
  CAISSON_ASSIGN(const auto now, filter_->ReadCounter(rules.mark));
  if (loaded && now) return {};
  // The rules of another version may stand; without any the machines must have no way out.
  const auto table = filter_->HasTable();
  if (!table || !*table) CAISSON_TRY(links_->Remove(kGatewayUplink));
  if (!loaded) return loaded;
  return NotLoaded();
}

Result<void> Gateway::LinkToHost() {
  if (links_->IndexOf(kGatewayUplink) == 0 || host_links_->IndexOf(options_.uplink) == 0) {
    CAISSON_TRY(links_->Remove(kGatewayUplink));
    CAISSON_TRY(host_links_->Remove(options_.uplink));
    auto made = host_links_->MakePair({options_.uplink, kHostMac}, {kGatewayUplink, kUplinkMac},
                                      namespace_.get());
    if (!made) return Unavailable(made.error().message);
  }
  CAISSON_TRY(SwitchOffIpv6(options_.uplink));
  CAISSON_TRY(LoadHostRules());
  const std::uint32_t host = options_.transit.first + 1;
  const std::uint32_t gateway = options_.transit.first + 2;
  CAISSON_TRY(host_links_->SetUp({.name = options_.uplink,
                                  .address = host,
                                  .neighbour = gateway,
                                  .neighbour_mac = kUplinkMac}));
  CAISSON_TRY(links_->SetUp({.name = kGatewayUplink,
                             .address = gateway,
                             .neighbour = host,
                             .neighbour_mac = kHostMac,
                             .is_default_route = true}));
  return host_links_->AwaitCarrier(options_.uplink);
}

Result<void> Gateway::LoadHostRules() {
  const std::string switched = options_.directory + "/forwarding";  // there when we did it
  CAISSON_ASSIGN(const std::string forwards, os::ReadSmallFile("/proc/sys/net/ipv4/ip_forward"));
  if (forwards.starts_with('0')) CAISSON_TRY(WriteText(switched, ""));
  const RuleText rules = HostText({.uplink = options_.uplink,
                                   .transit = options_.transit,
                                   .resolvers = options_.resolvers.value_or(HostResolvers()),
                                   .forwards_only_ours = ::access(switched.c_str(), F_OK) == 0});
  CAISSON_ASSIGN(const auto known, host_filter_->ReadCounter(rules.mark));
  if (!known) {
    CAISSON_TRY(RunNft(options_.directory + "/host.nft", rules.text));
    CAISSON_ASSIGN(const auto loaded, host_filter_->ReadCounter(rules.mark));
    if (!loaded) return NotLoaded();
  }
  if (!forwards.starts_with('0')) return {};
  return SetSysctl("ipv4/ip_forward", "1");
}

Result<void> Gateway::CloseHostAddresses() {
  CAISSON_ASSIGN(std::vector<std::uint32_t> addresses, host_links_->Addresses());
  if (addresses == host_addresses_) return {};
  CAISSON_TRY(filter_->Commit(HostAddressesBatch(addresses)));
  host_addresses_ = std::move(addresses);
  return {};
}

Result<void> Gateway::WatchCrowd() {
  const auto tracked = options_.tracked();
  const bool crowded = tracked && IsCrowded(is_crowded_.value_or(false), *tracked);
  if (crowded == is_crowded_) return {};
  CAISSON_TRY(filter_->Commit(CrowdBatch(crowded)));
  is_crowded_ = crowded;
  return {};
}

Result<void> Gateway::Refresh() {
  const std::lock_guard lock(mutex_);
  CAISSON_TRY(CloseHostAddresses());
  CAISSON_TRY(WatchCrowd());
  return LoadHostRules();
}

Result<void> Gateway::RunNft(const std::string& file, const std::string& text) {
  CAISSON_TRY(WriteText(file, text));
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable_any done;
  const std::jthread timer([&](const std::stop_token& finished) {
    std::unique_lock lock(mutex);
    done.wait_for(lock, finished, options_.patience, [] { return false; });
    if (!finished.stop_requested()) stop.request_stop();
  });
  const auto end = os::RunProgram(
      {.arguments = {options_.nft, "-f", file}, .variables = {{"LC_ALL", "C"}}}, stop.get_token());
  if (!end) return Fail(errors::kEgressFilterFailed, "nft cannot be run: " + end.error().message);
  if (end->succeeded()) return {};
  Status status{errors::kEgressFilterFailed,
                fmt::format("nft -f {} {}", file, os::ToText(end->status)),
                {},
                ShowForeign(end->messages)};
  return Fail(std::move(status));
}

std::vector<std::string> Gateway::name_servers() const {
  std::vector<std::string> servers;
  servers.reserve(resolvers_.size());
  for (const Resolver& resolver : resolvers_) servers.push_back(FormatAddress(resolver.inside));
  return servers;
}

Result<void> Gateway::Dismantle() {
  const std::lock_guard lock(mutex_);
  CAISSON_ASSIGN(const std::vector<std::uint32_t> indexes, ListLocked());
  for (const std::uint32_t index : indexes) {  // the rules go with the gateway
    CAISSON_TRY(links_->Remove(LinkName(index)));
    CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  }
  used_.clear();
  members_.clear();
  CAISSON_TRY(host_links_->Remove(options_.uplink));
  const std::string mark = options_.directory + "/forwarding";
  if (::access(mark.c_str(), F_OK) == 0) {
    CAISSON_TRY(SetSysctl("ipv4/ip_forward", "0"));
    if (::unlink(mark.c_str()) != 0) return os::SyscallError("remove " + mark);
  }
  const std::string table = HostTable(options_.uplink);
  CAISSON_TRY(RunNft(options_.directory + "/host.nft",
                     fmt::format("table inet {0} {{}}\ndelete table inet {0}\n", table)));
  return os::DropNetworkNamespace(GatewayPath());
}

}  // namespace caisson::egress
