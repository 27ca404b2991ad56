// SPDX-License-Identifier: Apache-2.0
#include "api/serve.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include "agent/client.h"
#include "api/api.h"
#include "api/text.h"
#include "control/identity.h"
#include "control/self_requests.h"
#include "errors/store.h"
#include "os/fd.h"
#include "store/sqlite/store.h"

namespace caisson::api {
namespace {

constexpr std::int64_t kOvercommit = 10;
constexpr std::int64_t kFreeShare = 20;  // a twentieth of the memory stays free
constexpr std::int64_t kLeastFreeDisk = 1024;
constexpr auto kRound = std::chrono::seconds(1);
constexpr auto kPingPatience = std::chrono::milliseconds(2000);

std::int64_t MemoryLine(const char* name) {
  const auto text = os::ReadSmallFile("/proc/meminfo");
  if (!text) return 0;
  std::istringstream lines(*text);
  std::string word;
  while (lines >> word) {
    std::int64_t kib = 0;
    if (word == name && lines >> kib) return kib / 1024;
    lines.ignore(1 << 12, '\n');
  }
  return 0;
}

Result<void> MakeStateDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(errors::kStoreFailed, fmt::format("the state directory {} cannot be made: {}", path,
                                                  std::strerror(errno)));
  }
  return {};
}

// The images of the store under the names that clients use.
Result<std::vector<control::RootImage>> Catalogue(const std::string& directory) {
  std::vector<control::RootImage> roots;
  CAISSON_ASSIGN(const images::Store store, images::Store::Open(directory));
  CAISSON_ASSIGN(const auto all, store.List());
  for (const images::Image& image : all) {
    const json::Value* text = image.info.Find("description");
    for (const std::string& name : image.names) {
      roots.push_back({.name = name,
                       .description = text != nullptr && text->is_string() ? text->as_string() : "",
                       .image = image.id});
    }
  }
  return roots;
}

Result<Ready> MakeFirstKey(store::Store& store) {
  Ready ready{.tenant = kFirstTenant};
  CAISSON_ASSIGN(const auto keys, store.Read([](store::Rows& rows) { return rows.Keys(); }));
  if (!keys.empty()) return ready;
  CAISSON_ASSIGN(const auto made,
                 control::CreateKey(store, kFirstTenant, "first", true, NowMilliseconds()));
  ready.first_key = made.secret;
  return ready;
}

std::string UrlOf(const http::Listener& listener, std::uint16_t port) {
  if (listener.address.starts_with("unix:")) return listener.address;
  return fmt::format("{}://{}:{}", listener.tls ? "https" : "http",
                     listener.address.substr(0, listener.address.rfind(':')), port);
}

control::SandboxesOptions OptionsOf(const ServeOptions& options) {
  control::SandboxesOptions out;
  out.host = options.host;
  out.region = options.region;
  out.default_rootfs = options.default_rootfs;
  out.capacity = options.capacity;
  out.catalogue = [directory = options.images_directory] { return Catalogue(directory); };
  out.host_now = [directory = options.state_directory] { return ReadHost(directory); };
  out.now = NowMilliseconds;
  out.keep_audit = options.keep_audit.count();
  out.answers = [](machine::Driver& driver, const std::string& id) {
    auto connection = driver.Connect(id);
    return connection && agent::Ping(*std::move(connection), kPingPatience);
  };
  return out;
}

void Tend(control::Sandboxes& sandboxes, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, stop, kRound, [&] { return stop.stop_requested(); })) {
    sandboxes.Tend();
  }
}

void AwaitStop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

}  // namespace

control::HostCapacity DefaultCapacity() {
  const std::int64_t memory = MemoryLine("MemTotal:");
  return {.sandboxes = 1000,
          .memory_mib = memory * kOvercommit,
          .disk_mib = store::kUnlimited,
          .least_free_memory_mib = memory / kFreeShare,
          .least_free_disk_mib = kLeastFreeDisk};
}

control::HostNow ReadHost(const std::string& directory) {
  control::HostNow now{.free_memory_mib = MemoryLine("MemAvailable:")};
  struct statvfs info{};
  if (statvfs(directory.c_str(), &info) == 0) {
    now.free_disk_mib = static_cast<std::int64_t>(info.f_bavail * info.f_frsize >> 20);
  }
  return now;
}

Result<void> Serve(const ServeOptions& options, control::Drivers drivers, Log& log,
                   const std::function<void(const Ready&)>& ready, const std::stop_token& stop) {
  CAISSON_TRY(MakeStateDirectory(options.state_directory));
  CAISSON_ASSIGN(const auto store, store::sqlite::Open(options.state_directory + "/" + kStoreFile));
  CAISSON_ASSIGN(Ready told, MakeFirstKey(*store));
  control::Sandboxes sandboxes(OptionsOf(options), *store, std::move(drivers));
  CAISSON_TRY(sandboxes.Adopt());
  control::Templates templates(sandboxes);
  control::Pools pools(sandboxes);
  Context context({.version = options.version,
                   .public_url = options.public_url,
                   .ingress_domain = options.ingress_domain,
                   .tenant_requests = std::max<std::size_t>(1, options.handler_threads * 3 / 4)},
                  sandboxes, templates, pools, log);
  http::Options http{.listeners = options.listeners,
                     .io_threads = std::clamp(std::thread::hardware_concurrency(), 1U, 4U),
                     .error_answer = MakeErrorAnswer(),
                     .served = MakeServedHook(context)};
  http.limits.handler_threads = options.handler_threads;
  CAISSON_ASSIGN(const auto server, http::Server::Start(std::move(http), MakeRouter(context)));
  told.url = UrlOf(options.listeners.front(), server->port());
  if (context.options.public_url.empty()) context.options.public_url = told.url;
  const std::jthread tending([&](const std::stop_token& end) { Tend(sandboxes, end); });
  const std::jthread listening(
      [&](const std::stop_token& end) { control::HearSelfRequests(sandboxes, end); });
  ready(told);
  log.Info("serving", {{"url", told.url}});
  AwaitStop(stop);
  log.Info("draining");
  sandboxes.Drain();
  const bool whole = server->Drain(options.drain);
  log.Info("ended", {{"whole", whole}});
  return {};
}

}  // namespace caisson::api
