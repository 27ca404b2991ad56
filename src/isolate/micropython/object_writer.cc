// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/object_writer.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "isolate/micropython/layout.h"

namespace caisson::isolate {
namespace {

using layout::kBlockBytes;

// Two bits per block in the allocation table.
constexpr std::uint8_t kHead = 1;
constexpr std::uint8_t kTail = 2;
constexpr std::uint8_t kFourTails = 0xaa;

// The interpreter's own hash of a string.
std::uint16_t HashOf(std::string_view text) {
  std::uint32_t hash = 5381;
  for (const char c : text) hash = (hash * 33) ^ static_cast<std::uint8_t>(c);
  const auto folded = static_cast<std::uint16_t>(hash);
  return folded == 0 ? 1 : folded;
}

// Base 65536, least significant first.
std::vector<std::uint16_t> DigitsOf(std::string_view decimal) {
  constexpr std::size_t kChunk = 9;
  std::vector<std::uint16_t> digits;
  while (!decimal.empty()) {
    const std::size_t size = decimal.size() % kChunk == 0 ? kChunk : decimal.size() % kChunk;
    std::uint64_t carry = 0;
    std::from_chars(decimal.data(), decimal.data() + size, carry);
    decimal.remove_prefix(size);
    for (std::uint16_t& digit : digits) {
      carry += std::uint64_t{digit} * 1'000'000'000;
      digit = static_cast<std::uint16_t>(carry);
      carry >>= 16;
    }
    for (; carry != 0; carry >>= 16) digits.push_back(static_cast<std::uint16_t>(carry));
  }
  return digits;
}

}  // namespace

ObjectWriter::ObjectWriter(const GuestMemory& memory)
    : memory_(memory),
      table_(memory.Word(layout::kTableStart)),
      pool_(memory.Word(layout::kPoolStart)),
      next_(std::uint64_t{memory.Word(layout::kLastUsedBlock)} + 1) {
  const std::uint64_t pool_end = memory.Word(layout::kPoolEnd);
  const std::uint64_t table_bytes = memory.Word(layout::kTableBytes);
  // The guest has had its hands on these words: what points outside is no heap at all.
  if (pool_end <= pool_ || !memory.Holds(pool_, pool_end - pool_) ||
      !memory.Holds(table_, table_bytes)) {
    return;
  }
  // The table's last byte may stand for blocks that the heap does not have.
  end_ = std::min(table_bytes * 4, (pool_end - pool_) / kBlockBytes);
}

void ObjectWriter::Commit() const {
  memory_.Write(layout::kLastUsedBlock, static_cast<std::uint32_t>(next_ - 1));
  // Where the allocator begins to look; what is free before it is found again by a collection.
  memory_.Write(layout::kLastFreeTableIndex, static_cast<std::uint32_t>(next_ / 4));
}

std::optional<std::uint32_t> ObjectWriter::Allocate(std::uint64_t bytes) {
  const std::uint64_t count = std::max<std::uint64_t>(1, (bytes + kBlockBytes - 1) / kBlockBytes);
  if (next_ >= end_ || count > end_ - next_) return std::nullopt;
  const std::uint64_t address = pool_ + next_ * kBlockBytes;
  std::uint8_t* const table = memory_.data() + table_;
  const auto mark = [table](std::uint64_t block, std::uint8_t kind) {
    std::uint8_t& entry = table[block / 4];
    const unsigned shift = 2 * (block % 4);
    entry = static_cast<std::uint8_t>((entry & ~(3u << shift)) | (unsigned{kind} << shift));
  };
  std::uint64_t block = next_;
  const std::uint64_t end = next_ + count;
  mark(block++, kHead);
  while (block < end && block % 4 != 0) mark(block++, kTail);
  for (; block + 4 <= end; block += 4) table[block / 4] = kFourTails;
  while (block < end) mark(block++, kTail);
  next_ = end;
  // What an object does not fill must not look like a pointer.
  memory_.Write(address + (count - 1) * kBlockBytes, std::uint64_t{0});
  memory_.Write(address + (count - 1) * kBlockBytes + 8, std::uint64_t{0});
  return static_cast<std::uint32_t>(address);
}

std::optional<std::uint32_t> ObjectWriter::Write(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kNull:
      return layout::kNone;
    case json::Value::Kind::kBool:
      return value.as_bool() ? layout::kTrue : layout::kFalse;
    case json::Value::Kind::kInt: {
      const std::int64_t number = value.as_int();
      if (number >= layout::kSmallIntMin && number <= layout::kSmallIntMax) {
        return (static_cast<std::uint32_t>(number) << 1) | 1u;
      }
      return WriteInteger(std::to_string(number));
    }
    case json::Value::Kind::kBigInt:
      return WriteInteger(value.as_bigint());
    case json::Value::Kind::kDouble:
      return WriteDouble(value.as_double());
    case json::Value::Kind::kString:
      return WriteString(value.as_string());
    case json::Value::Kind::kArray:
      return WriteArray(value.as_array());
    case json::Value::Kind::kObject:
      return WriteObject(value.as_object());
  }
  return std::nullopt;
}

std::optional<std::uint32_t> ObjectWriter::WriteString(std::string_view text) {
  const std::optional<std::uint32_t> object = Allocate(16);
  const std::optional<std::uint32_t> bytes = Allocate(text.size() + 1);
  if (!object || !bytes) return std::nullopt;
  memory_.WriteBytes(*bytes, text);
  memory_.Write(*bytes + text.size(), std::uint8_t{0});
  memory_.Write(*object, layout::kTypeStr);
  memory_.Write(*object + 4, std::uint32_t{HashOf(text)});
  memory_.Write(*object + 8, static_cast<std::uint32_t>(text.size()));
  memory_.Write(*object + 12, *bytes);
  return object;
}

std::optional<std::uint32_t> ObjectWriter::WriteInteger(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  const std::vector<std::uint16_t> words = DigitsOf(digits.substr(negative ? 1 : 0));
  const std::optional<std::uint32_t> object = Allocate(16);
  const std::optional<std::uint32_t> bytes = Allocate(2 * words.size());
  if (!object || !bytes) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(words.size());
  memory_.WriteBytes(*bytes, {reinterpret_cast<const char*>(words.data()), 2 * words.size()});
  memory_.Write(*object, layout::kTypeInt);
  memory_.Write(*object + 4, (count << 2) | (negative ? 1u : 0u));
  memory_.Write(*object + 8, count);
  memory_.Write(*object + 12, *bytes);
  return object;
}

std::optional<std::uint32_t> ObjectWriter::WriteDouble(double value) {
  const std::optional<std::uint32_t> object = Allocate(16);
  if (!object) return std::nullopt;
  memory_.Write(*object, layout::kTypeFloat);
  memory_.Write(*object + 8, value);
  return object;
}

std::optional<std::uint32_t> ObjectWriter::WriteArray(const json::Array& array) {
  // The interpreter doubles this when the list grows, so it must not be 0.
  const std::uint64_t capacity = std::max<std::uint64_t>(4, array.size());
  const std::optional<std::uint32_t> object = Allocate(16);
  const std::optional<std::uint32_t> items = Allocate(4 * capacity);
  if (!object || !items) return std::nullopt;
  for (std::size_t i = 0; i < capacity; ++i) {
    std::optional<std::uint32_t> item = 0;
    if (i < array.size()) item = Write(array[i]);
    if (!item) return std::nullopt;
    memory_.Write(*items + 4 * i, *item);
  }
  memory_.Write(*object, layout::kTypeList);
  memory_.Write(*object + 4, static_cast<std::uint32_t>(capacity));
  memory_.Write(*object + 8, static_cast<std::uint32_t>(array.size()));
  memory_.Write(*object + 12, *items);
  return object;
}

std::optional<std::uint32_t> ObjectWriter::WriteKey(const std::string& key) {
  const auto [at, fresh] = keys_.try_emplace(key, 0);
  if (fresh) {
    const std::optional<std::uint32_t> object = WriteString(key);
    if (!object) return std::nullopt;
    at->second = *object;
  }
  return at->second;
}

std::optional<std::uint32_t> ObjectWriter::WriteObject(const json::Object& object) {
  const std::uint64_t capacity = object.size() + object.size() / 4 + 1;
  const std::optional<std::uint32_t> dict = Allocate(16);
  const std::optional<std::uint32_t> table = Allocate(8 * capacity);
  if (!dict || !table) return std::nullopt;
  // Linear probing, filled in one sweep: `homes` lists the members by the slot that they want, and
  // a slot stays free only when no member before it still waits for one.
  std::vector<const json::Object::Member*> members;
  std::vector<std::uint32_t> next(object.size());
  std::vector<std::uint32_t> homes(capacity, UINT32_MAX);
  for (const json::Object::Member& member : object) {
    std::uint32_t& home = homes[HashOf(member.first) % capacity];
    next[members.size()] = home;
    home = static_cast<std::uint32_t>(members.size());
    members.push_back(&member);
  }
  std::fill_n(memory_.data() + *table, 8 * capacity, std::uint8_t{0});
  std::vector<std::uint32_t> waiting;
  waiting.reserve(members.size());
  std::size_t first = 0;
  for (std::uint64_t i = 0; i < 2 * capacity; ++i) {
    if (i < capacity) {
      for (std::uint32_t m = homes[i]; m != UINT32_MAX; m = next[m]) waiting.push_back(m);
    } else if (first == waiting.size()) {
      break;
    }
    const std::uint32_t slot = *table + 8 * static_cast<std::uint32_t>(i % capacity);
    if (first == waiting.size() || memory_.Word(slot) != 0) continue;
    const json::Object::Member& member = *members[waiting[first++]];
    const std::optional<std::uint32_t> key = WriteKey(member.first);
    const std::optional<std::uint32_t> item = Write(member.second);
    if (!key || !item) return std::nullopt;
    memory_.Write(slot, *key);
    memory_.Write(slot + 4, *item);
  }
  memory_.Write(*dict, layout::kTypeDict);
  memory_.Write(*dict + 4, static_cast<std::uint32_t>(object.size() << layout::kMapFlagBits));
  memory_.Write(*dict + 8, static_cast<std::uint32_t>(capacity));
  memory_.Write(*dict + 12, *table);
  return dict;
}

}  // namespace caisson::isolate
