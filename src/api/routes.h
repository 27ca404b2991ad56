// SPDX-License-Identifier: Apache-2.0
// Puts routes into a router with what all of them share: who is calling and what he may do, bounds
// per tenant, the audit log.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/context.h"
#include "http/router.h"

namespace caisson::api {

enum class Access {
  kOpen,     // nobody needs a key
  kSandbox,  // a key, or the delegated token of the sandbox {id}
  kTenant,   // a key
  kAdmin,    // a key of an administrator
};

// How long a route may keep its thread.
enum class Pace {
  kShort,     // a look into the store: runs on the I/O thread
  kBlocking,  // anything else
};

using Serve = std::function<Result<void>(Call&)>;

class Routes {
 public:
  Routes(http::Router& router, Context& context) : router_(router), context_(context) {}

  void Add(std::string_view pattern, Access access, Pace pace, Serve serve);
  // For requests whose host name `matches`, whatever their path. Once at most.
  void AddHost(std::function<bool(const http::Request&)> matches, Serve serve);
  // 501 for a part of the API that does not exist here, to those who may ask.
  void AddNotBuilt(std::string_view pattern, const std::string& what);
  Context& context() { return context_; }

 private:
  http::Router& router_;
  Context& context_;
};

// The key of a request, wherever clients put it; empty when there is none.
std::string_view KeyOf(const http::Request& request);
Result<control::Caller> Identify(Context& context, const http::Request& request, Access access);

// One file each.
void AddHealth(Routes& routes);
void AddCatalogue(Routes& routes);
void AddSandboxes(Routes& routes);
void AddLifecycle(Routes& routes);
void AddExec(Routes& routes);
void AddFiles(Routes& routes);
void AddProcesses(Routes& routes);
void AddTokens(Routes& routes);
void AddNetwork(Routes& routes);
void AddNetworks(Routes& routes);
void AddTunnel(Routes& routes);
void AddIngress(Routes& routes);
void AddTemplates(Routes& routes);
void AddPools(Routes& routes);
void AddEvents(Routes& routes);
void AddMeasurements(Routes& routes);
void AddNotBuilt(Routes& routes);

}  // namespace caisson::api
