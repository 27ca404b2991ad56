// SPDX-License-Identifier: Apache-2.0
// For tests: canaries (jail/canaries.h) that are there from the beginning of a test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "jail/canaries.h"

namespace caisson::jail {

class TestCanaries {
 public:
  TestCanaries() {
    auto set = Canaries::Set();
    EXPECT_TRUE(set) << set.error().message;
    if (set) canaries_ = *std::move(set);
  }
  std::string Document() const { return canaries_->Document(); }
  void ExpectUntouched() const {
    for (const std::string& harm : canaries_->Harm()) ADD_FAILURE() << harm;
  }

 private:
  std::unique_ptr<Canaries> canaries_;
};

}  // namespace caisson::jail
