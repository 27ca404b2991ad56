// SPDX-License-Identifier: Apache-2.0
// The walk over a JSON text that Read and Scan share: simdjson finds and decodes the tokens, the
// walker checks what simdjson leaves unchecked and words the errors, a sink takes the values.
// Private to this folder.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "errors/json.h"
#include "json/decimal.h"
#include "json/diagnosis.h"
#include "json/path.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::json {

namespace ondemand = simdjson::ondemand;

// Fails with json.too_large if `text` is longer than `options` or simdjson, which counts positions
// in 32 bits, allow.
inline Result<void> CheckSize(std::string_view text, const ReadOptions& options) {
  const std::size_t most =
      std::min<std::size_t>(options.max_bytes, simdjson::SIMDJSON_MAXSIZE_BYTES - 64);
  if (text.size() <= most) return {};
  return Fail(errors::kJsonTooLarge, "the JSON text has " + std::to_string(text.size()) +
                                         " bytes; at most " + std::to_string(most) +
                                         " are allowed");
}

// simdjson walks over the text and decodes its scalars. What it walks over is a padded copy,
// `{"":text,}`, of which the walk takes one member and asks that our comma follows. So every text
// is a member's value, and one that ends early shows as our comma or brace in a wrong place. (As a
// whole document, simdjson 3.0 takes `nullx ` for null, and refuses long numbers, and containers
// that are not closed before it can tell where.)
//
// A sink has
//   Begin(level, place)       a value begins: how many containers are open, and its place in the
//   text Take(nullptr|bool|std::int64_t|double|std::string_view), TakeLongInteger(digits)
//   OpenArray(), OpenObject(), Key(level, place, key)
//   bool CloseArray(), CloseObject()   false ends the walk
//   kTakesEnds, and then bool End(level, place)   of the token after a child; false ends the walk
// A view that it is given lasts for the call.
template <typename Sink>
class Walker {
 public:
  Walker(std::string_view text, const ReadOptions& options, Sink& sink)
      : text_(text),
        options_(options),
        sink_(sink),
        copy_(kOpening.size() + text.size() + kBrokenClosing.size()) {}

  // False if the sink ended the walk, or Error() says why.
  bool Walk() { return Open() && WalkDocument(); }

  // For a sink that gave false from End because of the member at `key_place`.
  void RefuseDuplicateKey(std::size_t key_place, const std::string& key) {
    path_.PrependKey(key);
    Refuse(key_place, "the key occurs twice in one object; keep one of them",
           errors::kJsonDuplicateKey);
  }

  // Whether the walk failed, rather than was ended by the sink.
  bool has_failed() const { return !problem_.empty(); }

  std::unexpected<Status> Error() {
    BuildPath();
    const std::string_view before = text_.substr(0, place_);
    const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
    const auto column = static_cast<std::uint32_t>(before.size() - (before.rfind('\n') + 1));
    const std::string path = path_.Finish();
    std::string message = "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    if (path != "$") message += " (" + path + ")";
    return Fail(code_, message + ": " + problem_, {line, column, line, column + 1});
  }

 private:
  static constexpr char kSpace[] = " \t\n\r";
  // Shorter integers fit 64 bits; more digits may exceed what simdjson gathers of a double.
  static constexpr std::size_t kSureDigits = 19;
  static constexpr std::size_t kMostShown = 40;  // of a token that is wrong

  static constexpr char kArraySeparator[] = "expected ',' or ']' in an array, found ";
  static constexpr char kObjectSeparator[] = "expected ',' or '}' in an object, found ";

  static constexpr std::string_view kOpening = "{\"\":";
  static constexpr std::string_view kClosing = ",}";
  static constexpr std::string_view kBrokenClosing = " \",}";

  // An array or object that has not been closed.
  struct Level {
    bool is_object;
    bool has_begun = false;
    bool in_child = false;
    std::size_t count = 0;  // of its items that are complete
    std::string_view key;   // in the copy: begins with the string, and no other quote follows
    ondemand::array_iterator items;
    ondemand::object_iterator members;
  };

  static bool IsUtf8(std::string_view text) {
    return simdjson::validate_utf8(text.data(), text.size());
  }

  bool Open() {
    if (text_.starts_with("\xef\xbb\xbf")) {
      return Refuse(0, "the text begins with a byte order mark; save it as UTF-8 without one");
    }
    // Only simdjson's own checks in builds without optimisation use the depth.
    const std::size_t depth = std::min(options_.max_depth, text_.size()) + 4;
    if (copy_.data() == nullptr || parser_.allocate(copy_.size(), depth) != simdjson::SUCCESS) {
      return RefuseForMemory();
    }
    kOpening.copy(copy_.data(), kOpening.size());
    text_.copy(Begin(), text_.size());
    const simdjson::error_code error = Index(text_.size(), kClosing);
    return error == simdjson::SUCCESS || OpenBroken(error);
  }

  simdjson::error_code Index(std::size_t text_size, std::string_view closing) {
    char* stop = Begin() + text_size;
    stop += closing.copy(stop, closing.size());
    std::fill(stop, copy_.data() + copy_.size(), '\0');
    end_ = stop - kClosing.size();
    return parser_
        .iterate(copy_.data(), static_cast<std::size_t>(stop - copy_.data()),
                 copy_.size() + simdjson::SIMDJSON_PADDING)
        .get(document_);
  }

  // A string that is wrong is closed where it goes wrong, so that the walk comes to it and knows
  // its path, or to an error before it. The space keeps a backslash from escaping our quote.
  bool OpenBroken(simdjson::error_code error) {
    if (error == simdjson::MEMALLOC) return RefuseForMemory();
    if (!IsUtf8(text_)) return Refuse(FirstInvalidByte(text_), "the text is not valid UTF-8");
    broken_ = FindBrokenString(text_);
    if (broken_) error = Index(broken_->end, kBrokenClosing);
    return error == simdjson::SUCCESS || RefuseFault(error);
  }

  bool WalkDocument() {
    ondemand::object whole;
    ondemand::field member;
    if (const auto error = document_.get_object().get(whole)) return RefuseFault(error);
    if (const auto error = (*whole.begin()).get(member)) return RefuseFault(error);
    const std::string_view token = member.value().raw_json_token();
    if (!WalkValue(member.value(), token)) return false;
    while (!levels_.empty()) {
      if (!(levels_.back().is_object ? NextMember() : NextItem())) return false;
    }
    if (behind_.data() != end_) {
      return RefuseFound(behind_, "there is text after the end of the JSON value: ");
    }
    return !broken_ || RefuseString({Begin() + broken_->begin, 1});
  }

  // Opens a container, or gives a scalar to the sink. Nothing recurses.
  bool WalkValue(ondemand::value source, std::string_view token) {
    sink_.Begin(levels_.size(), Place(token));
    behind_ = {token.end(), 1};
    switch (token[0]) {
      case '{':
        return OpenObject(source, token);
      case '[':
        return OpenArray(source, token);
      case '"':
        return TakeString(source, token);
      case 't':
      case 'f':
        return TakeBool(source) || RefuseValue(token);
      case 'n':
        return TakeNull(source) || RefuseValue(token);
      default:
        break;
    }
    const bool is_number = token[0] == '-' || (token[0] >= '0' && token[0] <= '9');
    return is_number ? TakeNumber(source, token) : RefuseValue(token);
  }

  bool OpenArray(ondemand::value source, std::string_view token) {
    if (levels_.size() >= options_.max_depth) return RefuseDepth(token);
    ondemand::array array;
    Level level{.is_object = false};
    if (const auto error = source.get_array().get(array)) return RefuseFault(error);
    if (const auto error = array.begin().get(level.items)) return RefuseFault(error);
    levels_.push_back(level);
    sink_.OpenArray();
    return true;
  }

  bool OpenObject(ondemand::value source, std::string_view token) {
    if (levels_.size() >= options_.max_depth) return RefuseDepth(token);
    ondemand::object object;
    Level level{.is_object = true};
    if (const auto error = source.get_object().get(object)) return RefuseFault(error);
    if (const auto error = object.begin().get(level.members)) return RefuseFault(error);
    levels_.push_back(level);
    sink_.OpenObject();
    return true;
  }

  bool NextItem() {
    Level& level = levels_.back();
    if (level.has_begun) {
      if (!EndChild(level)) return false;
      ++level.items;
    }
    level.has_begun = true;
    if (level.items == ondemand::array_iterator()) {
      if (!sink_.CloseArray()) return false;
      behind_ = Here();
      levels_.pop_back();
      return true;
    }
    ondemand::value item;
    if ((*level.items).get(item) != simdjson::SUCCESS) return RefuseFound(Here(), kArraySeparator);
    const std::string_view token = item.raw_json_token();
    if (token[0] == ']' || token.data() > end_) return RefuseBracket(token, kArraySeparator);
    level.in_child = true;
    return WalkValue(item, token);
  }

  bool NextMember() {
    Level& level = levels_.back();
    if (level.has_begun) {
      if (!EndChild(level)) return false;
      ++level.members;
    }
    level.has_begun = true;
    if (level.members == ondemand::object_iterator()) {
      if (!sink_.CloseObject()) return false;
      behind_ = Here();
      levels_.pop_back();
      return true;
    }
    const std::string_view key_begin = Here();
    ondemand::field member;
    if ((*level.members).get(member) != simdjson::SUCCESS) return RefuseMember(key_begin);
    const std::string_view token = member.value().raw_json_token();
    level.key = {key_begin.begin(), token.begin()};
    std::string_view key;
    if (!Unescape(member.key(), level.key, key)) return false;
    sink_.Key(levels_.size(), Place(level.key), key);
    level.in_child = true;
    return WalkValue(member.value(), token);
  }

  // Of a level, when the walk stands behind one of its children.
  bool EndChild(Level& level) {
    level.in_child = false;
    ++level.count;
    if constexpr (Sink::kTakesEnds) return sink_.End(levels_.size(), Place(behind_));
    return true;
  }

  bool TakeString(ondemand::value source, std::string_view token) {
    ondemand::raw_json_string raw;
    if (const auto error = source.get_raw_json_string().get(raw)) return RefuseFault(error);
    std::string_view text;
    if (!Unescape(raw, token, text)) return false;
    sink_.Take(text);
    return true;
  }

  // `token` begins with the string, and no other quote follows in it. `text` lasts until the next
  // call. What has no escape stands for itself, since simdjson has checked encoding and control
  // characters. simdjson 3.0 decodes the escape of a lone low surrogate to three bytes that are no
  // UTF-8.
  bool Unescape(ondemand::raw_json_string raw, std::string_view token, std::string_view& text) {
    if (IsBroken(token)) return RefuseString(token);
    if (token.find('\\') == std::string_view::npos) {
      text = token.substr(1, token.rfind('"') - 1);
      return true;
    }
    const std::size_t room = token.size() + simdjson::SIMDJSON_PADDING;
    if (unescaped_.size() < room) unescaped_.resize(room);
    std::uint8_t* out = unescaped_.data();
    if (parser_.unescape(raw, out).get(text) == simdjson::SUCCESS && IsUtf8(text)) return true;
    return RefuseString(token);
  }

  bool TakeBool(ondemand::value source) {
    bool flag = false;
    if (source.get_bool().get(flag) != simdjson::SUCCESS) return false;
    sink_.Take(flag);
    return true;
  }

  bool TakeNull(ondemand::value source) {
    bool is_null = false;
    if (source.is_null().get(is_null) != simdjson::SUCCESS || !is_null) return false;
    sink_.Take(nullptr);
    return true;
  }

  bool TakeNumber(ondemand::value source, std::string_view token) {
    std::int64_t number = 0;
    if (source.get_int64().get(number) == simdjson::SUCCESS) {
      if (!CheckDigits(token)) return false;
      sink_.Take(number);
      return true;
    }
    token = token.substr(0, token.find_last_not_of(kSpace) + 1);
    if (token.size() < kSureDigits || !IsInteger(token)) return TakeDouble(source, token);
    if (!CheckDigits(token)) return false;
    sink_.TakeLongInteger(token);
    return true;
  }

  // simdjson 3.0 decodes some doubles of more than 19 digits wrongly, and reports those beyond the
  // range as it does what is no number.
  bool TakeDouble(ondemand::value source, std::string_view token) {
    double number = 0;
    if (token.size() > kSureDigits || source.get_double().get(number) != simdjson::SUCCESS) {
      switch (ReadDecimal(token, number)) {
        case Decimal::kNumber:
          break;
        case Decimal::kNotANumber:
          return Refuse(Place(token), Quote(token.substr(0, kMostShown)) +
                                          " is not a JSON number (digits on both sides of "
                                          "'.' and after 'e', no leading 0)");
        case Decimal::kTooLarge:
          return Refuse(Place(token), "the number is beyond the range of a double");
      }
    }
    sink_.Take(number);
    return true;
  }

  bool CheckDigits(std::string_view token) {
    const std::size_t most = options_.max_integer_digits;
    if (token.size() <= most) return true;
    const std::size_t begin = token.starts_with('-') ? 1 : 0;
    const std::size_t end = std::min(token.find_last_not_of(kSpace) + 1, token.size());
    if (end - begin <= most) return true;
    return Refuse(Place(token), "an integer has more than " + std::to_string(most) + " digits",
                  errors::kJsonTooLarge);
  }

  // Where the next token begins; after an error of the walk, the token that is wrong.
  std::string_view Here() {
    const char* place = end_;
    return {document_.current_location().get(place) == simdjson::SUCCESS ? place : end_, 1};
  }

  char* Begin() { return copy_.data() + kOpening.size(); }

  // Our comma and brace lie at the end of the text.
  std::size_t Place(std::string_view token) const {
    const std::ptrdiff_t offset =
        token.data() - copy_.data() - static_cast<std::ptrdiff_t>(kOpening.size());
    return std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
  }
  bool IsBroken(std::string_view string) const {
    return broken_ && broken_->begin == Place(string);
  }

  bool RefuseDepth(std::string_view token) {
    return Refuse(Place(token),
                  "arrays and objects are nested more than " + std::to_string(options_.max_depth) +
                      " levels deep",
                  errors::kJsonTooDeep);
  }

  bool RefuseValue(std::string_view token) {
    const std::size_t place = Place(token);
    const std::string_view rest = text_.substr(place);
    if (!rest.empty()) {
      return Refuse(place, "expected a value, found " + DescribeNext(rest) + HintFor(rest));
    }
    return Refuse(place, levels_.empty() ? "the text is empty; a JSON value was expected"
                                         : "the text ends where a value was expected");
  }

  bool RefuseMember(std::string_view key) {
    const std::string_view found = Here();
    if (found.data() < key.data()) return RefuseFound(found, kObjectSeparator);
    if (IsBroken(key)) return RefuseString(key);
    if (found.data() > key.data()) return RefuseFound(found, "expected ':' after a key, found ");
    if (found[0] == '}' || found.data() > end_) return RefuseBracket(found, kObjectSeparator);
    return RefuseFound(found, "expected a key in double quotes, found ");
  }

  // A closing bracket after a comma. If the one is ours, so is the other.
  bool RefuseBracket(std::string_view bracket, const char* instead) {
    if (bracket.data() > end_) return RefuseFound(bracket, instead);
    return Refuse(Place(bracket),
                  std::string("there is a ',' before '") + bracket[0] + "'; remove it");
  }

  bool RefuseString(std::string_view token) {
    const std::size_t begin = Place(token);
    const std::size_t end = IsBroken(token) ? broken_->end : text_.size();
    if (const auto bad = FindBadEscape(text_.substr(begin, end - begin))) {
      return Refuse(begin + bad->offset, bad->problem);
    }
    if (!IsBroken(token)) return RefuseFault(simdjson::STRING_ERROR);
    if (end == text_.size()) {
      return Refuse(begin, "the string that begins here has no closing quote");
    }
    return Refuse(end, "a string may not contain " + DescribeNext(text_.substr(end)) +
                           "; write it as an escape");
  }

  bool RefuseFound(std::string_view token, const char* problem) {
    return Refuse(Place(token), problem + DescribeNext(text_.substr(Place(token))));
  }

  bool RefuseForMemory() {
    return Refuse(0,
                  "there is not enough memory to read " + std::to_string(text_.size()) + " bytes",
                  errors::kJsonTooLarge);
  }

  // What can only happen if simdjson and we see the text differently.
  bool RefuseFault(simdjson::error_code error) {
    return Refuse(0, std::string("the text cannot be read: ") + simdjson::error_message(error));
  }

  bool Refuse(std::size_t place, std::string problem, ErrorCode code = errors::kJsonSyntax) {
    place_ = place;
    problem_ = std::move(problem);
    code_ = code;
    return false;
  }

  // From the inside out.
  void BuildPath() {
    for (std::size_t i = levels_.size(); i-- > 0;) {
      const Level& level = levels_[i];
      if (!level.in_child) continue;
      if (!level.is_object) {
        path_.PrependIndex(level.count);
      } else if (auto key = Read(level.key.substr(0, level.key.rfind('"') + 1))) {
        path_.PrependKey(key->as_string());
      }
    }
  }

  std::string_view text_;
  const ReadOptions& options_;
  Sink& sink_;
  simdjson::padded_string copy_;
  const char* end_ = nullptr;  // of the text in the copy: our comma
  // The token after the last value. (simdjson still stands at a scalar that it did not decode.)
  std::string_view behind_;
  std::optional<BrokenString> broken_;
  ondemand::parser parser_;
  ondemand::document document_;
  std::vector<Level> levels_;
  std::vector<std::uint8_t> unescaped_;
  PathBuilder path_;
  std::size_t place_ = 0;
  ErrorCode code_ = errors::kJsonSyntax;
  std::string problem_;
};

}  // namespace caisson::json
