// SPDX-License-Identifier: Apache-2.0
#include "json/marshal.h"

#include <bit>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "base/utf8.h"
#include "json/walker.h"

namespace caisson::json {
namespace {

constexpr char kNone = 'N';
constexpr char kTrue = 'T';
constexpr char kFalse = 'F';
constexpr char kInt32 = 'i';
constexpr char kLong = 'l';
constexpr char kDouble = 'g';
constexpr char kShortAscii = 'z';
constexpr char kAscii = 'a';
constexpr char kShortAsciiInterned = 'Z';
constexpr char kAsciiInterned = 'A';
constexpr char kUnicode = 'u';
constexpr char kInterned = 't';
constexpr char kList = '[';
constexpr char kDict = '{';
constexpr char kDictEnd = '0';
constexpr char kReference = 'r';
constexpr char kIsReferenced = static_cast<char>(0x80);

constexpr unsigned kLongBits = 15;
constexpr std::size_t kMostShort = 255;
// Keys of a document repeat. So many that differ are looked up; further ones are written out.
constexpr std::size_t kMostReferences = 4096;

class MarshalSink {
 public:
  static constexpr bool kTakesEnds = false;

  explicit MarshalSink(std::size_t text_size) { out_.reserve(text_size); }

  std::string TakeOut() { return std::move(out_); }

  void Begin(std::size_t /*level*/, std::size_t /*place*/) {
    if (!lists_.empty() && lists_.back() != kIsDict) ++counts_.back();
  }

  void Take(std::nullptr_t) { out_ += kNone; }
  void Take(bool flag) { out_ += flag ? kTrue : kFalse; }
  void Take(std::int64_t number) {
    if (std::in_range<std::int32_t>(number)) {
      out_ += kInt32;
      Append32(static_cast<std::uint32_t>(number));
    } else {
      const bool negative = number < 0;
      const auto size =
          negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
      AppendLong({static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(size >> 32)},
                 negative);
    }
  }
  void Take(double number) {
    out_ += kDouble;
    const auto bits = std::bit_cast<std::uint64_t>(number);
    Append32(static_cast<std::uint32_t>(bits));
    Append32(static_cast<std::uint32_t>(bits >> 32));
  }
  void Take(std::string_view text) { AppendText(text, kShortAscii, kAscii, kUnicode, 0); }

  void TakeLongInteger(std::string_view digits) {
    const bool negative = digits.starts_with('-');
    digits.remove_prefix(negative ? 1 : 0);
    // Nine digits at a time, so that a product fits 64 bits.
    std::vector<std::uint32_t> words;
    while (!digits.empty()) {
      const std::size_t count = std::min<std::size_t>(digits.size(), 9);
      std::uint32_t part = 0;
      std::from_chars(digits.data(), digits.data() + count, part);
      digits.remove_prefix(count);
      std::uint64_t scale = 1;
      for (std::size_t i = 0; i < count; ++i) scale *= 10;
      std::uint64_t carry = part;
      for (std::uint32_t& word : words) {
        carry += word * scale;
        word = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      if (carry != 0) words.push_back(static_cast<std::uint32_t>(carry));
    }
    AppendLong(words, negative);
  }

  void OpenArray() {
    out_ += kList;
    lists_.push_back(out_.size());
    counts_.push_back(0);
    Append32(0);
  }
  // The count is known now.
  bool CloseArray() {
    const std::size_t place = lists_.back();
    for (unsigned i = 0; i < 4; ++i) out_[place + i] = static_cast<char>(counts_.back() >> 8 * i);
    lists_.pop_back();
    counts_.pop_back();
    return true;
  }

  void OpenObject() {
    out_ += kDict;
    lists_.push_back(kIsDict);
    counts_.push_back(0);
  }
  bool CloseObject() {
    out_ += kDictEnd;
    lists_.pop_back();
    counts_.pop_back();
    return true;
  }

  void Key(std::size_t /*level*/, std::size_t /*place*/, std::string_view key) {
    if (const auto known = references_.find(key); known != references_.end()) {
      out_ += kReference;
      Append32(known->second);
      return;
    }
    const bool is_new = references_.size() < kMostReferences;
    if (is_new) references_.emplace(key, static_cast<std::uint32_t>(references_.size()));
    AppendText(key, kShortAsciiInterned, kAsciiInterned, kInterned, is_new ? kIsReferenced : 0);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  static constexpr std::size_t kIsDict = std::numeric_limits<std::size_t>::max();

  void Append32(std::uint32_t number) {
    for (unsigned i = 0; i < 4; ++i) out_ += static_cast<char>(number >> 8 * i);
  }

  void AppendText(std::string_view text, char short_ascii, char ascii, char unicode, char flag) {
    const bool is_ascii = IsAscii(text);
    if (is_ascii && text.size() <= kMostShort) {
      out_ += static_cast<char>(short_ascii | flag);
      out_ += static_cast<char>(text.size());
    } else {
      out_ += static_cast<char>((is_ascii ? ascii : unicode) | flag);
      Append32(static_cast<std::uint32_t>(text.size()));
    }
    out_ += text;
  }

  // `words`: little-endian, of 32 bits. Their number is negative for a negative integer.
  void AppendLong(const std::vector<std::uint32_t>& words, bool negative) {
    std::string digits;
    std::uint64_t rest = 0;
    unsigned bits = 0;
    const auto append = [&] {
      const auto digit = static_cast<std::uint32_t>(rest & ((1u << kLongBits) - 1));
      digits += static_cast<char>(digit);
      digits += static_cast<char>(digit >> 8);
      rest >>= kLongBits;
    };
    for (const std::uint32_t word : words) {
      rest |= std::uint64_t{word} << bits;
      for (bits += 32; bits >= kLongBits; bits -= kLongBits) append();
    }
    if (rest != 0) append();
    // The highest digit is not zero.
    while (digits.ends_with(std::string_view("\0\0", 2))) digits.resize(digits.size() - 2);
    const auto count = static_cast<std::uint32_t>(digits.size() / 2);
    out_ += kLong;
    Append32(negative ? 0 - count : count);
    out_ += digits;
  }

  std::string out_;
  // Per level: the place of a list's count, and the count; kIsDict for an object.
  std::vector<std::size_t> lists_;
  std::vector<std::uint32_t> counts_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> references_;
};

}  // namespace

Result<std::string> ToMarshal(std::string_view text, const ReadOptions& options) {
  CAISSON_TRY(CheckSize(text, options));
  MarshalSink sink(text.size());
  Walker walker(text, options, sink);
  if (!walker.Walk()) return walker.Error();
  return sink.TakeOut();
}

}  // namespace caisson::json
