// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/dns_message.h"

#include <algorithm>
#include <utility>

#include "egress/gate_protocol.h"

namespace caisson::egress::gate {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::size_t kMaxWireName = 255;
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxRecords = 512;
constexpr int kMaxChain = 16;
constexpr std::uint16_t kInternet = 1;

// Bits of the header's second half.
constexpr std::uint16_t kResponse = 0x8000;
constexpr std::uint16_t kOpcode = 0x7800;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;
constexpr std::uint16_t kCheckingDisabled = 0x0010;
constexpr std::uint16_t kRcode = 0x000f;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Takes numbers and names off a message; good() is false once there was not enough, for good.
class Cursor {
 public:
  explicit Cursor(std::string_view message) : message_(message) {}

  std::size_t at() const { return at_; }
  bool good() const { return good_; }
  bool ended() const { return good_ && at_ == message_.size(); }

  std::uint8_t Byte() {
    if (!Has(1)) return 0;
    return static_cast<std::uint8_t>(message_[at_++]);
  }
  std::uint16_t Short() {
    const auto high = static_cast<std::uint16_t>(Byte() << 8);
    return static_cast<std::uint16_t>(high | Byte());
  }
  std::uint32_t Long() {
    const auto high = std::uint32_t{Short()} << 16;
    return high | Short();
  }
  void Skip(std::size_t count) {
    if (Has(count)) at_ += count;
  }
  // In lower case. Pointers lead backwards only, each further than the one before, so that there is
  // an end.
  std::string Name(bool may_be_compressed) {
    std::string name;
    std::size_t at = at_;
    std::size_t barrier = at_;
    bool jumped = false;
    for (;;) {
      if (at >= message_.size()) return Bad();
      const auto length = static_cast<std::uint8_t>(message_[at]);
      if ((length & 0xc0) == 0xc0) {
        if (!may_be_compressed || at + 1 >= message_.size()) return Bad();
        const std::size_t target =
            std::size_t{length & 0x3fu} << 8 | static_cast<std::uint8_t>(message_[at + 1]);
        if (!jumped) at_ = at + 2;
        jumped = true;
        if (target >= barrier || target < kHeader) return Bad();
        at = barrier = target;
        continue;
      }
      if (length > kMaxLabel || name.size() + length + 1 > kMaxWireName ||
          at + 1 + length > message_.size()) {
        return Bad();
      }
      name.push_back(message_[at]);
      for (std::size_t i = at + 1; i <= at + length; ++i) name.push_back(Lower(message_[i]));
      at += 1 + length;
      if (length == 0) break;
    }
    if (!jumped) at_ = at;
    return name;
  }

 private:
  bool Has(std::size_t count) {
    if (good_ && message_.size() - at_ >= count) return true;
    good_ = false;
    return false;
  }
  std::string Bad() {
    good_ = false;
    return {};
  }

  std::string_view message_;
  std::size_t at_ = 0;
  bool good_ = true;
};

void PutShort(std::string& bytes, std::size_t number) {
  bytes.push_back(static_cast<char>(number >> 8 & 0xff));
  bytes.push_back(static_cast<char>(number & 0xff));
}
void PutLong(std::string& bytes, std::uint32_t number) {
  PutShort(bytes, number >> 16);
  PutShort(bytes, number & 0xffff);
}

// Dotted, for people and for looking it up.
void ReadName(std::string_view wire, Query& query) {
  query.is_plain = true;
  for (std::size_t at = 0; wire[at] != 0;) {
    const auto length = static_cast<std::uint8_t>(wire[at]);
    if (!query.name.empty()) query.name += '.';
    for (const char c : wire.substr(at + 1, length)) {
      query.is_plain &= IsPlain(c);
      query.name += c > 0x20 && c < 0x7f && c != '.' ? c : '?';
    }
    at += 1 + length;
  }
  query.is_plain &= !query.name.empty();
  if (query.name.size() > kMaxGateName) query.name.resize(kMaxGateName);
}

// The one additional record that a question may have (RFC 6891 section 6.1).
Rcode ReadEdns(Cursor& cursor, Query& query) {
  const bool is_root = cursor.Byte() == 0;
  const std::uint16_t type = cursor.Short();
  const std::uint16_t size = cursor.Short();
  cursor.Byte();  // of the extended rcode
  const std::uint8_t version = cursor.Byte();
  cursor.Short();  // flags
  cursor.Skip(cursor.Short());
  if (!is_root || type != kTypeOpt || !cursor.good()) return Rcode::kFormat;
  query.udp_size = std::clamp<std::size_t>(size, kMaxPlainMessage, kMaxUdpMessage);
  return version == 0 ? Rcode::kNoError : Rcode::kBadVersion;
}

Rcode ReadQuestion(std::string_view message, std::uint16_t flags, Query& query) {
  if ((flags & kOpcode) != 0) return Rcode::kNotImplemented;
  if ((flags & (kTruncated | kRcode)) != 0) return Rcode::kFormat;
  Cursor cursor(message);
  cursor.Skip(4);
  const std::uint16_t questions = cursor.Short();
  const std::uint16_t answers = cursor.Short();
  const std::uint16_t authorities = cursor.Short();
  const std::uint16_t additionals = cursor.Short();
  if (questions != 1 || answers != 0 || authorities != 0 || additionals > 1) return Rcode::kFormat;
  const std::string wire = cursor.Name(false);
  const std::uint16_t type = cursor.Short();
  const std::uint16_t record_class = cursor.Short();
  if (!cursor.good()) return Rcode::kFormat;
  query.question = message.substr(kHeader, cursor.at() - kHeader);
  query.type = type;
  query.record_class = record_class;
  ReadName(wire, query);
  const Rcode rcode = additionals == 1 ? ReadEdns(cursor, query) : Rcode::kNoError;
  if (rcode == Rcode::kNoError && !cursor.ended()) return Rcode::kFormat;
  return rcode;
}

struct Alias {
  std::string owner;
  std::string target;
  std::uint32_t ttl = 0;
};
struct Address {
  std::string owner;
  std::uint32_t address = 0;
  std::uint32_t ttl = 0;
};
struct Records {
  std::vector<Alias> aliases;
  std::vector<Address> addresses;
};

// One record of an answer; others than CNAME and A are passed over. False when it is malformed.
bool ReadRecord(Cursor& cursor, Records* records) {
  std::string owner = cursor.Name(true);
  const std::uint16_t type = cursor.Short();
  const std::uint16_t record_class = cursor.Short();
  std::uint32_t ttl = cursor.Long();
  const std::uint16_t length = cursor.Short();
  if (!cursor.good()) return false;
  if (ttl > 0x7fffffff) ttl = 0;  // RFC 2181 section 8
  if (records == nullptr || record_class != kInternet || (type != kTypeA && type != kTypeCname)) {
    cursor.Skip(length);
    return cursor.good();
  }
  const std::size_t end = cursor.at() + length;
  if (type == kTypeA) {
    const std::uint32_t address = cursor.Long();
    if (length != 4 || !cursor.good()) return false;
    records->addresses.push_back({std::move(owner), address, ttl});
    return true;
  }
  std::string target = cursor.Name(true);
  if (!cursor.good() || cursor.at() != end) return false;
  records->aliases.push_back({std::move(owner), std::move(target), ttl});
  return true;
}

// Follows the chain from `name`. False when it does not end.
bool Follow(const Records& records, std::string name, Answer& answer) {
  std::uint32_t ttl = 0x7fffffff;
  for (int steps = 0;; ++steps) {
    const auto alias = std::ranges::find(records.aliases, name, &Alias::owner);
    if (alias == records.aliases.end()) break;
    if (steps == kMaxChain) return false;
    ttl = std::min(ttl, alias->ttl);
    name = alias->target;
  }
  for (const Address& each : records.addresses) {
    if (each.owner != name) continue;
    const bool is_known =
        std::ranges::find(answer.addresses, each.address) != answer.addresses.end();
    if (is_known || answer.addresses.size() == kMaxPinned) continue;
    ttl = std::min(ttl, each.ttl);
    answer.addresses.push_back(each.address);
  }
  answer.ttl_seconds = answer.addresses.empty() ? 0 : ttl;
  answer.last_name = std::move(name);
  return true;
}

}  // namespace

std::optional<DecodedQuery> DecodeQuery(std::string_view message) {
  if (message.size() < kHeader) return std::nullopt;
  Cursor cursor(message);
  DecodedQuery decoded;
  decoded.query.id = cursor.Short();
  const std::uint16_t flags = cursor.Short();
  if ((flags & kResponse) != 0) return std::nullopt;
  decoded.query.recursion_desired = (flags & kRecursionDesired) != 0;
  decoded.query.checking_disabled = (flags & kCheckingDisabled) != 0;
  decoded.rcode = ReadQuestion(message, flags, decoded.query);
  return decoded;
}

std::size_t RoomFor(const Query& query) { return query.udp_size.value_or(kMaxPlainMessage); }

std::string EncodeAnswer(const Query& query, Rcode rcode,
                         const std::vector<std::uint32_t>& addresses, std::uint32_t ttl_seconds,
                         std::size_t most) {
  constexpr std::size_t kRecord = 16;
  constexpr std::size_t kEdns = 11;
  const auto code = static_cast<std::uint8_t>(rcode);
  const bool with_edns = query.udp_size.has_value();
  const std::size_t fixed = kHeader + query.question.size() + (with_edns ? kEdns : 0);
  const std::size_t room = most > fixed ? (most - fixed) / kRecord : 0;
  const std::size_t count = query.question.empty() ? 0 : std::min(addresses.size(), room);
  std::string bytes;
  bytes.reserve(fixed + count * kRecord);
  PutShort(bytes, query.id);
  PutShort(bytes, kResponse | kRecursionAvailable |
                      (query.recursion_desired ? kRecursionDesired : 0u) |
                      (query.checking_disabled ? kCheckingDisabled : 0u) | (code & kRcode));
  PutShort(bytes, query.question.empty() ? 0 : 1);
  PutShort(bytes, count);
  PutShort(bytes, 0);
  PutShort(bytes, with_edns ? 1 : 0);
  bytes += query.question;
  for (std::size_t i = 0; i < count; ++i) {
    PutShort(bytes, 0xc000 | kHeader);  // the name of the question
    PutShort(bytes, kTypeA);
    PutShort(bytes, kInternet);
    PutLong(bytes, ttl_seconds);
    PutShort(bytes, 4);
    PutLong(bytes, addresses[i]);
  }
  if (with_edns) {
    bytes.push_back('\0');
    PutShort(bytes, kTypeOpt);
    PutShort(bytes, kMaxUdpMessage);
    bytes.push_back(static_cast<char>(code >> 4));
    bytes.push_back('\0');
    PutShort(bytes, 0);
    PutShort(bytes, 0);
  }
  return bytes;
}

std::string WireName(std::string_view name) {
  std::string wire;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    if (dot == 0 || dot > kMaxLabel) return {};
    wire.push_back(static_cast<char>(dot));
    for (const char c : name.substr(0, dot)) wire.push_back(Lower(c));
    if (dot + 1 == name.size()) return {};
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  wire.push_back('\0');
  return wire.size() > kMaxWireName || wire.size() == 1 ? std::string() : wire;
}

std::string EncodeQuestion(std::uint16_t id, std::string_view wire_name, bool with_edns) {
  std::string bytes;
  PutShort(bytes, id);
  PutShort(bytes, kRecursionDesired);
  PutShort(bytes, 1);
  PutShort(bytes, 0);
  PutShort(bytes, 0);
  PutShort(bytes, with_edns ? 1 : 0);
  bytes += wire_name;
  PutShort(bytes, kTypeA);
  PutShort(bytes, kInternet);
  if (with_edns) {
    bytes.push_back('\0');
    PutShort(bytes, kTypeOpt);
    PutShort(bytes, kMaxUdpMessage);
    PutLong(bytes, 0);
    PutShort(bytes, 0);
  }
  return bytes;
}

std::optional<Answer> DecodeAnswer(std::string_view message, std::uint16_t id,
                                   std::string_view wire_name) {
  Cursor cursor(message);
  const std::uint16_t answered = cursor.Short();
  const std::uint16_t flags = cursor.Short();
  const std::uint16_t questions = cursor.Short();
  const std::size_t answers = cursor.Short();
  const std::size_t others = std::size_t{cursor.Short()} + cursor.Short();
  if (!cursor.good() || answered != id || (flags & kResponse) == 0 || (flags & kOpcode) != 0 ||
      questions != 1 || answers + others > kMaxRecords) {
    return std::nullopt;
  }
  if (message.substr(kHeader, wire_name.size()) != wire_name) return std::nullopt;
  const std::string asked = cursor.Name(false);
  const std::uint16_t type = cursor.Short();
  const std::uint16_t record_class = cursor.Short();
  if (!cursor.good() || asked.size() != wire_name.size() || type != kTypeA ||
      record_class != kInternet) {
    return std::nullopt;
  }
  Answer answer;
  answer.rcode = static_cast<Rcode>(flags & kRcode);
  answer.truncated = (flags & kTruncated) != 0;
  if (answer.truncated) return answer;  // to be asked for again by TCP: its records may be cut
  Records records;
  for (std::size_t i = 0; i < answers; ++i) {
    if (!ReadRecord(cursor, &records)) return std::nullopt;
  }
  for (std::size_t i = 0; i < others; ++i) {
    if (!ReadRecord(cursor, nullptr)) return std::nullopt;
  }
  if (!cursor.ended() || !Follow(records, asked, answer)) return std::nullopt;
  return answer;
}

}  // namespace caisson::egress::gate
