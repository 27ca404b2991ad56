// SPDX-License-Identifier: Apache-2.0
// What the host does with managed processes.
#pragma once

#include <memory>

#include "agent/guest/agent.h"
#include "agent/guest/host_connection.h"

namespace caisson::agent::guest {

std::unique_ptr<Operation> BeginProcessStart(HostConnection& connection, const Command& command);
std::unique_ptr<Operation> BeginProcessConnect(HostConnection& connection,
                                               const ConnectRequest& request);
std::unique_ptr<Operation> BeginProcessWait(HostConnection& connection, const WaitRequest& request);
std::unique_ptr<Operation> BeginProcessTerminate(HostConnection& connection,
                                                 const TerminateRequest& request);

// Answered at once.
void AnswerProcessList(HostConnection& connection);
void AnswerProcessGet(HostConnection& connection, const ProcessRequest& request);
void AnswerProcessInput(HostConnection& connection, const InputRequest& request);
void AnswerProcessCloseInput(HostConnection& connection, const ProcessRequest& request);
void AnswerProcessResize(HostConnection& connection, const ResizeRequest& request);
void AnswerProcessSignal(HostConnection& connection, const SignalRequest& request);

}  // namespace caisson::agent::guest
