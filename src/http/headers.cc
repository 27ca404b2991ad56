// SPDX-License-Identifier: Apache-2.0
#include "http/headers.h"

#include <algorithm>
#include <array>

namespace caisson::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr std::array<bool, 256> TokenCharacters() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto kToken = TokenCharacters();

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

const std::string* Headers::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (EqualsIgnoringCase(field.name, name)) return &field.value;
  }
  return nullptr;
}

std::size_t Headers::Count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields_, [&](const Field& field) { return EqualsIgnoringCase(field.name, name); }));
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!EqualsIgnoringCase(field.name, name)) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (EqualsIgnoringCase(Trim(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

void Headers::Add(std::string_view name, std::string_view value) {
  fields_.push_back({std::string(name), std::string(value)});
}

void Headers::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return EqualsIgnoringCase(field.name, name); });
}

bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return kToken[static_cast<unsigned char>(c)]; });
}

bool IsFieldValue(std::string_view text) {
  if (Trim(text).size() != text.size()) return false;
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
  });
}

}  // namespace caisson::http
