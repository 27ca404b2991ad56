// SPDX-License-Identifier: Apache-2.0
// The agent's end of one operation: frames from and to the host. Nothing blocks: what the host does
// not read yet is kept, and whoever produces it waits until congested() is over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/frames.h"
#include "agent/guest/failure.h"
#include "agent/guest/loop.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

struct Agent;
class HostConnection;

// What a connection is for. Destroyed with the connection, or when it has finished: it then ends
// what it had begun.
class Operation {
 public:
  explicit Operation(HostConnection& connection) : connection_(connection) {}
  virtual ~Operation() = default;
  virtual void OnFrame(const Frame& frame);  // by default none is allowed
  virtual void OnSent() {}                   // congestion is over
  // Whether it reads payloads of this type from the socket by itself, where they have not come yet.
  virtual bool ReadsPayload(FrameType) const { return false; }
  // As read(2), of what is left of such a payload; what it then cannot do it tells by Fail.
  virtual ssize_t ReadPayload(int /*socket*/, std::size_t /*most*/) { return -1; }

 protected:
  HostConnection& connection_;
};

class HostConnection final : public Disposable {
 public:
  HostConnection(Agent& agent, os::UniqueFd fd);
  ~HostConnection() override;

  Agent& agent() { return agent_; }
  void Send(FrameType type, std::string_view payload);
  template <typename M>
  void SendMessage(FrameType type, const M& message) {
    Send(type, Encode(message));
  }
  // Not before the next turn, together with what is said until then; congested() until it is sent.
  void SendLater(FrameType type, std::string_view payload);
  bool congested() const { return sent_ < out_.size(); }
  // No frame comes until it is over.
  void PauseInput(bool pause);
  // Everything is said: the operation ends, and the connection when the host has heard it all.
  void Finish();
  void Fail(const Failure& failure);
  bool finished() const { return finished_; }

  // The stream goes on without frames, for somebody else; the connection ends. What has come beyond
  // the frames is `rest`.
  os::UniqueFd Release(std::string& rest);

 private:
  void OnEvents(std::uint32_t events);
  void Read();
  bool ReadOnce();
  bool ReadPayload();
  void Dispatch();
  void FlushOut();
  void WantWhatIsDue();
  void Close();

  Agent& agent_;
  std::unique_ptr<EventSource> source_;
  FrameReader reader_;
  std::unique_ptr<Operation> operation_;
  std::unique_ptr<Timer> linger_;
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t payload_left_ = 0;  // for the operation to read
  bool paused_ = false;
  bool finished_ = false;
  bool closed_ = false;
};

// The operation that a connection's first frame asks for; empty when it is finished already.
std::unique_ptr<Operation> BeginOperation(HostConnection& connection, const Frame& frame);

}  // namespace caisson::agent::guest
