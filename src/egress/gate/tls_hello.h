// SPDX-License-Identifier: Apache-2.0
// The name in a TLS ClientHello (RFC 8446, 6066), which may come in any pieces: bytes, records,
// fragments of the handshake message. Strict: a hello that could be read in two ways is bad. No
// input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::egress::gate {

// True for the first byte of a TLS record that holds a handshake.
constexpr bool BeginsTls(char first) { return first == 0x16; }

class TlsHello {
 public:
  static constexpr std::size_t kMaxHello = 16u << 10;
  // What Feed ever takes before it has decided: records may be as small as one byte.
  static constexpr std::size_t kMaxBytes = 24u << 10;

  enum class State : std::uint8_t { kMore, kWhole, kBad };
  // The next bytes of the stream. What follows on the hello is not looked at.
  State Feed(std::string_view bytes);

  // Once whole: what server_name says, in lower case, without a dot at the end; empty when the
  // hello has none.
  const std::string& name() const { return name_; }
  // How many bytes of the stream it took.
  std::size_t size() const { return fed_; }
  // With encrypted_client_hello, `name` is the outer one; the inner one is hidden (and most
  // programs send this extension with nothing in it).
  bool has_encrypted_hello() const { return has_encrypted_hello_; }
  const char* why_bad() const { return why_bad_; }

 private:
  State Bad(const char* why);
  State TakeFragment(std::string_view fragment);
  State Parse();
  bool ParseExtensions(std::string_view extensions);
  bool ParseServerName(std::string_view list);

  State state_ = State::kMore;
  std::size_t fed_ = 0;
  std::string header_;    // of the record, as far as it has come
  std::size_t left_ = 0;  // of the record
  std::string hello_;     // the handshake message, with its own header
  std::string name_;
  bool has_encrypted_hello_ = false;
  const char* why_bad_ = "";
};

}  // namespace caisson::egress::gate
