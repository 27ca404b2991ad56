// SPDX-License-Identifier: Apache-2.0
// The secrets that a node host was given, so that what it says outside of any call shows none.
// Not synchronised.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/redactor.h"
#include "host/provider.h"

namespace caisson::host {

class KnownSecrets {
 public:
  void Add(const std::vector<Secret>& secrets) {
    for (const Secret& secret : secrets) {
      if (!known_.insert(secret).second) continue;
      redactor_.Add(secret.first, secret.second);
      AddLines(secret);
    }
  }
  std::string Redact(std::string text) const { return redactor_.Redact(std::move(text)); }
  std::size_t Settled(std::string_view text) const { return redactor_.Settled(text); }

 private:
  // What the host writes comes line by line, and so does a secret that has several (a key in PEM).
  void AddLines(const Secret& secret) {
    constexpr std::size_t kLeast = 8;  // shorter ones occur by themselves
    if (!secret.first.contains('\n')) return;
    for (std::string_view rest = secret.first; !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.size() >= kLeast) redactor_.Add(line, secret.second);
    }
  }

  std::set<Secret> known_;
  Redactor redactor_;
};

}  // namespace caisson::host
