// SPDX-License-Identifier: Apache-2.0
// A mail as it goes over the wire: header and one text part (RFC 5322, 2045, 2047). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace caisson::nodes {

struct MailText {
  std::string subject;
  std::string from;
  std::vector<std::string> to, cc;  // "ann@example.com", "Ann <ann@example.com>"
  std::string body;
  std::string subtype = "plain";  // of text/
};

// Lines end with CR LF. Fails with nodes.failed for a header that would become two, an address
// beyond ASCII or a subtype that is no token.
Result<std::string> WriteMail(const MailText& mail);

// "ann@example.com" of "Ann <ann@example.com>".
std::string BareAddress(std::string_view address);

}  // namespace caisson::nodes
