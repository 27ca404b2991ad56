// SPDX-License-Identifier: Apache-2.0
// Finds secrets in texts and puts something else in their place: a secret as it is, and in the
// forms that texts are given on their way (percent-encoding, escapes of JSON and Python up to three
// deep, HTML). Not other forms: a digest, base64, another case. Not synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

class Redactor {
 public:
  // An empty secret is none.
  void Add(std::string_view secret, const std::string& placeholder);
  bool empty() const { return secrets_.empty(); }

  // The text with the placeholder for each secret; of secrets that begin at one place the longest.
  std::string Redact(std::string text) const;
  // How many bytes of the beginning can be judged whatever follows them: behind them may be the
  // beginning of a secret. They end between characters.
  std::size_t Settled(std::string_view text) const;

 private:
  struct Secret {
    std::vector<std::vector<std::string>> characters;  // each with all its forms
    std::string placeholder;
  };
  struct Match {
    std::size_t length = 0;  // 0: none
    bool is_open = false;    // more text might make one, or a longer one
    const Secret* secret = nullptr;
  };
  static void Grow(const Secret& secret, std::string_view text, Match& match);
  Match MatchAt(std::string_view text) const;
  bool MayBegin(char first) const { return begins_[static_cast<unsigned char>(first)]; }

  std::vector<Secret> secrets_;
  std::array<bool, 256> begins_{};
};

}  // namespace caisson
