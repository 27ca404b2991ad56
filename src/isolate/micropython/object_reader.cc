// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "isolate/micropython/class_tree.h"
#include "isolate/micropython/layout.h"
#include "isolate/micropython/meter.h"
#include "json/path.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kMaxDepth = 1000;       // what json::Read accepts
constexpr std::uint32_t kMaxIntDigits = 896;  // of 16 bits; 4,300 decimal ones fit
constexpr std::size_t kMaxDecimalDigits = 4300;
constexpr int kMaxQstrPools = 24;  // each is twice as large as the one before it
// Reading may take so many steps for each byte of output that is allowed, and so many besides.
constexpr std::uint64_t kStepsPerByte = 8;
constexpr std::uint64_t kStepsBeside = 8u << 20;

bool IsAddress(std::uint32_t object) { return (object & 3u) == 0 && object != 0; }
bool IsQstr(std::uint32_t object) { return (object & 7u) == 2; }

// The digits of an int, 32 bits each, least significant first, without zeros at the top.
std::vector<std::uint32_t> WordsOf(const GuestMemory& memory, std::uint32_t digits,
                                   std::uint32_t count) {
  std::vector<std::uint32_t> words((count + 1) / 2);
  for (std::uint32_t i = 0; i < count; ++i) {
    words[i / 2] |= std::uint32_t{memory.Read<std::uint16_t>(digits + 2 * i)} << (i % 2 * 16);
  }
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

std::optional<std::string> Decimal(const GuestMemory& memory, std::uint32_t object) {
  const std::uint32_t count = memory.Word(object + 8);
  const std::uint32_t digits = memory.Word(object + 12);
  if (count > kMaxIntDigits || !memory.Holds(digits, 2 * std::uint64_t{count})) return std::nullopt;
  std::vector<std::uint32_t> number = WordsOf(memory, digits, count);
  std::vector<std::uint32_t> groups;  // of nine decimal digits, least significant first
  while (!number.empty()) {
    std::uint64_t rest = 0;
    for (std::size_t i = number.size(); i-- > 0;) {
      rest = (rest << 32) | number[i];
      number[i] = static_cast<std::uint32_t>(rest / 1'000'000'000);
      rest %= 1'000'000'000;
    }
    groups.push_back(static_cast<std::uint32_t>(rest));
    while (!number.empty() && number.back() == 0) number.pop_back();
  }
  if (groups.empty()) return "0";
  std::string text = std::to_string(groups.back());
  for (std::size_t i = groups.size() - 1; i-- > 0;) text += fmt::format("{:09}", groups[i]);
  if (text.size() > kMaxDecimalDigits) return std::nullopt;
  return (memory.Word(object + 4) & 1u) != 0 ? "-" + text : text;
}

// Two for each division that Decimal makes: about half of the words for each group.
std::uint64_t StepsOfDecimal(const GuestMemory& memory, std::uint32_t object) {
  const std::uint64_t count = std::min(memory.Word(object + 8), kMaxIntDigits);
  return count * count / 4;
}

class Reader {
 public:
  Reader(const GuestMemory& memory, const ReadLimits& limits)
      : memory_(memory),
        limits_(limits),
        meter_(kStepsBeside + kStepsPerByte * std::min(limits.output_bytes, kMaxOutput),
               limits.deadline),
        classes_(memory, meter_) {}

  std::expected<std::string, ReadFault> Read(std::uint32_t object) {
    if (Value(object)) return std::move(out_);
    if (fault_.fault == Fault::kProtocol) {
      fault_.message = fmt::format("the result cannot be written as JSON: {} is {}", path_.Finish(),
                                   fault_.message);
    }
    return std::unexpected(std::move(fault_));
  }

 private:
  bool Refuse(Fault fault, std::string message) {
    fault_ = {fault, std::move(message)};
    return false;
  }
  bool Refuse(std::string what) { return Refuse(Fault::kProtocol, std::move(what)); }

  // To be called before anything grows by `bytes`.
  bool Room(std::size_t bytes) {
    if (bytes > limits_.output_bytes || out_.size() > limits_.output_bytes - bytes) {
      return Refuse(Fault::kOutput, fmt::format("the result is larger than its limit of {} bytes",
                                                limits_.output_bytes));
    }
    return Spend(1);
  }
  // To be called before so many steps are made.
  bool Spend(std::uint64_t steps) { return meter_.Spend(steps) || RefuseWork(); }
  bool RefuseWork() {
    if (meter_.late()) {
      return Refuse(Fault::kWallClock, "the time limit passed while the result was read");
    }
    return Refuse(Fault::kOutput,
                  fmt::format("the result has too many parts: reading it takes more than {} steps "
                              "(a list or dict counts each time that it is used, a dict with the "
                              "room that it has, a class with its bases)",
                              meter_.limit()));
  }
  bool Put(std::string_view text) {
    if (!Room(text.size())) return false;
    out_ += text;
    return true;
  }

  bool Value(std::uint32_t object) {
    if (const std::optional<std::int32_t> number = SmallInt(object)) {
      return Put(std::to_string(*number));
    }
    if (object == layout::kNone) return Put("null");
    if (object == layout::kTrue) return Put("true");
    if (object == layout::kFalse) return Put("false");
    if (IsQstr(object)) return String(QstrText(memory_, object >> 3));
    if (!IsAddress(object) || !memory_.Holds(object, 4)) return Refuse(NotJson(object));
    // An object of a class that derives from a built-in type stands for the object of that type.
    const std::uint32_t type = memory_.Word(object);
    const std::optional<std::uint32_t> native = classes_.NativeBase(type);
    if (!native) return RefuseWork();
    if (*native == type) return Compound(object);
    if (*native == 0) return Refuse(NotJson(object));
    const std::uint32_t held = memory_.Word(object + layout::kInstanceBase);
    return held == layout::kNone ? Refuse(NotJson(object)) : Leaf(held);
  }

  // What a class instance holds: never an instance again.
  bool Leaf(std::uint32_t object) {
    if (IsQstr(object) || SmallInt(object)) return Value(object);
    return IsAddress(object) ? Compound(object) : Refuse(NotJson(object));
  }

  bool Compound(std::uint32_t object) {
    switch (memory_.Word(object)) {
      case layout::kTypeStr:
      case layout::kTypeBytes:
        return StringObject(object);
      case layout::kTypeFloat:
        return Double(memory_.Read<double>(object + 8));
      case layout::kTypeInt:
        return Integer(object);
      case layout::kTypeList:
        return Items(object, memory_.Word(object + 12), memory_.Word(object + 8));
      case layout::kTypeTuple:
        return Items(object, object + 8, memory_.Word(object + 4));
      case layout::kTypeDict:
        return Dict(object);
      default:
        return Refuse(NotJson(object));
    }
  }

  std::string NotJson(std::uint32_t object) {
    return fmt::format(
        "a {}; only dict, list, tuple, str, bytes, int, float, bool and None can be "
        "returned",
        TypeName(memory_, object));
  }

  bool Double(double number) {
    if (!std::isfinite(number)) {
      return Refuse(fmt::format("{}, which JSON does not have",
                                std::isnan(number) ? "not a number (nan)" : "infinite (inf)"));
    }
    return Put(json::FormatDouble(number));
  }

  bool Integer(std::uint32_t object) {
    if (!Spend(StepsOfDecimal(memory_, object))) return false;
    const std::optional<std::string> text = Decimal(memory_, object);
    if (!text) {
      return Refuse(fmt::format("an int of more than {} digits", kMaxDecimalDigits));
    }
    return Put(*text);
  }

  bool StringObject(std::uint32_t object) {
    const std::uint32_t length = memory_.Word(object + 8);
    const std::uint32_t bytes = memory_.Word(object + 12);
    if (!memory_.Holds(bytes, length)) return Refuse("damaged text");
    return String(memory_.Bytes(bytes, length));
  }

  bool String(std::string_view text) {
    if (!Room(text.size() + 2)) return false;
    out_ += '"';
    std::size_t plain = 0;  // start of what is not yet copied
    for (std::size_t at = 0; at < text.size();) {
      const auto c = static_cast<std::uint8_t>(text[at]);
      if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
        ++at;
        continue;
      }
      if (c >= 0x80) {
        const std::size_t length = Utf8SequenceLength(text.substr(at));
        if (length == 0)
          return Refuse(
              "text that is no valid Unicode (a lone surrogate, or bytes "
              "that are no UTF-8)");
        at += length;
        continue;
      }
      out_ += text.substr(plain, at - plain);
      if (!Escape(c)) return false;
      plain = ++at;
    }
    out_ += text.substr(plain);
    out_ += '"';
    return Room(0);
  }

  bool Escape(std::uint8_t c) {
    switch (c) {
      case '"':
        return Put("\\\"");
      case '\\':
        return Put("\\\\");
      case '\n':
        return Put("\\n");
      case '\r':
        return Put("\\r");
      case '\t':
        return Put("\\t");
      default:
        return Put(fmt::format("\\u{:04x}", c));
    }
  }

  bool Enter(std::uint32_t object) {
    if (ancestors_.size() >= kMaxDepth) {
      const bool cycle = std::ranges::find(ancestors_, object) != ancestors_.end();
      return Refuse(cycle ? "a list or dict that contains itself"
                          : fmt::format("nested more than {} levels deep", kMaxDepth));
    }
    ancestors_.push_back(object);
    return true;
  }
  void Leave() { ancestors_.pop_back(); }

  bool Items(std::uint32_t object, std::uint32_t items, std::uint32_t count) {
    if (!memory_.Holds(items, 4 * std::uint64_t{count})) return Refuse("a damaged list");
    if (!Enter(object) || !Put("[")) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i != 0 && !Put(",")) return false;
      if (!Value(memory_.Word(items + 4 * i))) {
        path_.PrependIndex(i);
        return false;
      }
    }
    Leave();
    return Put("]");
  }

  bool Dict(std::uint32_t object) {
    const std::uint32_t capacity = memory_.Word(object + 8);
    const std::uint32_t table = memory_.Word(object + 12);
    if (!memory_.Holds(table, 8 * std::uint64_t{capacity})) return Refuse("a damaged dict");
    if (!Spend(capacity) || !Enter(object) || !Put("{")) return false;
    bool first = true;
    for (std::uint32_t i = 0; i < capacity; ++i) {
      const std::uint32_t key = memory_.Word(table + 8 * i);
      if (key == 0 || key == kDeletedKey) continue;
      if (!first && !Put(",")) return false;
      first = false;
      const std::size_t begin = out_.size();
      if (!Key(key)) return false;
      const std::size_t end = out_.size();
      if (!Put(":")) return false;
      if (!Value(memory_.Word(table + 8 * i + 4))) {
        path_.PrependKey(std::string_view(out_).substr(begin + 1, end - begin - 2));
        return false;
      }
    }
    Leave();
    return Put("}");
  }

  bool Key(std::uint32_t key) {
    if (IsQstr(key)) return String(QstrText(memory_, key >> 3));
    if (key == layout::kTrue) return Put("\"True\"");
    if (key == layout::kFalse) return Put("\"False\"");
    const std::uint32_t type = IsAddress(key) ? memory_.Word(key) : 0;
    if (type == layout::kTypeStr || type == layout::kTypeBytes) return StringObject(key);
    const bool scalar = SmallInt(key) || key == layout::kNone || type == layout::kTypeInt ||
                        type == layout::kTypeFloat;
    if (!scalar && type != layout::kTypeTuple) {
      return Refuse(fmt::format("a dict with a key of type {}", TypeName(memory_, key)));
    }
    // The key's own text becomes the name.
    std::string before = std::move(out_);
    out_.clear();
    const bool written = Value(key);
    std::string text = std::move(out_);
    out_ = std::move(before);
    if (!written) return false;
    if (type == layout::kTypeTuple) text = Spaced(text);
    return String(text);
  }

  // As the guest's own encoder prints a tuple: ", " and ": " between the parts.
  static std::string Spaced(std::string_view text) {
    std::string result;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      result += c;
      if (quoted && c == '\\') {
        result += text[++i];
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted && (c == ',' || c == ':')) {
        result += ' ';
      }
    }
    return result;
  }

  static constexpr std::uint32_t kDeletedKey = 4;
  static constexpr std::uint64_t kMaxOutput = std::uint64_t{1} << 40;  // no overflow below

  const GuestMemory& memory_;
  const ReadLimits& limits_;
  std::string out_;
  std::vector<std::uint32_t> ancestors_;
  ReadFault fault_;
  json::PathBuilder path_;
  Meter meter_;
  ClassTree classes_;
};

}  // namespace

std::expected<std::string, ReadFault> ReadJson(const GuestMemory& memory, std::uint32_t object,
                                               const ReadLimits& limits) {
  return Reader(memory, limits).Read(object);
}

std::size_t Utf8SequenceLength(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (at(i) & 0xc0) == 0x80; };
  const std::uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && at(1) < 0xa0) return 0;
    return first == 0xed && at(1) >= 0xa0 ? 0 : 3;
  }
  if (first >= 0xf0 && first < 0xf5) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && at(1) < 0x90) return 0;
    return first == 0xf4 && at(1) >= 0x90 ? 0 : 4;
  }
  return 0;
}

std::optional<std::int32_t> SmallInt(std::uint32_t object) {
  if ((object & 1u) == 0) return std::nullopt;
  return static_cast<std::int32_t>(object) >> 1;
}

std::optional<std::string_view> Text(const GuestMemory& memory, std::uint32_t object) {
  if (IsQstr(object)) return QstrText(memory, object >> 3);
  if (!IsAddress(object) || memory.Word(object) != layout::kTypeStr) return std::nullopt;
  return memory.Bytes(memory.Word(object + 12), memory.Word(object + 8));
}

std::optional<std::uint32_t> TupleItem(const GuestMemory& memory, std::uint32_t object,
                                       std::uint32_t index) {
  if (!IsAddress(object) || memory.Word(object) != layout::kTypeTuple) return std::nullopt;
  if (index >= memory.Word(object + 4)) return std::nullopt;
  return memory.Word(object + 8 + 4 * std::uint64_t{index});
}

std::string_view QstrText(const GuestMemory& memory, std::uint32_t qstr) {
  // Pools in a chain, newest first: previous, numbers before it (top bit: sorted), allocated,
  // count, hashes, lengths, then one text address each.
  std::uint32_t pool = memory.Word(layout::kLastQstrPool);
  for (int i = 0; i < kMaxQstrPools && pool != 0; ++i, pool = memory.Word(pool)) {
    const std::uint32_t before = memory.Word(pool + 4) & 0x7fffffffu;
    if (qstr < before) continue;
    const std::uint32_t index = qstr - before;
    if (index >= memory.Word(pool + 12)) return {};
    const std::uint32_t length = memory.Read<std::uint8_t>(memory.Word(pool + 20) + index);
    return memory.Bytes(memory.Word(pool + 24 + 4 * std::uint64_t{index}), length);
  }
  return {};
}

std::string TypeName(const GuestMemory& memory, std::uint32_t object) {
  if (SmallInt(object)) return "int";
  if (object == layout::kNone) return "NoneType";
  if (object == layout::kTrue || object == layout::kFalse) return "bool";
  if (IsQstr(object)) return "str";
  if (!IsAddress(object)) return "object";
  const std::string_view name = QstrText(memory, memory.Word(memory.Word(object) + 4) >> 16);
  return name.empty() ? "object" : std::string(name);
}

}  // namespace caisson::isolate
