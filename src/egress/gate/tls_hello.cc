// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/tls_hello.h"

#include <algorithm>
#include <vector>

#include "egress/gate_protocol.h"
#include "egress/name_rules.h"

namespace caisson::egress::gate {
namespace {

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxRecord = 1u << 14;
constexpr std::size_t kMessageHeader = 4;
constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kClientHello = 1;
constexpr std::uint16_t kServerName = 0;
constexpr std::uint16_t kEncryptedClientHello = 0xfe0d;

std::uint8_t ByteAt(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

// Takes fields off; good() is false once there was not enough, for good.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool good() const { return good_; }
  bool ended() const { return good_ && rest_.empty(); }
  std::size_t Number(std::size_t bytes) {
    std::size_t number = 0;
    for (const char c : Bytes(bytes)) number = number << 8 | static_cast<std::uint8_t>(c);
    return number;
  }
  std::string_view Bytes(std::size_t count) {
    if (!good_ || rest_.size() < count) {
      good_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  // A vector behind its length of `length_bytes`.
  std::string_view Vector(std::size_t length_bytes) { return Bytes(Number(length_bytes)); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

TlsHello::State TlsHello::Bad(const char* why) {
  why_bad_ = why;
  hello_.clear();
  return state_ = State::kBad;
}

TlsHello::State TlsHello::Feed(std::string_view bytes) {
  while (state_ == State::kMore && !bytes.empty()) {
    if (left_ == 0) {
      const std::size_t taken = std::min(kRecordHeader - header_.size(), bytes.size());
      header_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      fed_ += taken;
      if (header_.size() < kRecordHeader) break;
      if (ByteAt(header_, 0) != kHandshake || ByteAt(header_, 1) != 3 || ByteAt(header_, 2) > 4) {
        return Bad("no TLS record of a handshake");
      }
      left_ = std::size_t{ByteAt(header_, 3)} << 8 | ByteAt(header_, 4);
      header_.clear();
      if (left_ == 0 || left_ > kMaxRecord) return Bad("a TLS record of no valid length");
      continue;
    }
    const std::size_t taken = std::min(left_, bytes.size());
    left_ -= taken;
    fed_ += taken;
    if (TakeFragment(bytes.substr(0, taken)) == State::kMore && fed_ > kMaxBytes) {
      return Bad("a TLS hello in too many records");
    }
    bytes.remove_prefix(taken);
  }
  return state_;
}

TlsHello::State TlsHello::TakeFragment(std::string_view fragment) {
  hello_.append(fragment);
  if (ByteAt(hello_, 0) != kClientHello) return Bad("a handshake that begins with no client hello");
  if (hello_.size() < kMessageHeader) return state_;
  const std::size_t length = std::size_t{ByteAt(hello_, 1)} << 16 |
                             std::size_t{ByteAt(hello_, 2)} << 8 | ByteAt(hello_, 3);
  if (length > kMaxHello) return Bad("a TLS hello of more than 16 KiB");
  if (hello_.size() < kMessageHeader + length) return state_;
  if (hello_.size() > kMessageHeader + length || left_ != 0) {
    return Bad("a record that holds more than the TLS hello");
  }
  return Parse();
}

TlsHello::State TlsHello::Parse() {
  Cursor cursor(std::string_view(hello_).substr(kMessageHeader));
  const std::size_t version = cursor.Number(2);
  cursor.Bytes(32);  // random
  const std::string_view session = cursor.Vector(1);
  const std::string_view suites = cursor.Vector(2);
  const std::string_view compressions = cursor.Vector(1);
  if (!cursor.good() || version >> 8 != 3 || session.size() > 32 || suites.empty() ||
      suites.size() % 2 != 0 || compressions.empty()) {
    return Bad("a malformed TLS hello");
  }
  if (!cursor.ended()) {  // before TLS 1.2 there may be no extensions at all
    const std::string_view extensions = cursor.Vector(2);
    if (!cursor.ended()) return Bad("a malformed TLS hello");
    if (!ParseExtensions(extensions)) return state_;
  }
  hello_.clear();
  hello_.shrink_to_fit();
  return state_ = State::kWhole;
}

bool TlsHello::ParseExtensions(std::string_view extensions) {
  Cursor cursor(extensions);
  std::vector<std::size_t> types;
  while (!cursor.ended()) {
    types.push_back(cursor.Number(2));
    const std::string_view body = cursor.Vector(2);
    if (!cursor.good()) return Bad("a malformed TLS extension"), false;
    if (types.back() == kServerName && !ParseServerName(body)) return false;
    has_encrypted_hello_ |= types.back() == kEncryptedClientHello;
  }
  std::ranges::sort(types);
  if (std::ranges::adjacent_find(types) != types.end()) {
    return Bad("a TLS extension that comes twice"), false;
  }
  return true;
}

bool TlsHello::ParseServerName(std::string_view body) {
  Cursor cursor(body);
  Cursor list(cursor.Vector(2));
  const std::size_t type = list.Number(1);
  const std::string_view name = list.Vector(2);
  if (!cursor.ended() || !list.ended() || type != 0) {
    return Bad("a server_name that holds not exactly one host name"), false;
  }
  name_ = CanonicalName(name);
  if (!IsGateName(name_)) {
    name_.clear();
    return Bad("a server_name that is no host name"), false;
  }
  return true;
}

}  // namespace caisson::egress::gate
