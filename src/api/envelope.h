// SPDX-License-Identifier: Apache-2.0
// How answers look: JSend envelopes, always with 200 for success, and pages of lists.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "http/exchange.h"
#include "json/value.h"

namespace caisson::api {

// {"status":"success","data":…}
Result<void> Succeed(http::Exchange& exchange, json::Value data);

// What a Status is to a client: {"status":"fail","data":…} below 500, where `data` is the message,
// or {field: message, "code": code} when the details name a field; else {"status":"error",…}.
http::Answer AnswerOf(const Status& status, const http::Request* request);

struct Page {
  std::int64_t limit = 50;
  std::int64_t offset = 0;
};
// Of ?limit= and ?offset=; what is no number is refused, what is too large is cut to 500.
Result<Page> ReadPage(const http::Request& request);

// {"data":[…],"pagination":{…}}
json::Value PageOf(json::Array items, std::int64_t total, const Page& page);
// The page of a list that is whole.
json::Value CutPage(json::Array all, const Page& page);

}  // namespace caisson::api
