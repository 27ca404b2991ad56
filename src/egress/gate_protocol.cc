// SPDX-License-Identifier: Apache-2.0
#include "egress/gate_protocol.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxText = 1024;
constexpr std::size_t kMaxWalls = 32;
constexpr std::size_t kMaxResolvers = 3;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

class Writer {
 public:
  explicit Writer(std::uint8_t kind) : bytes_(4, '\0') { Put(kind); }

  template <std::unsigned_integral Number>
  void Put(Number number) {
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      bytes_.push_back(static_cast<char>(number >> (8 * i) & 0xff));
    }
  }
  void Put(bool flag) { Put(static_cast<std::uint8_t>(flag)); }
  void Put(std::string_view text) {
    text = text.substr(0, kMaxText);
    Put(static_cast<std::uint16_t>(text.size()));
    bytes_.append(text);
  }
  void Put(const std::optional<std::uint16_t>& number) {
    Put(number.has_value());
    Put(number.value_or(0));
  }
  template <typename Items>
  void PutCount(const Items& items) {
    Put(static_cast<std::uint16_t>(items.size()));
  }
  std::string Take() {
    const auto size = static_cast<std::uint32_t>(bytes_.size() - 4);
    for (std::size_t i = 0; i < 4; ++i) bytes_[i] = static_cast<char>(size >> (8 * i) & 0xff);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads fields one after another; good() is false once one was not there or not allowed.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number Take() {
    if (rest_.size() < sizeof(Number)) return Fail(), Number{};
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    }
    rest_.remove_prefix(sizeof(Number));
    return static_cast<Number>(number);
  }
  bool TakeFlag() {
    const auto byte = Take<std::uint8_t>();
    Require(byte <= 1);
    return byte == 1;
  }
  std::string TakeText(std::size_t most) {
    const std::size_t size = Take<std::uint16_t>();
    if (size > most || size > rest_.size()) return Fail(), std::string();
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    Require(IsPrintable(text));
    return text;
  }
  std::string TakeName() {
    std::string name = TakeText(kMaxGateName);
    Require(IsGateName(name));
    return name;
  }
  std::optional<std::uint16_t> TakeOptional() {
    const bool there = TakeFlag();
    const auto number = Take<std::uint16_t>();
    Require(there || number == 0);
    if (!there) return std::nullopt;
    return number;
  }
  // How many items follow, each of `each` bytes or more.
  std::size_t TakeCount(std::size_t least, std::size_t most, std::size_t each) {
    const std::size_t count = Take<std::uint16_t>();
    Require(count >= least && count <= most && count <= rest_.size() / each);
    return good_ ? count : 0;
  }
  void Require(bool holds) {
    if (!holds) Fail();
  }
  bool good() const { return good_; }
  bool ended() const { return good_ && rest_.empty(); }

 private:
  void Fail() {
    good_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool good_ = true;
};

void PutAddresses(Writer& writer, const std::vector<std::uint32_t>& addresses) {
  writer.PutCount(addresses);
  for (const std::uint32_t address : addresses) writer.Put(address);
}
std::vector<std::uint32_t> TakeAddresses(Reader& reader, std::size_t least) {
  std::vector<std::uint32_t> addresses(reader.TakeCount(least, kMaxPinned, 4));
  for (std::uint32_t& address : addresses) address = reader.Take<std::uint32_t>();
  return addresses;
}

template <typename Message>
struct Codec;

template <>
struct Codec<GateReady> {
  static void Put(const GateReady& message, Writer& writer) {
    writer.PutCount(message.walls);
    for (const GateWall& wall : message.walls) {
      writer.Put(wall.name);
      writer.Put(wall.stands);
      writer.Put(wall.reason);
    }
  }
  static void Take(Reader& reader, GateReady& message) {
    message.walls.resize(reader.TakeCount(0, kMaxWalls, 5));
    for (GateWall& wall : message.walls) {
      wall.name = reader.TakeText(64);
      wall.stands = reader.TakeFlag();
      wall.reason = reader.TakeText(kMaxText);
    }
  }
};

template <>
struct Codec<GateFailed> {
  static void Put(const GateFailed& message, Writer& writer) { writer.Put(message.message); }
  static void Take(Reader& reader, GateFailed& message) {
    message.message = reader.TakeText(kMaxText);
  }
};

template <>
struct Codec<GateConfigure> {
  static void Put(const GateConfigure& message, Writer& writer) {
    writer.PutCount(message.resolvers);
    for (const auto& server : message.resolvers) {
      writer.Put(server.address);
      writer.Put(server.port);
    }
  }
  static void Take(Reader& reader, GateConfigure& message) {
    message.resolvers.resize(reader.TakeCount(0, kMaxResolvers, 6));
    for (auto& server : message.resolvers) {
      server.address = reader.Take<std::uint32_t>();
      server.port = reader.Take<std::uint16_t>();
      reader.Require(server.port != 0);
    }
  }
};

template <>
struct Codec<GateMachine> {
  static void Put(const GateMachine& message, Writer& writer) {
    writer.Put(message.address);
    writer.Put(message.generation);
    writer.PutCount(message.rules);
    for (const NameRule& rule : message.rules) {
      writer.Put(static_cast<std::uint16_t>(rule.index));
      writer.Put(rule.name);
      writer.Put(rule.wildcard);
      writer.Put(rule.port);
    }
  }
  static void Take(Reader& reader, GateMachine& message) {
    message.address = reader.Take<std::uint32_t>();
    message.generation = reader.Take<std::uint64_t>();
    reader.Require(message.generation != 0);
    message.rules.resize(reader.TakeCount(0, kMaxRules, 8));
    for (NameRule& rule : message.rules) {
      rule.index = reader.Take<std::uint16_t>();
      reader.Require(rule.index < kMaxRules);
      rule.name = reader.TakeName();
      rule.wildcard = reader.TakeFlag();
      rule.port = reader.TakeOptional();
      reader.Require(rule.port != 0);
    }
  }
};

template <>
struct Codec<GateForget> {
  static void Put(const GateForget& message, Writer& writer) { writer.Put(message.address); }
  static void Take(Reader& reader, GateForget& message) {
    message.address = reader.Take<std::uint32_t>();
  }
};

template <>
struct Codec<GateApplied> {
  static void Put(const GateApplied& message, Writer& writer) {
    writer.Put(message.address);
    writer.Put(message.generation);
  }
  static void Take(Reader& reader, GateApplied& message) {
    message.address = reader.Take<std::uint32_t>();
    message.generation = reader.Take<std::uint64_t>();
  }
};

template <>
struct Codec<GatePin> {
  static void Put(const GatePin& message, Writer& writer) {
    writer.Put(message.id);
    writer.Put(message.machine);
    writer.Put(message.generation);
    writer.Put(message.name);
    writer.Put(message.seconds);
    PutAddresses(writer, message.addresses);
  }
  static void Take(Reader& reader, GatePin& message) {
    message.id = reader.Take<std::uint64_t>();
    message.machine = reader.Take<std::uint32_t>();
    message.generation = reader.Take<std::uint64_t>();
    message.name = reader.TakeName();
    message.seconds = reader.Take<std::uint32_t>();
    reader.Require(message.seconds >= kMinPinSeconds && message.seconds <= kMaxPinSeconds);
    message.addresses = TakeAddresses(reader, 1);
  }
};

template <>
struct Codec<GatePinned> {
  static void Put(const GatePinned& message, Writer& writer) {
    writer.Put(message.id);
    PutAddresses(writer, message.addresses);
  }
  static void Take(Reader& reader, GatePinned& message) {
    message.id = reader.Take<std::uint64_t>();
    message.addresses = TakeAddresses(reader, 0);
  }
};

template <>
struct Codec<GateDenial> {
  static void Put(const GateDenial& message, Writer& writer) {
    writer.Put(message.machine);
    writer.Put(message.generation);
    writer.Put(static_cast<std::uint8_t>(message.kind));
    writer.Put(std::string_view(message.name).substr(0, kMaxGateName));
    writer.Put(message.address);
    writer.Put(message.port);
    writer.Put(message.rule);
    writer.Put(message.suppressed);
  }
  static void Take(Reader& reader, GateDenial& message) {
    message.machine = reader.Take<std::uint32_t>();
    message.generation = reader.Take<std::uint64_t>();
    const auto kind = reader.Take<std::uint8_t>();
    reader.Require(kind < kGateDenialKinds);
    message.kind = static_cast<GateDenialKind>(reader.good() ? kind : 0);
    message.name = reader.TakeText(kMaxGateName);
    message.address = reader.Take<std::uint32_t>();
    message.port = reader.Take<std::uint16_t>();
    message.rule = reader.TakeOptional();
    message.suppressed = reader.Take<std::uint32_t>();
  }
};

template <>
struct Codec<GateCounters> {
  static void Put(const GateCounters& message, Writer& writer) {
    writer.Put(message.machine);
    writer.Put(message.generation);
    writer.Put(message.denials);
    writer.PutCount(message.entries);
    for (const auto& entry : message.entries) {
      writer.Put(entry.rule);
      writer.Put(entry.answers);
      writer.Put(entry.connections);
    }
  }
  static void Take(Reader& reader, GateCounters& message) {
    message.machine = reader.Take<std::uint32_t>();
    message.generation = reader.Take<std::uint64_t>();
    message.denials = reader.Take<std::uint32_t>();
    message.entries.resize(reader.TakeCount(0, kMaxRules, 10));
    for (auto& entry : message.entries) {
      entry.rule = reader.Take<std::uint16_t>();
      reader.Require(entry.rule < kMaxRules);
      entry.answers = reader.Take<std::uint32_t>();
      entry.connections = reader.Take<std::uint32_t>();
    }
  }
};

template <std::size_t Kind = 0>
std::optional<GateMessage> DecodeAs(std::size_t kind, Reader& reader) {
  if constexpr (Kind == std::variant_size_v<GateMessage>) {
    return std::nullopt;
  } else {
    if (kind != Kind) return DecodeAs<Kind + 1>(kind, reader);
    std::variant_alternative_t<Kind, GateMessage> message;
    Codec<decltype(message)>::Take(reader, message);
    if (!reader.ended()) return std::nullopt;
    return message;
  }
}

bool IsLabel(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) {
           return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-' || c == '_';
         });
}

}  // namespace

std::string_view GateDenialName(GateDenialKind kind) {
  static constexpr std::array<std::string_view, kGateDenialKinds> kNames = {
      "name",    "question",  "rebinding", "resolver", "foreign_name",   "foreign_address",
      "no_name", "malformed", "tunnel",    "limit",    "policy_changed", "unreachable"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string EncodeGateMessage(const GateMessage& message) {
  Writer writer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& each) { Codec<std::decay_t<decltype(each)>>::Put(each, writer); },
             message);
  return writer.Take();
}

std::optional<GateMessage> DecodeGateMessage(std::string_view body) {
  Reader reader(body);
  const std::size_t kind = reader.Take<std::uint8_t>();
  if (!reader.good()) return std::nullopt;
  return DecodeAs(kind, reader);
}

bool IsGateName(std::string_view name) {
  if (name.empty() || name.size() > kMaxGateName) return false;
  std::string_view label;
  for (std::string_view rest = name;;) {
    const std::size_t dot = rest.find('.');
    label = rest.substr(0, dot);
    if (!IsLabel(label)) return false;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return !std::ranges::all_of(label, IsDigit) && !label.starts_with("0x");
}

}  // namespace caisson::egress
