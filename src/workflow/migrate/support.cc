// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/support.h"

namespace caisson::workflow::migrate {
namespace {

// The guest's sort does not keep the order of equal elements.
constexpr std::string_view kStableSorted = R"py(def stable_sorted(items, key, reverse=False):
    rows = []
    for index, item in enumerate(items):
        rows.append((key(item), -index if reverse else index, item))
    return [row[2] for row in sorted(rows, reverse=reverse)]
)py";

// A float is a fraction whose denominator is a power of two: rounding it is a matter of integers.
constexpr std::string_view kRounded = R"py(def rounded(number, digits):
    if not isinstance(number, float) or number - number != 0:
        return number
    top, bottom = abs(number), 1
    while top != int(top):
        top, bottom = top * 2, bottom * 2
    scale = 10**digits
    whole, rest = divmod(int(top) * scale, bottom)
    if 2 * rest > bottom or (2 * rest == bottom and whole % 2):
        whole += 1
    if whole >= 2**53:
        return float("%.*f" % (digits, number))
    return -(whole / scale) if number < 0 else whole / scale
)py";

constexpr std::string_view kCapitalized = R"py(def capitalized(text):
    return text[:1].upper() + text[1:].lower()
)py";

constexpr std::string_view kMerged = R"py(def merged(*parts):
    result = {}
    for part in parts:
        result.update(part)
    return result
)py";

constexpr std::string_view kJsonText = R"py(def json_text(value):
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([json_text(item) for item in value]) + "]"
    if isinstance(value, dict):
        items = [json_text(key if isinstance(key, str) else json_text(key)) + ": " + json_text(value[key]) for key in sorted(value)]
        return "{" + ", ".join(items) + "}"
    if not isinstance(value, str):
        return repr(value)
    result = ""
    for char in value:
        code = ord(char)
        if char in '"\\':
            result += "\\" + char
        elif char in "\n\r\t\b\f":
            result += "\\" + "nrtbf"["\n\r\t\b\f".find(char)]
        elif 32 <= code < 127:
            result += char
        elif code < 65536:
            result += "\\u%04x" % code
        else:
            result += "\\u%04x\\u%04x" % (55296 + (code - 65536) // 1024, 56320 + (code - 65536) % 1024)
    return '"' + result + '"'
)py";

std::string_view TextOf(Support support) {
  switch (support) {
    case Support::kStableSorted:
      return kStableSorted;
    case Support::kRounded:
      return kRounded;
    case Support::kCapitalized:
      return kCapitalized;
    case Support::kMerged:
      return kMerged;
    case Support::kJsonText:
      return kJsonText;
  }
  return {};
}

}  // namespace

std::string_view SupportName(Support support) {
  switch (support) {
    case Support::kStableSorted:
      return "stable_sorted";
    case Support::kRounded:
      return "rounded";
    case Support::kCapitalized:
      return "capitalized";
    case Support::kMerged:
      return "merged";
    case Support::kJsonText:
      return "json_text";
  }
  return {};
}

std::string SupportText(Support support, std::string_view name) {
  const std::string_view usual = SupportName(support);
  std::string text(TextOf(support));
  for (std::size_t at = text.find(usual); at != std::string::npos; at = text.find(usual, at)) {
    text.replace(at, usual.size(), name);
    at += name.size();
  }
  return text;
}

}  // namespace caisson::workflow::migrate
