// SPDX-License-Identifier: Apache-2.0
// Connections of machines that ask for names by TCP: takes their questions apart, sends answers in
// the order in which they are known. Machines share one table of them: when it is full, a new one
// takes the place of one of the machine that has most. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "egress/gate/loop.h"
#include "egress/gate/machines.h"
#include "egress/gate/places.h"
#include "os/fd.h"

namespace caisson::egress::gate {

class NameStreams {
 public:
  static constexpr std::size_t kMaxOfMachine = 16;
  static constexpr std::chrono::seconds kIdle{10};  // for the next question

  struct Connection;
  using ConnectionPointer = std::shared_ptr<Connection>;
  struct Asked {
    std::uint32_t machine = 0;
    std::uint16_t port = 0;  // its
    std::weak_ptr<Connection> connection;
  };
  // Must see to it that Answer or Drop is called once for each, now or later. False: the machine
  // asks too much, the connection is closed.
  using Take = std::function<bool(std::string_view message, Asked asked)>;

  NameStreams(Loop& loop, Machines& machines, std::size_t most, Take take)
      : loop_(loop), machines_(machines), most_(most), take_(std::move(take)) {}
  ~NameStreams();

  // Bound, non-blocking, listening.
  Result<void> Serve(os::UniqueFd listener);
  // A message for its connection, if that is still there.
  void Answer(const std::weak_ptr<Connection>& to, std::string_view message);
  // There will be no answer.
  void Drop(const std::weak_ptr<Connection>& to);
  // Closes those of a machine that is forgotten.
  void DropConnections(std::uint32_t machine);

 private:
  void Accept();
  void Begin(os::UniqueFd fd, std::uint32_t address, std::uint16_t port);
  void Ready(const ConnectionPointer& connection, std::uint32_t events);
  bool Read(const ConnectionPointer& connection);
  bool TakeMessages(const ConnectionPointer& connection);
  static bool Write(Connection& connection);
  void Rest(const ConnectionPointer& connection);
  void Close(const ConnectionPointer& connection);
  static ConnectionPointer Release(const std::weak_ptr<Connection>& connection);

  Loop& loop_;
  Machines& machines_;
  const std::size_t most_;
  const Take take_;
  os::UniqueFd listener_;
  Places<ConnectionPointer> connections_;
};

}  // namespace caisson::egress::gate
