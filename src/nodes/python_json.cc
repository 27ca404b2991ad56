// SPDX-License-Identifier: Apache-2.0
#include "nodes/python_json.h"

#include <algorithm>
#include <cmath>

#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

class Dumper {
 public:
  Dumper(std::optional<std::int64_t> indent, bool ensure_ascii)
      : breaks_lines_(indent.has_value()),
        indent_(static_cast<std::size_t>(
            std::clamp<std::int64_t>(indent.value_or(0), 0, kMaxTextBytes))),
        ensure_ascii_(ensure_ascii) {}

  void Put(const json::Value& value) {
    if (full()) return;
    if (value.is_string()) return PutString(value.as_string());
    if (value.is_array()) return PutArray(value.as_array());
    if (value.is_object()) return PutObject(value.as_object());
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_double() && !std::isfinite(value.as_double())) {
      const double number = value.as_double();
      out_ += std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
    } else {
      out_ += PyRepr(value);
    }
  }
  std::string Take() { return std::move(out_); }
  bool full() const { return out_.size() > kMaxTextBytes; }

 private:
  void Break() {
    if (!breaks_lines_ || full()) return;
    out_ += '\n';
    out_.append(std::min(indent_ * depth_, kMaxTextBytes), ' ');
  }
  void Separate(bool first) {
    if (!first) out_ += breaks_lines_ ? "," : ", ";
    Break();
  }

  void PutArray(const json::Array& items) {
    if (items.empty()) return void(out_ += "[]");
    out_ += '[';
    ++depth_;
    for (const json::Value& item : items) {
      Separate(&item == items.data());
      Put(item);
    }
    --depth_;
    Break();
    out_ += ']';
  }

  void PutObject(const json::Object& members) {
    if (members.empty()) return void(out_ += "{}");
    out_ += '{';
    ++depth_;
    bool first = true;
    for (const auto& [key, value] : members) {
      Separate(first);
      first = false;
      PutString(key);
      out_ += ": ";
      Put(value);
    }
    --depth_;
    Break();
    out_ += '}';
  }

  void PutUnit(std::uint32_t unit) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += kHex[(unit >> shift) & 0xf];
  }

  void PutEscaped(std::uint32_t character) {
    if (character < 0x10000) return PutUnit(character);
    PutUnit(0xd800 + ((character - 0x10000) >> 10));
    PutUnit(0xdc00 + ((character - 0x10000) & 0x3ff));
  }

  void PutString(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const std::uint32_t character = NextCharacter(text, at);
      static constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
      static constexpr std::string_view kLetters = "\"\\bfnrt";
      const std::size_t special =
          character < 0x80 ? kSpecial.find(static_cast<char>(character)) : std::string_view::npos;
      if (special != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[special];
      } else if (character < 0x20 || (ensure_ascii_ && character > 0x7e)) {
        PutEscaped(character);
      } else {
        out_ += text.substr(begin, at - begin);
      }
    }
    out_ += '"';
  }

  std::string out_;
  bool breaks_lines_;
  std::size_t indent_;
  bool ensure_ascii_;
  std::size_t depth_ = 0;
};

}  // namespace

Result<std::string> PyJsonDumps(const json::Value& value, std::optional<std::int64_t> indent,
                                bool ensure_ascii) {
  Dumper dumper(indent, ensure_ascii);
  dumper.Put(value);
  if (dumper.full()) {
    return NodeFailed("the JSON text would be longer than " + std::to_string(kMaxTextBytes) +
                      " bytes; use a smaller indent or less data");
  }
  return dumper.Take();
}

}  // namespace caisson::nodes
