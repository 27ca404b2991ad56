// SPDX-License-Identifier: Apache-2.0
// One connection of HTTP/2 by prior knowledge (h2c), over nghttp2. Each stream is an exchange of
// its own; flow control both ways is that of the exchange's buffers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/io_thread.h"
#include "http/service.h"
#include "http/transport.h"

namespace caisson::http {

// `begin` is what was read already, from the preface on.
std::shared_ptr<Connection> MakeHttp2(std::shared_ptr<Service> service, IoThread& thread,
                                      Transport transport, std::string peer,
                                      std::string_view begin);

}  // namespace caisson::http
