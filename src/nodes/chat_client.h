// SPDX-License-Identifier: Apache-2.0
// Asks a chat endpoint once, streaming if it can, and tries again where that may help: the network,
// 408, 409, 429 (as long as Retry-After says) and 5xx, as long as nothing of an answer has been
// shown. Runs on the visit's thread.
#pragma once

#include "base/status.h"
#include "json/value.h"
#include "nodes/chat_answer.h"
#include "nodes/chat_settings.h"
#include "nodes/node.h"

namespace caisson::nodes {

// `request` holds the members of the request beside those of `settings`. Pieces of the answer go to
// host.Stream. Fails with model.… (api/errors.yaml), outbound.… when the guard closes the way, and
// as Host::Sleep does.
Result<ChatAnswer> AskModel(Host& host, const ChatSettings& settings, json::Object request);

}  // namespace caisson::nodes
