// SPDX-License-Identifier: Apache-2.0
#include "api/ingress.h"

#include <algorithm>
#include <cctype>

#include "agent/client.h"
#include "api/requests.h"
#include "api/routes.h"
#include "errors/control.h"
#include "http/proxy.h"

namespace caisson::api {
namespace {

constexpr std::string_view kTokenField = "X-Ingress-Token";
constexpr std::string_view kTokenQuery = "ingress_token=";  // its characters need no code

// Our token, and the query without it, which is nothing for the guest's logs. From the target as it
// came: a route by host name has no query yet.
struct Asked {
  std::string token;
  std::string query;  // with its question mark, when there is any
};
Asked Read(const http::Request& request) {
  Asked asked;
  if (const std::string* token = request.headers.Find(kTokenField)) asked.token = *token;
  const std::size_t mark = request.target.find('?');
  if (mark == std::string::npos) return asked;
  for (std::size_t start = mark + 1; start <= request.target.size();) {
    const std::size_t end = std::min(request.target.find('&', start), request.target.size());
    const std::string pair = request.target.substr(start, end - start);
    if (pair.starts_with(kTokenQuery)) {
      asked.token = pair.substr(kTokenQuery.size());
    } else if (!pair.empty()) {
      asked.query += (asked.query.empty() ? "?" : "&") + pair;
    }
    start = end + 1;
  }
  return asked;
}

Result<void> Forward(Call& call, const std::string& id, std::string_view port_text,
                     const std::string& path) {
  const http::Request& request = call.request();
  auto port = ParsePort(port_text);
  if (!port) return Fail(errors::kControlNotFound, "there is nothing at this address");
  const Asked asked = Read(request);
  CAISSON_ASSIGN(const control::InUse held, call.context.sandboxes.HoldForIngress(id, asked.token));
  CAISSON_ASSIGN(os::UniqueFd connection, call.context.sandboxes.Connect(held.sandbox));
  CAISSON_ASSIGN(os::UniqueFd upstream,
                 agent::Dial(std::move(connection), {.port = *port, .to = agent::DialTo::kPublic}));
  return http::ProxyTo(
      call.exchange, std::move(upstream),
      {.port = *port, .target = path + asked.query, .drop_headers = {std::string(kTokenField)}});
}

Result<void> ByPath(Call& call) {
  return Forward(call, call.id(), call.request().Parameter("port"), "/" + call.Parameter("rest"));
}

Result<void> ByHost(Call& call) {
  const auto host = ParseIngressHost(call.request().host, call.context.options.ingress_domain);
  if (!host) return Fail(errors::kControlNotFound, "there is nothing at this address");
  const std::string& target = call.request().target;
  return Forward(call, host->sandbox, host->port, target.substr(0, target.find('?')));
}

}  // namespace

std::optional<IngressHost> ParseIngressHost(std::string_view host, std::string_view domain) {
  std::string name(host.substr(0, host.rfind(':')));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string suffix = "." + std::string(domain);
  if (domain.empty() || !name.ends_with(suffix)) return std::nullopt;
  name.resize(name.size() - suffix.size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || name.find('.') != std::string::npos) return std::nullopt;
  return IngressHost{.sandbox = name.substr(0, dash), .port = name.substr(dash + 1)};
}

void AddIngress(Routes& routes) {
  routes.Add("* /p/{id}/{port}/{rest...}", Access::kOpen, Pace::kBlocking, ByPath);
  if (routes.context().options.ingress_domain.empty()) return;
  routes.AddHost(
      [domain = routes.context().options.ingress_domain](const http::Request& request) {
        return ParseIngressHost(request.host, domain).has_value();
      },
      ByHost);
}

}  // namespace caisson::api
