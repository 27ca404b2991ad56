// SPDX-License-Identifier: Apache-2.0
// What the agent tells the host when something fails. A value or a Failure is an Attempt.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "agent/messages.h"

namespace caisson::agent::guest {

template <typename T>
using Attempt = std::expected<T, Failure>;

// `what` says what was tried, on what; the errno's text is added.
std::unexpected<Failure> Fail(FailureKind kind, std::string_view what, int error);
std::unexpected<Failure> Fail(FailureKind kind, std::string_view what);
// Of a file operation: the kind follows from the errno.
std::unexpected<Failure> FileFailure(std::string_view what, int error);

}  // namespace caisson::agent::guest
