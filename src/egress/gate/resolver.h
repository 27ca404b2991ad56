// SPDX-License-Identifier: Apache-2.0
// Answers the questions of machines for names, by UDP and TCP: those that their rules allow, with
// the public addresses that the host's resolvers know, once the packet filter has opened them. All
// other questions are answered at once, without asking anybody: no question of a guest leaves this
// host but for a name that it is allowed. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "egress/gate/dns_message.h"
#include "egress/gate/loop.h"
#include "egress/gate/machines.h"
#include "egress/gate/upstream.h"
#include "os/fd.h"

namespace caisson::egress::gate {

class Resolver {
 public:
  static constexpr std::size_t kMaxLookups = 1024;
  static constexpr std::size_t kMaxLookupsOfMachine = 64;
  static constexpr std::size_t kMaxWaiting = 16;  // questions for one name of one machine
  static constexpr std::size_t kMaxConnections = 512;
  static constexpr std::size_t kMaxConnectionsOfMachine = 16;
  static constexpr std::chrono::seconds kIdleConnection{10};

  // What became of the wish to open addresses.
  enum class PinEnd : std::uint8_t { kDone, kRefused, kNoAnswer };
  using Pinned = std::function<void(PinEnd end)>;
  // Asks the helper; calls back once, later.
  using PinRequest = std::function<void(Machine&, const std::string& name, std::uint32_t seconds,
                                        const std::vector<std::uint32_t>& addresses, Pinned)>;

  Resolver(Loop& loop, Machines& machines, Upstream& upstream, PinRequest pin)
      : loop_(loop), machines_(machines), upstream_(upstream), pin_(std::move(pin)) {}
  ~Resolver();

  // Both bound, non-blocking; `stream` listening.
  Result<void> Serve(os::UniqueFd datagrams, os::UniqueFd stream);
  // Closes the connections of a machine that is forgotten.
  void DropConnections(std::uint32_t machine);

 private:
  struct Connection;
  // Where an answer goes.
  struct Asker {
    Query query;
    std::uint32_t machine = 0;
    std::uint16_t port = 0;
    std::uint32_t asked = 0;               // our address, by UDP
    std::weak_ptr<Connection> connection;  // by TCP
    bool by_tcp = false;
  };
  struct Lookup {
    std::vector<Asker> askers;
  };
  using LookupKey = std::pair<std::uint32_t, std::string>;

  void ReceiveDatagrams();
  void Accept();
  void Ready(const std::shared_ptr<Connection>& connection, std::uint32_t events);
  bool ReadConnection(const std::shared_ptr<Connection>& connection);
  bool WriteConnection(const std::shared_ptr<Connection>& connection);
  void Close(const std::shared_ptr<Connection>& connection);
  void Rest(const std::shared_ptr<Connection>& connection);

  void Handle(std::string_view message, Asker asker);
  void Decide(Machine& machine, Asker asker);
  void LookUp(Machine& machine, Asker asker);
  void Resolve(const LookupKey& key, const Resolved& resolved);
  void PinThese(Machine& machine, const LookupKey& key, std::uint32_t seconds,
                const std::vector<std::uint32_t>& addresses);
  void AnswerAll(const LookupKey& key, Rcode rcode, const Pin* pin);
  std::shared_ptr<Connection> Release(const Asker& asker);
  void Drop(const Asker& asker);
  void Answer(const Asker& asker, Rcode rcode, const Pin* pin = nullptr);
  void Deny(Machine& machine, const Asker& asker, GateDenialKind kind, const NameRule* rule,
            Rcode rcode);

  Loop& loop_;
  Machines& machines_;
  Upstream& upstream_;
  const PinRequest pin_;
  os::UniqueFd datagrams_;
  os::UniqueFd stream_;
  std::map<LookupKey, Lookup> lookups_;
  std::map<int, std::shared_ptr<Connection>> connections_;
};

}  // namespace caisson::egress::gate
