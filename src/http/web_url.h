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

// A host name as it stands in the DNS: "münchen.de" is "xn--mnchen-3ya.de" (IDNA 2008, UTS 46);
// ASCII becomes lower case and is not looked at further. nullopt when the name has no such form.
std::optional<std::string> AsciiHost(std::string_view host);

}  // namespace caisson::http
