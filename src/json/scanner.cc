// SPDX-License-Identifier: Apache-2.0
#include "json/scanner.h"

#include "json/walker.h"

namespace caisson::json {
namespace {

Value::Kind KindAt(char c) {
  switch (c) {
    case '{':
      return Value::Kind::kObject;
    case '[':
      return Value::Kind::kArray;
    case '"':
      return Value::Kind::kString;
    case 't':
    case 'f':
      return Value::Kind::kBool;
    case 'n':
      return Value::Kind::kNull;
    default:
      return Value::Kind::kDouble;
  }
}

std::string_view Trimmed(std::string_view text) {
  constexpr char kSpace[] = " \t\n\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

class ChildSink {
 public:
  static constexpr bool kTakesEnds = true;

  ChildSink(std::string_view text, const std::function<bool(const ScannedChild&)>& on_child)
      : text_(text), on_child_(on_child) {}

  void Begin(std::size_t level, std::size_t place) {
    if (level == 1) {
      child_begin_ = place;
      only_objects_ = true;
    } else if (level == 2 && !text_.substr(place).starts_with('{')) {
      only_objects_ = false;
    }
  }
  void Take(const auto& /*scalar*/) {}
  void TakeLongInteger(std::string_view /*digits*/) {}
  void OpenArray() {}
  void OpenObject() {}
  bool CloseArray() { return true; }
  bool CloseObject() { return true; }

  void Key(std::size_t level, std::size_t place, std::string_view /*key*/) {
    if (level == 1) key_begin_ = place;
  }

  bool End(std::size_t level, std::size_t place) {
    if (level != 1 || !on_child_) return true;
    ScannedChild child{.text = Trimmed(text_.substr(child_begin_, place - child_begin_))};
    child.kind = KindAt(child.text[0]);
    child.only_objects = only_objects_;
    if (key_begin_) {
      const std::string_view before = text_.substr(*key_begin_, child_begin_ - *key_begin_);
      child.key = before.substr(0, before.rfind('"') + 1);
    }
    return on_child_(child);
  }

 private:
  std::string_view text_;
  const std::function<bool(const ScannedChild&)>& on_child_;
  std::size_t child_begin_ = 0;
  std::optional<std::size_t> key_begin_;
  bool only_objects_ = true;
};

}  // namespace

Result<ScanReport> Scan(std::string_view text, const ReadOptions& options,
                        const std::function<bool(const ScannedChild&)>& on_child) {
  CAISSON_TRY(CheckSize(text, options));
  ChildSink sink(text, on_child);
  Walker walker(text, options, sink);
  if (!walker.Walk() && walker.has_failed()) return walker.Error();
  const std::string_view value = Trimmed(text);
  // A string holds no raw line end.
  const bool has_line_end = text.find('\n') != text.npos || text.find('\r') != text.npos;
  return ScanReport{.kind = KindAt(value[0]), .text = value, .has_line_end = has_line_end};
}

}  // namespace caisson::json
