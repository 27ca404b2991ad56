// SPDX-License-Identifier: Apache-2.0
// Answers the questions of machines for names, by UDP and TCP: those that their rules allow, with
// the public addresses that the host's resolvers know, once the packet filter has opened them. All
// other questions are answered at once, without asking anybody: no question of a guest leaves this
// host but for a name that it is allowed. Machines share one table of look-ups: when it is full,
// as while the host's resolvers are silent, a new one takes the place of the oldest of the machine
// that has most. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egress/gate/dns_message.h"
#include "egress/gate/loop.h"
#include "egress/gate/machines.h"
#include "egress/gate/name_streams.h"
#include "egress/gate/places.h"
#include "egress/gate/upstream.h"
#include "os/fd.h"

namespace caisson::egress::gate {

struct ResolverOptions {
  std::size_t max_lookups = 1024;
  std::size_t max_connections = 512;  // by TCP
};

class Resolver {
 public:
  static constexpr std::size_t kMaxLookupsOfMachine = 64;
  static constexpr std::size_t kMaxWaiting = 16;  // questions for one name of one machine

  // Those of the wished addresses that are open now; none: the name is not to be had. No answer:
  // it may be asked for again.
  using Opened = std::optional<std::vector<std::uint32_t>>;
  using Pinned = std::function<void(Opened opened)>;
  // Asks the helper; calls back once, later.
  using PinRequest = std::function<void(Machine&, const std::string& name, std::uint32_t seconds,
                                        const std::vector<std::uint32_t>& addresses, Pinned)>;

  Resolver(Loop& loop, Machines& machines, Upstream& upstream, PinRequest pin,
           const ResolverOptions& options);
  ~Resolver();

  // Both bound, non-blocking; `stream` listening.
  Result<void> Serve(os::UniqueFd datagrams, os::UniqueFd stream);
  // Drops all of a machine; what it still waits for gets no answer.
  void Forget(std::uint32_t machine);

 private:
  // Where an answer goes.
  struct Asker {
    Query query;
    std::uint32_t machine = 0;
    std::uint16_t port = 0;
    std::uint32_t asked = 0;                            // our address, by UDP
    std::weak_ptr<NameStreams::Connection> connection;  // by TCP
    bool by_tcp = false;
  };
  using LookupKey = std::pair<std::uint32_t, std::string>;
  struct Lookup {
    std::uint64_t number = 0;  // a later one for the same name has another
    std::vector<Asker> askers;
    Places<LookupKey>::Place place;
  };

  void ReceiveDatagrams();
  bool Handle(std::string_view message, Asker asker);
  void Decide(Machine& machine, Asker asker);
  void LookUp(Machine& machine, Asker asker);
  bool FindPlace(const Machine& machine);
  void Resolve(const LookupKey& key, const Resolved& resolved);
  void PinThese(Machine& machine, const LookupKey& key, std::uint32_t seconds,
                const std::vector<std::uint32_t>& addresses);
  void FinishPin(const LookupKey& key, std::uint64_t number, Pin pin, Opened opened);
  void AnswerAll(const LookupKey& key, Rcode rcode, const Pin* pin);
  void Drop(const Asker& asker);
  void Answer(const Asker& asker, Rcode rcode, const Pin* pin = nullptr);
  void Deny(Machine& machine, const Asker& asker, GateDenialKind kind, const NameRule* rule,
            Rcode rcode);

  Loop& loop_;
  Machines& machines_;
  Upstream& upstream_;
  const PinRequest pin_;
  const ResolverOptions options_;
  os::UniqueFd datagrams_;
  NameStreams streams_;
  std::map<LookupKey, Lookup> lookups_;
  Places<LookupKey> places_;  // of them
};

}  // namespace caisson::egress::gate
