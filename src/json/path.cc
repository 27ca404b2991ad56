// SPDX-License-Identifier: Apache-2.0
#include "json/path.h"

#include <algorithm>
#include <utility>

#include "json/writer.h"

namespace caisson::json {
namespace {

constexpr std::size_t kMaxKey = 64;
constexpr std::size_t kEndSteps = 12;  // shown of each end of a long path

bool IsPlain(std::string_view key) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto part = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !key.empty() && letter(key[0]) && std::ranges::all_of(key, part);
}

std::string_view Cut(std::string_view key) {
  if (key.size() <= kMaxKey) return key;
  std::size_t end = kMaxKey;
  while (end > 0 && (static_cast<unsigned char>(key[end]) & 0xc0) == 0x80) --end;
  return key.substr(0, end);
}

}  // namespace

void PathBuilder::PrependKey(std::string_view key) {
  const std::string_view cut = Cut(key);
  std::string step = IsPlain(cut) ? "." + std::string(cut) : "[" + Quote(cut) + "]";
  if (cut.size() < key.size()) step.insert(step.size() - (step.back() == ']' ? 2 : 0), "…");
  steps_.push_back(std::move(step));
}

void PathBuilder::PrependIndex(std::size_t index) {
  steps_.push_back("[" + std::to_string(index) + "]");
}

std::string PathBuilder::Finish() const {
  std::string path = "$";
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const bool in_middle = i >= kEndSteps && steps_.size() - i > kEndSteps;
    if (!in_middle) {
      path += steps_[i];
    } else if (!path.ends_with("…")) {
      path += "…";
    }
  }
  return path;
}

}  // namespace caisson::json
