// SPDX-License-Identifier: Apache-2.0
// What several routes read from a request alike.
#pragma once

#include <map>
#include <string>

#include "agent/messages.h"
#include "api/context.h"
#include "api/fields.h"

namespace caisson::api {

// Of the header Idempotency-Key; `body` as it came.
Result<control::Repeatable> RepeatableOf(const Call& call, const std::string& body);

// Of POST /v1/sandboxes, and of what it is in others.
Result<control::CreateRequest> ReadCreate(const Fields& fields);

// cmd, args, env and cwd of a request for a command in that sandbox. `standard` is run when there
// is no cmd; empty: a cmd is required. Fails with control.undeclared_env and api.field.
Result<agent::Command> ReadCommand(const Fields& fields, const store::Sandbox& sandbox,
                                   const std::string& standard);

// An absolute path without NUL, of ?path=.
Result<std::string> ReadPath(const http::Request& request);

// Of a query; `standard` when it is absent. Fails with api.field.
Result<std::int64_t> ReadQueryNumber(const http::Request& request, const std::string& name,
                                     std::int64_t standard, std::int64_t most);

// 1 to 65535.
Result<std::uint16_t> ParsePort(std::string_view text);

}  // namespace caisson::api
