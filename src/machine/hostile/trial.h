// SPDX-License-Identifier: Apache-2.0
// Runs attacks as programs of machines of a driver, which have root there, beside a machine that
// does honest work, and judges them by their oracles: for tests, and for an operator who wants to
// see his own host hold. No attack does harm where it works.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "jail/canaries.h"
#include "machine/driver.h"
#include "machine/hostile/corpus.h"

namespace caisson::machine::hostile {

struct Verdict {
  std::string attack;
  std::string oracle;
  std::string ended;                // in a few words: "exited with 0", "its time was up"
  std::vector<std::string> broken;  // what was promised and did not hold; empty: contained
  std::chrono::milliseconds took{0};
};

struct TrialOptions {
  std::string image;                          // its id; has python3
  std::chrono::milliseconds deadline{6'000};  // of one attack
  // Of one attack with the making and removing of its machine: a host that needs longer was hurt.
  std::chrono::milliseconds patience{60'000};
};

// Not thread-safe. One at a time per process: it has canaries.
class Trial {
 public:
  // Makes the neighbour. `driver` outlives this. Fails as Driver::Create, and with os.syscall.
  static Result<std::unique_ptr<Trial>> Open(Driver& driver, const TrialOptions& options);
  ~Trial();  // removes its machines
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Verdict Try(const Attack& attack);

 private:
  Trial(Driver& driver, TrialOptions options) : driver_(driver), options_(std::move(options)) {}
  void Run(const Attack& attack, Verdict& verdict);
  void CheckNeighbour(Verdict& verdict);

  Driver& driver_;
  TrialOptions options_;
  std::unique_ptr<jail::Canaries> canaries_;
};

}  // namespace caisson::machine::hostile
