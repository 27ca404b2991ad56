// SPDX-License-Identifier: Apache-2.0
// Preview URLs: what listens in a machine beyond its loopback addresses, by host name
// (<id>-<port>.<domain>) or by path (/p/<id>/<port>/…). They need no key: the URL is the
// credential, with a token when the sandbox has one, in the header X-Ingress-Token or as
// ?ingress_token=.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::api {

struct IngressHost {
  std::string sandbox;
  std::string port;
};
// Of "<id>-<port>.<domain>", with or without a port of ours behind it; empty when it is no such
// name.
std::optional<IngressHost> ParseIngressHost(std::string_view host, std::string_view domain);

}  // namespace caisson::api
