// SPDX-License-Identifier: Apache-2.0
#include "base/redactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/utf8.h"

namespace caisson {
namespace {

using Forms = std::vector<std::string>;

// How often a text is escaped; a secret is escaped as often in all its characters.
constexpr std::size_t kDepths = 4;

std::string Slashes(std::size_t count) { return std::string(count, '\\'); }

void AddPercent(std::string_view character, Forms& forms) {
  std::string upper;
  std::string lower;
  for (const char c : character) {
    upper += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    lower += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  if (lower != upper) forms.push_back(std::move(lower));
  forms.push_back(std::move(upper));
}

// `slash` is what begins an escape, escaped itself.
void AddCodeEscapes(std::uint32_t code, const std::string& slash, Forms& forms) {
  if (code >= 0x10000) {
    const std::uint32_t rest = code - 0x10000;
    const std::uint32_t high = 0xD800 + (rest >> 10);
    const std::uint32_t low = 0xDC00 + (rest & 0x3FF);
    forms.push_back(fmt::format("{0}u{1:04x}{0}u{2:04x}", slash, high, low));
    forms.push_back(fmt::format("{0}u{1:04X}{0}u{2:04X}", slash, high, low));
    return;
  }
  forms.push_back(fmt::format("{}u{:04x}", slash, code));
  forms.push_back(fmt::format("{}u{:04X}", slash, code));
  if (code < 0x100) forms.push_back(fmt::format("{}x{:02x}", slash, code));
}

void AddEscapes(std::string_view character, std::size_t depth, Forms& forms) {
  constexpr std::string_view kControls = "\n\r\t\b\f";
  constexpr std::string_view kLetters = "nrtbf";
  const char c = character.front();
  const std::string slash = Slashes(std::size_t{1} << (depth - 1));
  // Only the outer of several formats may be one that escapes it.
  for (std::size_t outer = 0; outer < depth; ++outer) {
    AddCodeEscapes(CodePoint(character), Slashes(std::size_t{1} << outer), forms);
  }
  if (const std::size_t at = kControls.find(c); at != std::string_view::npos) {
    forms.push_back(slash + kLetters[at]);
  }
  if (c == '"' || c == '\'' || c == '/') {
    forms.push_back(Slashes((std::size_t{1} << depth) - 1) + c);
  }
}

void AddHtml(char c, Forms& forms) {
  if (c == '&') forms.emplace_back("&amp;");
  if (c == '<') forms.emplace_back("&lt;");
  if (c == '>') forms.emplace_back("&gt;");
  if (c == '"') forms.insert(forms.end(), {"&quot;", "&#34;", "&#x22;"});
  if (c == '\'') forms.insert(forms.end(), {"&apos;", "&#39;", "&#x27;"});
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Forms FormsOf(std::string_view character, std::size_t depth) {
  const char c = character.front();
  Forms forms{c == '\\' ? Slashes(std::size_t{1} << depth) : std::string(character)};
  if (IsPlain(c)) return forms;
  AddPercent(character, forms);
  if (c == ' ') forms.emplace_back("+");
  AddHtml(c, forms);
  if (depth > 0 && CharacterLength(character) > 0) AddEscapes(character, depth, forms);
  return forms;
}

std::vector<Forms> AllForms(std::string_view secret, std::size_t depth) {
  std::vector<Forms> all;
  while (!secret.empty()) {
    const std::size_t length = std::max<std::size_t>(CharacterLength(secret), 1);
    all.push_back(FormsOf(secret.substr(0, length), depth));
    secret.remove_prefix(length);
  }
  return all;
}

}  // namespace

void Redactor::Add(std::string_view secret, const std::string& placeholder) {
  if (secret.empty()) return;
  const bool is_plain = std::ranges::all_of(secret, IsPlain);
  for (std::size_t depth = 0; depth < (is_plain ? 1 : kDepths); ++depth) {
    Secret added{AllForms(secret, depth), placeholder};
    for (const std::string& form : added.characters.front()) {
      begins_[static_cast<unsigned char>(form.front())] = true;
    }
    secrets_.push_back(std::move(added));
  }
}

// All ends at once: some texts can be read in more than one way.
void Redactor::Grow(const Secret& secret, std::string_view text, Match& match) {
  std::vector<std::size_t> ends{0};
  std::vector<std::size_t> next;
  for (const Forms& forms : secret.characters) {
    next.clear();
    for (const std::size_t end : ends) {
      const std::string_view rest = text.substr(end);
      for (const std::string& form : forms) {
        if (rest.starts_with(form)) {
          next.push_back(end + form.size());
        } else if (form.size() > rest.size() && form.starts_with(rest)) {
          match.is_open = true;
        }
      }
    }
    if (next.empty()) return;
    std::ranges::sort(next);
    next.erase(std::ranges::unique(next).begin(), next.end());
    ends.swap(next);
  }
  if (ends.back() <= match.length) return;
  match.length = ends.back();
  match.secret = &secret;
}

Redactor::Match Redactor::MatchAt(std::string_view text) const {
  Match match;
  if (!MayBegin(text.front())) return match;
  for (const Secret& secret : secrets_) Grow(secret, text, match);
  return match;
}

std::string Redactor::Redact(std::string text) const {
  const std::string_view all = text;
  std::string shown;
  std::size_t taken = 0;  // of `all`, into `shown`
  for (std::size_t at = 0; at < all.size();) {
    const Match match = MatchAt(all.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    shown.append(all, taken, at - taken).append(match.secret->placeholder);
    at += match.length;
    taken = at;
  }
  if (taken == 0) return text;
  return shown.append(all, taken);
}

std::size_t Redactor::Settled(std::string_view text) const {
  for (std::size_t at = 0; at < text.size();) {
    const Match match = MatchAt(text.substr(at));
    if (match.is_open) return at;
    at += std::max<std::size_t>(match.length, 1);
  }
  return text.size();
}

}  // namespace caisson
