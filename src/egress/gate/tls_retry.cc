// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/tls_retry.h"

#include <algorithm>

namespace caisson::egress::gate {
namespace {

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxRecord = (1u << 14) + 2048;  // an encrypted one of TLS 1.2
constexpr std::uint8_t kChangeCipherSpec = 20;
constexpr std::uint8_t kAlert = 21;
constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kApplicationData = 23;  // early data, here
constexpr std::uint8_t kServerHello = 2;
constexpr std::size_t kRandomAt = 6;  // behind the message's header and the version
// The random value of a server hello that is a HelloRetryRequest: SHA-256 of that word.
constexpr std::string_view kRetryRandom =
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";

std::uint8_t TypeOf(std::string_view record) { return static_cast<std::uint8_t>(record[0]); }
std::size_t LengthOf(std::string_view header) {
  return std::size_t{static_cast<std::uint8_t>(header[3])} << 8 |
         static_cast<std::uint8_t>(header[4]);
}

}  // namespace

Relay::Verdict TlsRetry::FromClient(std::string_view bytes) {
  Relay::Verdict verdict;
  while (verdict.size < bytes.size()) {
    const std::string_view rest = bytes.substr(verdict.size);
    if (record_left_ > 0) {
      const std::size_t taken = std::min(record_left_, rest.size());
      record_left_ -= taken;
      verdict.size += taken;
    } else if (stage_ == Stage::kOver) {
      return {.size = bytes.size(), .ahead = Relay::kAll};
    } else if (TypeOf(rest) == kHandshake) {
      if (stage_ == Stage::kUnknown) break;
      if (!TakeHello(rest)) return {.refused = true};
      if (stage_ == Stage::kRetry) break;  // it has not come whole
    } else {
      const std::size_t taken = TakeRecord(rest);
      if (taken > rest.size()) return {.refused = true};
      if (taken == 0) break;
      verdict.size += taken;
    }
  }
  return verdict;
}

// The header of a record of another kind; 0: it is not whole. More than there is: it may not pass.
std::size_t TlsRetry::TakeRecord(std::string_view rest) {
  const std::uint8_t type = TypeOf(rest);
  const std::size_t no = rest.size() + 1;
  if (type != kChangeCipherSpec && type != kAlert && type != kApplicationData) return no;
  if (rest.size() < kRecordHeader) return 0;
  record_left_ = LengthOf(rest);
  return record_left_ > kMaxRecord ? no : kRecordHeader;
}

// False when it is none, or says another name.
bool TlsRetry::TakeHello(std::string_view rest) {
  const TlsHello::State state = hello_.Feed(rest.substr(given_));
  given_ = rest.size();
  if (state == TlsHello::State::kMore) return true;
  if (state == TlsHello::State::kBad) return false;
  stage_ = Stage::kOver;
  if (hello_.name() == name_) return true;
  other_name_ = hello_.name();
  return false;
}

Relay::Verdict TlsRetry::FromServer(std::string_view bytes) {
  Relay::Verdict verdict{.size = bytes.size()};
  while (stage_ == Stage::kUnknown && !bytes.empty()) {
    if (server_left_ == 0) {
      const std::size_t taken = std::min(kRecordHeader - server_header_.size(), bytes.size());
      server_header_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      const std::uint8_t type = TypeOf(server_header_);
      is_alert_ = type == kAlert;  // a warning may come first
      if (!is_alert_ && type != kHandshake) stage_ = Stage::kOver;
      if (server_header_.size() < kRecordHeader) continue;
      server_left_ = LengthOf(server_header_);
      server_header_.clear();
      if (server_left_ == 0) stage_ = Stage::kOver;
      continue;
    }
    const std::size_t taken = std::min(server_left_, bytes.size());
    server_left_ -= taken;
    if (!is_alert_) {
      server_hello_.append(bytes.substr(0, taken));
      stage_ = Decide();
    }
    bytes.remove_prefix(taken);
  }
  if (stage_ != Stage::kUnknown) verdict.ahead = Relay::kAll;
  return verdict;
}

TlsRetry::Stage TlsRetry::Decide() {
  if (static_cast<std::uint8_t>(server_hello_[0]) != kServerHello) return Stage::kOver;
  if (server_hello_.size() < kRandomAt + kRetryRandom.size()) return Stage::kUnknown;
  const bool asks = server_hello_.compare(kRandomAt, kRetryRandom.size(), kRetryRandom) == 0;
  server_hello_.clear();
  return asks ? Stage::kRetry : Stage::kOver;
}

}  // namespace caisson::egress::gate
