// SPDX-License-Identifier: Apache-2.0
// The sandbox API over HTTP: its routes, how errors look, what is counted and logged of requests.
#pragma once

#include <memory>

#include "api/context.h"
#include "http/router.h"
#include "http/server.h"

namespace caisson::api {

// All routes. The context must outlive the router and the server that it goes to.
http::Router MakeRouter(Context& context);

// For http::Options: the envelope of errors, and the log and metrics of what was served.
http::ErrorAnswer MakeErrorAnswer();
std::function<void(const http::Served&)> MakeServedHook(Context& context);

}  // namespace caisson::api
