// SPDX-License-Identifier: Apache-2.0
// The process between the agent and one command (agent/guest/spawner.h). Runs in the spawner's
// copy: one thread, so that ordinary code is safe there.
#pragma once

namespace caisson::agent::guest {

struct SupervisedStart {
  int command;  // a file with the encoded Command
  int reports;  // gets SupervisorReports
  int input;    // or the terminal, when there is no output
  int output = -1;
  int errors = -1;
  int spawner_socket = -1;
};

// Forks the supervisor, as a child of the caller's parent, and returns. All failures are reported.
void StartSupervised(const SupervisedStart& start);

}  // namespace caisson::agent::guest
