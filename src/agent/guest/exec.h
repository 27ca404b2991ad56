// SPDX-License-Identifier: Apache-2.0
// One command for one connection: its streams both ways, its timeout, its end.
#pragma once

#include "agent/guest/agent.h"
#include "agent/guest/child.h"
#include "agent/guest/host_connection.h"

namespace caisson::agent::guest {

class ExecOperation final : public Operation, private ChildListener {
 public:
  ExecOperation(HostConnection& connection, const ExecRequest& request);
  // Kills the command with everything that it started, unless its end has been told.
  ~ExecOperation() override;

  void OnFrame(const Frame& frame) override;
  void OnSent() override;

 private:
  void OnStarted() override;
  void OnStartFailed(const Failure& failure) override;
  void OnOutput(OutputStream stream, std::string_view bytes) override;
  void OnExit(int wait_status) override;
  void OnEndUnknown() override;
  void OnTreeEnded() override {}
  void OnInputTaken() override;
  void Say(FrameType type, std::string_view payload);

  Counted counted_;
  Child* child_ = nullptr;  // until its end is told
  Timer timeout_;
  Timer heartbeat_;
  bool timed_out_ = false;
};

}  // namespace caisson::agent::guest
