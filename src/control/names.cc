// SPDX-License-Identifier: Apache-2.0
#include "control/names.h"

#include <algorithm>
#include <array>

#include "control/secret.h"

namespace caisson::control {
namespace {

// At most 8 letters each, so that two of them and the number fit.
constexpr std::array<std::string_view, 48> kAdjectives{
    "able",   "amber", "bold",   "brave", "bright", "brisk", "calm",  "clear", "clever", "cosy",
    "crisp",  "deft",  "eager",  "early", "fair",   "fast",  "fine",  "fleet", "fond",   "fresh",
    "gentle", "glad",  "grand",  "green", "happy",  "hardy", "keen",  "kind",  "lively", "lucky",
    "merry",  "mild",  "neat",   "noble", "plain",  "proud", "quick", "quiet", "rapid",  "ready",
    "royal",  "sharp", "silent", "smart", "solid",  "sunny", "tidy",  "wise"};
constexpr std::array<std::string_view, 48> kAnimals{
    "badger", "bear",  "beaver",   "bison",  "crane",  "crow",   "deer",   "dolphin",
    "dove",   "eagle", "falcon",   "ferret", "finch",  "fox",    "gecko",  "goose",
    "hare",   "hawk",  "hedgehog", "heron",  "horse",  "ibex",   "jay",    "koala",
    "lark",   "lemur", "lion",     "lynx",   "marmot", "martin", "mole",   "moose",
    "newt",   "otter", "owl",      "panda",  "pika",   "plover", "puffin", "quail",
    "raven",  "robin", "seal",     "stork",  "swan",   "tapir",  "whale",  "wren"};

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

bool IsName(std::string_view name, std::size_t max) {
  return !name.empty() && name.size() <= max && IsLetterOrDigit(name.front()) &&
         IsLetterOrDigit(name.back()) &&
         std::ranges::all_of(name, [](char c) { return c == '-' || IsLetterOrDigit(c); });
}

std::string MakeName() {
  std::string name(kAdjectives[RandomBelow(kAdjectives.size())]);
  name += '-';
  name += kAnimals[RandomBelow(kAnimals.size())];
  name += '-';
  for (int i = 0; i < 3; ++i) name += "0123456789abcdef"[RandomBelow(16)];
  return name;
}

}  // namespace caisson::control
