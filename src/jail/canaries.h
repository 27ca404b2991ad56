// SPDX-License-Identifier: Apache-2.0
// Things outside of a sandbox that hostile code would touch: a file, a process, a listener, an
// abstract socket, a secret in this process's environment (tests/corpora/attacks/README.md). They
// tell whether anything did. For tests, and for trials of a host.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::jail {

class Canaries {
 public:
  // Changes this process's environment, and starts a process of another user where it may. Fails
  // with os.syscall.
  static Result<std::unique_ptr<Canaries>> Set();
  ~Canaries();
  Canaries(const Canaries&) = delete;
  Canaries& operator=(const Canaries&) = delete;

  static constexpr const char* kText = "HOST-CANARY-5f2c91";  // what must never come out

  // The first document of an attack, as JSON.
  std::string Document() const;
  // What was done to them; empty: nothing.
  std::vector<std::string> Harm() const;

 private:
  Canaries() = default;
  std::string file() const { return directory_ + "/canary"; }

  std::string directory_;
  os::UniqueFd tcp_, udp_, unix_;
  std::string abstract_;
  int bindable_ = 0;
  pid_t pid_ = -1;
};

}  // namespace caisson::jail
