// SPDX-License-Identifier: Apache-2.0
// The service put together: store, control plane, API, HTTP server, and what tends the sandboxes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "api/log.h"
#include "base/status.h"
#include "control/sandboxes.h"
#include "http/server.h"
#include "images/store.h"
#include "machine/driver.h"

namespace caisson::api {

struct ServeOptions {
  std::string version;
  std::string state_directory;  // of this user alone; made when it is missing
  std::vector<http::Listener> listeners;
  std::string public_url;      // empty: of the first listener
  std::string ingress_domain;  // empty: preview URLs are by path
  std::string host = "local";
  std::string region = "local";
  std::string images_directory;
  std::string default_rootfs = "devbox:1";
  control::HostCapacity capacity;
  std::size_t handler_threads = 256;
  std::chrono::milliseconds drain{20'000};
  std::chrono::milliseconds keep_audit = std::chrono::days(90);
};

struct Ready {
  std::string url;
  std::string tenant;     // of the key
  std::string first_key;  // made now, shown once; empty when there were keys already
};

// Serves until `stop`, then finishes what is under way and returns; machines live on. `ready` is
// called once everything listens. Fails with store.*, http.*, machine.*.
Result<void> Serve(const ServeOptions& options, control::Drivers drivers, Log& log,
                   const std::function<void(const Ready&)>& ready, const std::stop_token& stop);

// What fits on this host unless the operator says otherwise: memory is used by need, so sandboxes
// may have several times of it at most; what the host needs itself must stay free.
control::HostCapacity DefaultCapacity();
control::HostNow ReadHost(const std::string& directory);

inline constexpr const char* kFirstTenant = "default";
inline constexpr const char* kStoreFile = "caisson.db";

}  // namespace caisson::api
