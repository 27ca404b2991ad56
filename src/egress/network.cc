// SPDX-License-Identifier: Apache-2.0
#include "egress/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/foreign_text.h"
#include "egress/no_network.h"
#include "egress/tap.h"
#include "errors/egress.h"
#include "os/network_namespace.h"
#include "os/run_program.h"
#include "os/syscall_error.h"
#include "os/write_all.h"

namespace caisson::egress {
namespace {

constexpr Mac kHostMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x01};
constexpr Mac kUplinkMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x02};
constexpr Mac kGatewayMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x03};
constexpr std::uint32_t kFirstIndex = 16;  // below: the network, the gateway, its resolvers
constexpr std::size_t kMaxResolvers = 3;   // as resolv.conf(5)
constexpr const char* kMachineLink = "eth0";

Mac MachineMac(std::uint32_t index) {
  return {0x02,
          0xca,
          static_cast<std::uint8_t>(index >> 24),
          static_cast<std::uint8_t>(index >> 16),
          static_cast<std::uint8_t>(index >> 8),
          static_cast<std::uint8_t>(index)};
}

std::optional<std::uint32_t> IndexIn(std::string_view text) {
  std::uint32_t index = 0;
  if (text.empty() || text.size() > 9) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return index;
}

std::unexpected<Status> Unavailable(const std::string& what) {
  return Fail(errors::kEgressUnavailable, what);
}
std::unexpected<Status> NotLoaded() {
  return Fail(errors::kEgressFilterFailed,
              "nft says that it loaded the rules, but they are not there");
}

// A kernel without IPv6 has none of its settings.
Result<void> SwitchOffIpv6(const std::string& link) {
  if (::access("/proc/sys/net/ipv6", F_OK) != 0) return {};
  return SetSysctl("ipv6/conf/" + link + "/disable_ipv6", "1");
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

// The guest has no power over this namespace, which another user namespace owns: so that root in it
// may use low ports and ping.
Result<void> PrepareMachine() {
  CAISSON_TRY(SwitchOffIpv6("default"));
  CAISSON_TRY(SetSysctl("ipv4/ip_unprivileged_port_start", "0"));
  return SetSysctl("ipv4/ping_group_range", "0 2147483647");
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
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Unavailable("another process manages the networks in " + options_.directory);
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

Result<void> Gateway::Refresh() {
  const std::lock_guard lock(mutex_);
  CAISSON_TRY(CloseHostAddresses());
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

std::string Gateway::PathOf(std::uint32_t index) const {
  return fmt::format("{}/machines/{}", options_.directory, index);
}

// In turn, so that an address comes back late: what answers to its last owner finds nobody.
Result<std::uint32_t> Gateway::TakeIndex() {
  const std::uint32_t end = options_.pool.last - options_.pool.first;  // the last is the broadcast
  for (std::uint32_t tried = kFirstIndex; tried < end; ++tried) {
    last_ = last_ + 1 < end ? last_ + 1 : kFirstIndex;
    if (used_.insert(last_).second) return last_;
  }
  return Fail(errors::kEgressExhausted,
              fmt::format("all {} addresses of {} are in use; destroy machines", end - kFirstIndex,
                          FormatRange(options_.pool)));
}

Result<void> Gateway::Connect(std::uint32_t index) {
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  CAISSON_ASSIGN(const os::UniqueFd inside_fd,
                 os::MakeNetworkNamespace(PathOf(index), PrepareMachine));
  CAISSON_TRY(links_->MakePair({LinkName(index), kGatewayMac}, {kMachineLink, MachineMac(index)},
                               inside_fd.get()));
  std::optional<Links> machine;
  CAISSON_TRY(os::InNetworkNamespace(inside_fd.get(), [&]() -> Result<void> {
    CAISSON_ASSIGN(machine, Links::Open());
    return {};
  }));
  CAISSON_TRY(machine->SetUp({.name = kMachineLink,
                              .address = AddressOf(index),
                              .neighbour = inside(),
                              .neighbour_mac = kGatewayMac,
                              .is_default_route = true}));
  CAISSON_TRY(SetUpEnd(index));
  return machine->AwaitCarrier(kMachineLink);
}

// The namespace has nothing in it, but says that there is a network of this number.
Result<os::UniqueFd> Gateway::ConnectTap(std::uint32_t index) {
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  CAISSON_TRY(os::MakeNetworkNamespace(PathOf(index), PrepareMachine));
  os::UniqueFd tap;
  CAISSON_TRY(os::InNetworkNamespace(namespace_.get(), [&]() -> Result<void> {
    CAISSON_ASSIGN(tap, egress::MakeTap({LinkName(index), kGatewayMac}));
    return {};
  }));
  CAISSON_TRY(SetUpEnd(index));
  return tap;
}

Result<void> Gateway::SetUpEnd(std::uint32_t index) {
  return links_->SetUp({.name = LinkName(index),
                        .address = inside(),
                        .neighbour = AddressOf(index),
                        .neighbour_mac = MachineMac(index)});
}

Result<Network> Gateway::Make(const Policy& policy) {
  std::uint32_t index = 0;
  Result<void> made;
  {
    const std::lock_guard lock(mutex_);
    CAISSON_ASSIGN(index, TakeIndex());
    made = Connect(index);
  }
  if (made) made = ApplyAndTell({index, AddressOf(index), policy}, Rules::kNew);
  if (!made) {
    (void)Remove(index);  // what stays is in List, and closed
    return Fail(std::move(made).error());
  }
  return Network{index, FormatAddress(AddressOf(index)), PathOf(index)};
}

Result<TapNetwork> Gateway::MakeTap(const Policy& policy) {
  std::uint32_t index = 0;
  Result<os::UniqueFd> tap;
  {
    const std::lock_guard lock(mutex_);
    CAISSON_ASSIGN(index, TakeIndex());
    tap = ConnectTap(index);
  }
  Result<void> made = tap ? ApplyAndTell({index, AddressOf(index), policy}, Rules::kNew)
                          : std::unexpected(tap.error());
  if (!made) {
    (void)Remove(index);
    return Fail(std::move(made).error());
  }
  return TapNetwork{.network = {index, FormatAddress(AddressOf(index)), PathOf(index)},
                    .tap = *std::move(tap),
                    .mac = FormatMac(MachineMac(index)),
                    .gateway = FormatAddress(inside()),
                    .gateway_mac = FormatMac(kGatewayMac)};
}

Result<Network> Gateway::Adopt(std::uint32_t index, const Policy& policy, std::uint64_t cap_bytes) {
  Rules which = Rules::kReplaced;
  {
    const std::lock_guard lock(mutex_);
    if (!os::OpenNetworkNamespace(PathOf(index)) || links_->IndexOf(LinkName(index)) == 0) {
      return NoNetwork(index);
    }
    used_.insert(index);
    cut_.insert(index);  // an earlier process may have cut it off
    CAISSON_ASSIGN(const auto known, filter_->ReadCounter(SentCounter(index)));
    if (!known) which = Rules::kNew;
  }
  CAISSON_TRY(ApplyAndTell({index, AddressOf(index), policy, cap_bytes}, which));
  return Network{index, FormatAddress(AddressOf(index)), PathOf(index)};
}

Result<void> Gateway::Apply(std::uint32_t index, const Policy& policy, std::uint64_t cap_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (links_->IndexOf(LinkName(index)) == 0) return NoNetwork(index);
  }
  return ApplyAndTell({index, AddressOf(index), policy, cap_bytes}, Rules::kReplaced);
}

// Taking a link away costs the kernel 20 ms, so that it is done beside all else; by then its rules
// are gone, and nothing passes.
Result<void> Gateway::Remove(std::uint32_t index) {
  {
    const std::lock_guard lock(mutex_);
    used_.insert(index);
    if (auto closed = CloseLocked(index); !closed) {
      (void)links_->SetDown(LinkName(index));
      return closed;
    }
  }
  TellGate(index);
  log_.Forget(index);
  {
    const std::lock_guard lock(remover_mutex_);
    CAISSON_TRY(remover_->Remove(LinkName(index)));
  }
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  const std::lock_guard lock(mutex_);
  used_.erase(index);
  cut_.erase(index);
  return {};
}

Result<void> Gateway::CloseLocked(std::uint32_t index) {
  CAISSON_TRY(ShareLocked(index, {}));
  CAISSON_ASSIGN(const auto known, filter_->ReadCounter(SentCounter(index)));
  if (known) {
    CAISSON_ASSIGN(const auto mark, filter_->ReadCounter(NamesMark(index)));
    CAISSON_TRY(filter_->Commit(RemovalBatch(index, AddressOf(index), mark.has_value())));
  }
  members_.erase(index);
  CAISSON_TRY(filter_->ForgetFlows(AddressOf(index)));
  FilterBatch count;  // of its connections: there is none when it never opened one
  count.DeleteAddress("flows", AddressOf(index));
  (void)filter_->Commit(count);
  return {};
}

Result<Traffic> Gateway::ReadTraffic(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  CAISSON_ASSIGN(const auto sent, filter_->ReadCounter(SentCounter(index)));
  CAISSON_ASSIGN(const auto received, filter_->ReadCounter(ReceivedCounter(index)));
  if (!sent || !received) return NoNetwork(index);
  return Traffic{.sent_bytes = sent->bytes, .received_bytes = received->bytes};
}

Result<std::vector<std::uint32_t>> Gateway::List() {
  const std::lock_guard lock(mutex_);
  return ListLocked();
}

Result<std::vector<std::uint32_t>> Gateway::ListLocked() {
  std::set<std::uint32_t> indexes;
  CAISSON_ASSIGN(const std::vector<std::string> names, links_->Names("m"));
  for (const std::string& name : names) {
    if (const auto index = IndexIn(std::string_view(name).substr(1))) indexes.insert(*index);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(options_.directory + "/machines", error), end;
       !error && it != end; it.increment(error)) {
    if (const auto index = IndexIn(it->path().filename().string())) indexes.insert(*index);
  }
  if (error) return os::SyscallError("list " + options_.directory + "/machines", error.value());
  return std::vector<std::uint32_t>(indexes.begin(), indexes.end());
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
