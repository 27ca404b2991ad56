// SPDX-License-Identifier: Apache-2.0
#include "json/reader.h"

#include <iterator>
#include <utility>
#include <vector>

#include "json/walker.h"

namespace caisson::json {
namespace {

// Both stacks are shared by all levels, so that each container is allocated once, in its final
// size.
class ValueSink {
 public:
  static constexpr bool kTakesEnds = false;

  explicit ValueSink(bool reject_duplicate_keys) : reject_duplicate_keys_(reject_duplicate_keys) {}

  struct PlacedKey {
    std::size_t place;
    std::string text;
  };

  void Begin(std::size_t /*level*/, std::size_t /*place*/) {}
  void Take(auto scalar) { values_.emplace_back(scalar); }
  void TakeLongInteger(std::string_view digits) { values_.push_back(Value::Integer(digits)); }

  void OpenArray() { levels_.push_back({std::ssize(values_), std::ssize(keys_)}); }
  void OpenObject() { OpenArray(); }
  void Key(std::size_t /*level*/, std::size_t place, std::string_view key) {
    keys_.push_back({place, std::string(key)});
  }

  bool CloseArray() {
    const auto first = values_.begin() + levels_.back().values;
    auto items = Array(std::move_iterator(first), std::move_iterator(values_.end()));
    values_.erase(first, values_.end());
    values_.emplace_back(std::move(items));
    levels_.pop_back();
    return true;
  }

  bool CloseObject() {
    const auto key = keys_.begin() + levels_.back().keys;
    const auto value = values_.begin() + levels_.back().values;
    const auto count = keys_.end() - key;
    Object object;
    object.Reserve(static_cast<std::size_t>(count));
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      if (reject_duplicate_keys_ && object.Contains(key[i].text)) {
        duplicate_ = key[i];
        return false;
      }
      object.Set(std::move(key[i].text), std::move(value[i]));
    }
    keys_.erase(key, keys_.end());
    values_.erase(value, values_.end());
    values_.emplace_back(std::move(object));
    levels_.pop_back();
    return true;
  }

  Value TakeWhole() { return std::move(values_.back()); }
  const std::optional<PlacedKey>& duplicate() const { return duplicate_; }

 private:
  // Where the items of a container, or the values and keys of its members, begin in the stacks.
  struct Level {
    std::ptrdiff_t values;
    std::ptrdiff_t keys;
  };

  bool reject_duplicate_keys_;
  std::vector<Level> levels_;
  std::vector<Value> values_;
  std::vector<PlacedKey> keys_;
  std::optional<PlacedKey> duplicate_;
};

}  // namespace

Result<Value> Read(std::string_view text, const ReadOptions& options) {
  CAISSON_TRY(CheckSize(text, options));
  ValueSink sink(options.reject_duplicate_keys);
  Walker walker(text, options, sink);
  if (walker.Walk()) return sink.TakeWhole();
  if (const auto& twice = sink.duplicate()) walker.RefuseDuplicateKey(twice->place, twice->text);
  return walker.Error();
}

}  // namespace caisson::json
