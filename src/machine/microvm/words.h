// SPDX-License-Identifier: Apache-2.0
// What a monitor says on its standard outputs: the end of it is kept for messages.
#pragma once

#include <memory>
#include <string>

#include "agent/guest/loop.h"
#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

class Words {
 public:
  // From the reading end of a pipe on.
  void Watch(agent::guest::Loop& loop, os::UniqueFd pipe);
  // All that has come, at most 4 KiB.
  std::string Last();

 private:
  bool ReadOnce();
  std::unique_ptr<agent::guest::EventSource> source_;
  std::string text_;
};

}  // namespace caisson::machine::microvm
