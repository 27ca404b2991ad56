// SPDX-License-Identifier: Apache-2.0
// What every route works with. Made once by serve.cc; lives as long as the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "api/log.h"
#include "api/metrics.h"
#include "api/tenant_slots.h"
#include "control/pools.h"
#include "control/sandboxes.h"
#include "control/templates.h"
#include "http/exchange.h"
#include "store/store.h"

namespace caisson::api {

struct ApiOptions {
  std::string version;
  std::string public_url;  // "http://127.0.0.1:8787", what clients reach us by; no slash at the end
  std::string ingress_domain;           // empty: preview URLs are by path
  std::size_t exec_output = 16u << 20;  // kept of each stream of a buffered exec
  std::size_t body_bytes = 32u << 20;   // of a JSON request
  std::uint64_t file_bytes = 16ull << 30;
  std::size_t tenant_requests = 192;  // that one tenant may have under way
  std::chrono::milliseconds heartbeat{5000};
};

struct Context {
  Context(ApiOptions api_options, control::Sandboxes& of_control, control::Templates& of_templates,
          control::Pools& of_pools, Log& a_log)
      : options(std::move(api_options)),
        sandboxes(of_control),
        templates(of_templates),
        pools(of_pools),
        store(of_control.store()),
        log(a_log),
        slots(options.tenant_requests) {}

  ApiOptions options;
  control::Sandboxes& sandboxes;
  control::Templates& templates;
  control::Pools& pools;
  store::Store& store;
  Log& log;
  Metrics metrics;
  TenantSlots slots;
};

// One request of somebody who may make it.
struct Call {
  http::Exchange& exchange;
  Context& context;
  control::Caller caller;

  const http::Request& request() const { return exchange.request(); }
  std::string Parameter(std::string_view name) const {
    return std::string(exchange.request().Parameter(name));
  }
  std::string id() const { return Parameter("id"); }
};

}  // namespace caisson::api
