// SPDX-License-Identifier: Apache-2.0
// URLs of http and https as browsers read them (the WHATWG URL standard), in their one normal form.
// Not what requests are sent with: outbound_guard.h. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::http {

// "HTTP://Example.COM:80/a/../b c" is "http://example.com/b%20c". nullopt when it is no absolute
// URL of one of the two schemes.
std::optional<std::string> NormalWebUrl(std::string_view text);

}  // namespace caisson::http
