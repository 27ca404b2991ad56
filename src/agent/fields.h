// SPDX-License-Identifier: Apache-2.0
// Writes and reads the fields of messages. Reading allocates no more than the payload accounts for:
// a string's bytes must be there, and each item of a list takes at least a byte of it.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/messages.h"

namespace caisson::agent {

class FieldWriter {
 public:
  std::string Take() { return std::move(out_); }

  template <std::integral T>
  void Put(const T& number) {
    using Unsigned = std::make_unsigned_t<T>;
    auto rest = static_cast<Unsigned>(number);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<char>(rest & 0xff));
      if constexpr (sizeof(T) > 1) rest = static_cast<Unsigned>(rest >> 8);
    }
  }
  void Put(bool claim) { out_.push_back(claim ? 1 : 0); }
  template <typename T>
    requires std::is_enum_v<T>
  void Put(const T& value) {
    Put(static_cast<std::underlying_type_t<T>>(value));
  }
  void Put(const std::string& text) {
    Put(static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }
  void Put(const std::chrono::milliseconds& time) { Put(static_cast<std::int64_t>(time.count())); }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <typename T>
  void Put(const std::vector<T>& items) {
    Put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) Put(item);
  }
  void Put(const std::map<std::string, std::string>& pairs) {
    Put(static_cast<std::uint32_t>(pairs.size()));
    for (const auto& [key, value] : pairs) {
      Put(key);
      Put(value);
    }
  }
  template <typename M>
    requires requires(M& message) { message.Fields(); }
  void Put(const M& message) {
    // Fields() is not const so that one list of fields serves both directions.
    std::apply([this](const auto&... field) { (this->Put(field), ...); },
               const_cast<M&>(message).Fields());
  }

 private:
  std::string out_;
};

// Once anything is wrong, ok() is false and stays so.
class FieldReader {
 public:
  explicit FieldReader(std::string_view payload) : rest_(payload) {}
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }

  template <std::integral T>
  void Take(T& number) {
    std::make_unsigned_t<T> value = 0;
    const std::string_view bytes = Bytes(sizeof(T));
    for (std::size_t i = bytes.size(); i > 0; --i) {
      if constexpr (sizeof(T) > 1) value = static_cast<std::make_unsigned_t<T>>(value << 8);
      value =
          static_cast<std::make_unsigned_t<T>>(value | static_cast<unsigned char>(bytes[i - 1]));
    }
    number = static_cast<T>(value);
  }
  void Take(bool& claim) {
    std::uint8_t byte = 0;
    Take(byte);
    if (byte > 1) ok_ = false;
    claim = byte == 1;
  }
  template <typename T>
    requires std::is_enum_v<T>
  void Take(T& value) {
    std::underlying_type_t<T> number = 0;
    Take(number);
    if (number > static_cast<std::underlying_type_t<T>>(LastOf(T()))) ok_ = false;
    if (ok_) value = static_cast<T>(number);
  }
  void Take(std::string& text) { text = Bytes(Count(SIZE_MAX)); }
  void Take(std::chrono::milliseconds& time) {
    std::int64_t count = 0;
    Take(count);
    if (count < 0) ok_ = false;
    time = std::chrono::milliseconds(count);
  }
  template <typename T>
  void Take(std::optional<T>& value) {
    bool present = false;
    Take(present);
    if (present && ok_) Take(value.emplace());
  }
  template <typename T>
  void Take(std::vector<T>& items) {
    for (std::size_t left = Count(kMaxItems); left > 0 && ok_; --left) Take(items.emplace_back());
  }
  void Take(std::map<std::string, std::string>& pairs) {
    for (std::size_t left = Count(kMaxItems); left > 0 && ok_; --left) {
      std::string key;
      Take(key);
      Take(pairs[std::move(key)]);
    }
  }
  template <typename M>
    requires requires(M& message) { message.Fields(); }
  void Take(M& message) {
    std::apply([this](auto&... field) { (this->Take(field), ...); }, message.Fields());
  }

 private:
  std::string_view Bytes(std::size_t count) {
    if (count > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::size_t Count(std::size_t most) {
    std::uint32_t count = 0;
    Take(count);
    if (count > rest_.size() || count > most) ok_ = false;
    return ok_ ? count : 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <typename M>
std::string Encode(const M& message) {
  FieldWriter writer;
  writer.Put(message);
  return writer.Take();
}

template <typename M>
std::optional<M> Decode(std::string_view payload) {
  FieldReader reader(payload);
  std::optional<M> message(std::in_place);
  reader.Take(*message);
  if (!reader.finished()) message.reset();
  return message;
}

}  // namespace caisson::agent
