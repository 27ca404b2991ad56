// SPDX-License-Identifier: Apache-2.0
// Whether a TLS client says another name when the server asks it for a second hello
// (HelloRetryRequest: RFC 8446 section 4.1.4), which it must not. Looks at what goes either way
// behind the first hello, until the server's first message asks for no second one, or that has
// come. Until then no handshake of the client passes: an honest one has nothing to say yet. No
// input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/gate/flow.h"
#include "egress/gate/tls_hello.h"

namespace caisson::egress::gate {

class TlsRetry {
 public:
  // `name`: of the first hello, in the form of TlsHello. `size`: the bytes of that one, which come
  // first.
  TlsRetry(std::string name, std::size_t size) : name_(std::move(name)), record_left_(size) {}

  // Bytes of the client (Relay::Inspect).
  Relay::Verdict FromClient(std::string_view bytes);
  // Of the server: all of them pass.
  Relay::Verdict FromServer(std::string_view bytes);

  // Once refused: the name of the second hello, where it has another one.
  const std::string& other_name() const { return other_name_; }

 private:
  enum class Stage : std::uint8_t {
    kUnknown,  // the server has not said anything yet
    kRetry,    // it wants a second hello
    kOver,     // nothing is looked at any more
  };
  std::size_t TakeRecord(std::string_view rest);
  bool TakeHello(std::string_view rest);
  Stage Decide();

  const std::string name_;
  std::string other_name_;
  Stage stage_ = Stage::kUnknown;
  // Of the client.
  std::size_t record_left_ = 0;
  TlsHello hello_;         // the second
  std::size_t given_ = 0;  // bytes of it that were looked at
  // Of the server.
  std::string server_header_;
  std::size_t server_left_ = 0;  // of its record
  bool is_alert_ = false;
  std::string server_hello_;
};

}  // namespace caisson::egress::gate
