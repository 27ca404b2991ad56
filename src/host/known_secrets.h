// SPDX-License-Identifier: Apache-2.0
// The secrets that a node host was given, so that what it says outside of any call shows none.
// Not synchronised.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "host/provider.h"

namespace caisson::host {

class KnownSecrets {
 public:
  void Add(const std::vector<Secret>& secrets) {
    for (const Secret& secret : secrets) {
      if (!secret.first.empty()) known_.insert(secret);
    }
  }
  std::string Redact(std::string text) const {
    for (const auto& [secret, placeholder] : known_) {
      for (std::size_t at = text.find(secret); at != std::string::npos;) {
        text.replace(at, secret.size(), placeholder);
        at = text.find(secret, at + placeholder.size());
      }
    }
    return text;
  }

 private:
  std::set<Secret> known_;
};

}  // namespace caisson::host
