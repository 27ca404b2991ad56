// SPDX-License-Identifier: Apache-2.0
// Which operation a connection's first frame asks for.
#include <memory>

#include "agent/guest/agent.h"
#include "agent/guest/computer.h"
#include "agent/guest/dial.h"
#include "agent/guest/entrance.h"
#include "agent/guest/exec.h"
#include "agent/guest/files.h"
#include "agent/guest/host_connection.h"
#include "agent/guest/process_operations.h"
#include "agent/guest/watch.h"

namespace caisson::agent::guest {
namespace {

using Begun = std::unique_ptr<Operation>;

Begun Refuse(HostConnection& connection, const char* why) {
  connection.Fail({.kind = FailureKind::kBadRequest, .message = why});
  return nullptr;
}

template <typename Request>
Begun With(HostConnection& connection, const Frame& frame,
           Begun (*begin)(HostConnection&, const Request&)) {
  const auto request = Decode<Request>(frame.payload);
  if (!request) return Refuse(connection, "the request is malformed");
  return begin(connection, *request);
}

template <typename Request>
Begun Answer(HostConnection& connection, const Frame& frame,
             void (*answer)(HostConnection&, const Request&)) {
  const auto request = Decode<Request>(frame.payload);
  if (!request) return Refuse(connection, "the request is malformed");
  answer(connection, *request);
  return nullptr;
}

template <typename Request, typename Op>
Begun Make(HostConnection& connection, const Frame& frame) {
  return With<Request>(
      connection, frame, +[](HostConnection& of, const Request& request) -> Begun {
        return std::make_unique<Op>(of, request);
      });
}

Begun AnswerInfo(HostConnection& connection) {
  const Agent& agent = connection.agent();
  connection.SendMessage(FrameType::kInfoAnswer,
                         AgentInfo{CAISSON_VERSION, agent.boot_id, agent.self_port});
  connection.Finish();
  return nullptr;
}

Begun AnswerPing(HostConnection& connection) {
  connection.Send(FrameType::kOk, {});
  connection.Finish();
  return nullptr;
}

void Tell(HostConnection& connection, const Attempt<void>& attempt) {
  if (!attempt) return connection.Fail(attempt.error());
  connection.Send(FrameType::kOk, {});
  connection.Finish();
}

// What stands beside a virtual machine asks for these, and nobody else: a disk is mounted once, and
// a copy is renewed once.
Begun AnswerMountDisk(HostConnection& connection, const Frame& frame) {
  const auto request = Decode<MountDiskRequest>(frame.payload);
  if (!request) return Refuse(connection, "the request is malformed");
  if (connection.agent().has_disk) return Refuse(connection, "the disk is mounted already");
  const auto mounted = MountDisk(*request);
  connection.agent().has_disk = mounted.has_value();
  Tell(connection, mounted);
  return nullptr;
}

Begun AnswerRenew(HostConnection& connection, const Frame& frame) {
  const auto request = Decode<RenewRequest>(frame.payload);
  if (!request) return Refuse(connection, "the request is malformed");
  if (!connection.agent().has_disk) return Refuse(connection, "the disk is not mounted");
  const auto renewed = Renew(*request);
  if (renewed) connection.agent().Open();
  Tell(connection, renewed);
  return nullptr;
}

Begun AnswerIdentify(HostConnection& connection, const Frame& frame) {
  const auto request = Decode<IdentifyRequest>(frame.payload);
  if (!request) return Refuse(connection, "the request is malformed");
  const auto identified = Identify(*request);
  if (identified) connection.agent().BeginLife();
  Tell(connection, identified);
  return nullptr;
}

// Of a virtual machine; empty when the frame asks for something else.
bool AnswerForComputer(HostConnection& connection, const Frame& frame) {
  switch (frame.type) {
    case FrameType::kQuiesce:
      Tell(connection, Quiesce());
      return true;
    case FrameType::kThaw:
      if (const auto request = Decode<ThawRequest>(frame.payload)) {
        Tell(connection, Thaw(*request));
      } else {
        Refuse(connection, "the request is malformed");
      }
      return true;
    case FrameType::kGrowDisk:
      if (const auto request = Decode<GrowDiskRequest>(frame.payload)) {
        Tell(connection, GrowDisk(*request));
      } else {
        Refuse(connection, "the request is malformed");
      }
      return true;
    default:
      return false;
  }
}

}  // namespace

Begun BeginOperation(HostConnection& connection, const Frame& frame) {
  if (connection.agent().sealed) {
    if (frame.type == FrameType::kMountDisk) return AnswerMountDisk(connection, frame);
    if (frame.type == FrameType::kRenew) return AnswerRenew(connection, frame);
    return Refuse(connection, "this machine was copied, and is not renewed yet");
  }
  if (connection.agent().is_computer && AnswerForComputer(connection, frame)) return nullptr;
  if (Entrance* entrance = connection.agent().entrance; entrance != nullptr) {
    if (frame.type == FrameType::kIdentify) return AnswerIdentify(connection, frame);
    if (frame.type == FrameType::kLetGo) {
      Tell(connection, entrance->LetGo(&connection));
      return nullptr;
    }
  }
  switch (frame.type) {
    case FrameType::kPing:
      return AnswerPing(connection);
    case FrameType::kInfo:
      return AnswerInfo(connection);
    case FrameType::kExec:
      return Make<ExecRequest, ExecOperation>(connection, frame);
    case FrameType::kPut:
      return Make<PutRequest, PutOperation>(connection, frame);
    case FrameType::kList:
      return Make<ListRequest, ListOperation>(connection, frame);
    case FrameType::kGet:
      return Make<PathRequest, GetOperation>(connection, frame);
    case FrameType::kRemove:
      return With<RemoveRequest>(connection, frame, BeginRemove);
    case FrameType::kStat:
      return Answer<StatRequest>(connection, frame, AnswerStat);
    case FrameType::kProcessStart:
      return With<Command>(connection, frame, BeginProcessStart);
    case FrameType::kProcessList:
      AnswerProcessList(connection);
      return nullptr;
    case FrameType::kProcessGet:
      return Answer<ProcessRequest>(connection, frame, AnswerProcessGet);
    case FrameType::kProcessConnect:
      return With<ConnectRequest>(connection, frame, BeginProcessConnect);
    case FrameType::kProcessInput:
      return Answer<InputRequest>(connection, frame, AnswerProcessInput);
    case FrameType::kProcessCloseInput:
      return Answer<ProcessRequest>(connection, frame, AnswerProcessCloseInput);
    case FrameType::kProcessResize:
      return Answer<ResizeRequest>(connection, frame, AnswerProcessResize);
    case FrameType::kProcessSignal:
      return Answer<SignalRequest>(connection, frame, AnswerProcessSignal);
    case FrameType::kProcessWait:
      return With<WaitRequest>(connection, frame, BeginProcessWait);
    case FrameType::kProcessTerminate:
      return With<TerminateRequest>(connection, frame, BeginProcessTerminate);
    case FrameType::kDial:
      return With<DialRequest>(connection, frame, BeginDial);
    case FrameType::kWatch:
      return BeginWatch(connection);
    default:
      return Refuse(connection, "the connection begins with a frame that is no request");
  }
}

}  // namespace caisson::agent::guest
