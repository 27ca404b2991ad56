// SPDX-License-Identifier: Apache-2.0
#include "api/routes.h"

#include <fmt/format.h>

#include "api/envelope.h"
#include "api/text.h"
#include "base/error_catalogue.h"
#include "errors/api.h"
#include "errors/control.h"

namespace caisson::api {
namespace {

bool Changes(const http::Request& request) {
  return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
}

// What was asked and how it went; bodies and secrets are no part of it.
void Audit(Call& call, const Result<void>& outcome) {
  const http::Request& request = call.request();
  if (!Changes(request) || call.caller.tenant.empty()) return;
  const std::int64_t status = outcome ? 200 : FindError(outcome.error().code).http_status;
  const std::string target = call.id().empty() ? call.Parameter("name") : call.id();
  auto written = call.context.store.Write([&](store::Rows& rows) {
    return rows.AppendAudit({.at = NowMilliseconds(),
                             .tenant = call.caller.tenant,
                             .actor = call.caller.actor,
                             .peer = request.peer,
                             .request_id = request.id,
                             .action = ValidUtf8(request.pattern),
                             .target = ValidUtf8(target),
                             .status = status});
  });
  if (!written) {
    call.context.log.Error("the audit log cannot be written",
                           {{"reason", written.error().message}, {"request_id", request.id}});
  }
}

Result<void> Run(Context& context, http::Exchange& exchange, Access access, Pace pace,
                 const Serve& serve) {
  CAISSON_ASSIGN(control::Caller caller, Identify(context, exchange.request(), access));
  const bool takes_thread = pace == Pace::kBlocking && !caller.tenant.empty();
  const auto slot = takes_thread ? context.slots.Take(caller.tenant) : std::nullopt;
  if (takes_thread && !slot) {
    return Fail(errors::kControlBusy,
                "the tenant has too many requests under way; send this one again when some of them "
                "are over");
  }
  Call call{.exchange = exchange, .context = context, .caller = std::move(caller)};
  Result<void> outcome = serve(call);
  Audit(call, outcome);
  return outcome;
}

}  // namespace

std::string_view KeyOf(const http::Request& request) {
  if (const std::string* key = request.headers.Find("X-Api-Key")) return *key;
  return {};
}

Result<control::Caller> Identify(Context& context, const http::Request& request, Access access) {
  if (access == Access::kOpen) return control::Caller{};
  CAISSON_ASSIGN(auto caller, control::Authenticate(context.store, KeyOf(request)));
  if (caller.sandbox && access != Access::kSandbox) {
    return Fail(errors::kControlForbidden,
                "the access token of a sandbox is for the commands, files, processes and life of "
                "that sandbox only; use an API key");
  }
  if (access == Access::kAdmin && !caller.is_admin) {
    return Fail(errors::kControlForbidden, "this needs the API key of an administrator");
  }
  return caller;
}

void Routes::Add(std::string_view pattern, Access access, Pace pace, Serve serve) {
  router_.Add(pattern, {.may_block = pace == Pace::kBlocking,
                        .serve = [this_context = &context_, access, pace,
                                  serve = std::move(serve)](http::Exchange& exchange) {
                          return Run(*this_context, exchange, access, pace, serve);
                        }});
}

void Routes::AddHost(std::function<bool(const http::Request&)> matches, Serve serve) {
  auto handler = std::make_shared<http::Handler>();
  handler->serve = [this_context = &context_, serve = std::move(serve)](http::Exchange& exchange) {
    return Run(*this_context, exchange, Access::kOpen, Pace::kBlocking, serve);
  };
  router_.SetHostRoute([handler, matches = std::move(matches)](const http::Request& request) {
    return matches(request) ? handler.get() : nullptr;
  });
}

void Routes::AddNotBuilt(std::string_view pattern, const std::string& what) {
  Add(pattern, Access::kTenant, Pace::kShort, [what](Call&) -> Result<void> {
    return Fail(errors::kApiNotBuilt, what + " does not exist on this server");
  });
}

}  // namespace caisson::api
