// SPDX-License-Identifier: Apache-2.0
// The TLS side of listeners: TLS 1.2 and newer, ALPN "http/1.1" only, certificates that can be read
// anew while connections live.
#pragma once

#include <openssl/types.h>

#include <memory>

#include "base/status.h"
#include "http/server.h"
#include "http/transport.h"

namespace caisson::http {

using SharedTls = std::shared_ptr<SSL_CTX>;

// http.tls when a file cannot be read, or the key is not that of the certificate.
Result<SharedTls> LoadTls(const TlsFiles& files);

// Set up to accept; nullptr when memory is out.
UniqueSsl NewTls(const SharedTls& context);

}  // namespace caisson::http
