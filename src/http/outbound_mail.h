// SPDX-License-Identifier: Apache-2.0
// The mail half of outbound.h.
#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "http/outbound.h"
#include "http/outbound_guard.h"

namespace caisson::http {

Result<MailOutcome> SendMail(const Guard& guard, const std::string& ca_file,
                             const MailRequest& mail, std::stop_token stop);

}  // namespace caisson::http
