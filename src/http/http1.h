// SPDX-License-Identifier: Apache-2.0
// One connection of HTTP/1, from its handshake to its end. It reads one request at a time, and what
// a client sends ahead waits in a buffer of bounded size. A plain connection that begins with the
// preface of HTTP/2 is handed over to http2.
#pragma once

#include <memory>
#include <string>

#include "http/io_thread.h"
#include "http/service.h"
#include "http/transport.h"

namespace caisson::http {

std::shared_ptr<Connection> MakeHttp1(std::shared_ptr<Service> service, IoThread& thread,
                                      Transport transport, std::string peer);

// "HTTP/1.1 200 OK" and the fields of an answer, up to its empty line.
std::string_view ReasonPhrase(int status);

}  // namespace caisson::http
