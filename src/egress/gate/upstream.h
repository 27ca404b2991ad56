// SPDX-License-Identifier: Apache-2.0
// Questions to the resolvers of the host, for A records. Each attempt has a socket, a port and an
// id of its own and letters in random case, so that an answer cannot be guessed; what is no answer
// to it is passed over. A resolver that is silent, fails or says nonsense is left for the next one,
// a truncated answer is asked for again by TCP, a chain of CNAMEs that the resolver did not follow
// is followed. Whatever happens, there is an end within kPatience. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "egress/gate/loop.h"
#include "egress/gate_protocol.h"

namespace caisson::egress::gate {

struct Resolved {
  enum class What : std::uint8_t {
    kAddresses,
    kNone,    // the name is there and has no A records
    kNoName,  // there is no such name
    kFailed,  // no resolver says
  };
  What what = What::kFailed;
  std::vector<std::uint32_t> addresses;  // as they came: closed ones too
  std::uint32_t ttl_seconds = 0;
};

class Upstream {
 public:
  static constexpr std::chrono::milliseconds kPatience{2600};
  // Whom to ask, and when the next one is asked if this one is silent.
  static constexpr std::chrono::milliseconds kAttempts[] = {std::chrono::milliseconds(600),
                                                            std::chrono::milliseconds(700),
                                                            std::chrono::milliseconds(700)};

  using Done = std::function<void(const Resolved&)>;

  Upstream(Loop& loop, std::vector<GateConfigure::Server> servers);
  ~Upstream();

  // Descriptors of one look-up at once.
  static constexpr std::size_t kDescriptors = std::size(kAttempts);

  // `name`: IsGateName. Calls `done` once, later. The number of this look-up, which no other has.
  std::uint64_t Ask(const std::string& name, Done done);
  // `done` is not called any more. One that has ended is fine.
  void Forget(std::uint64_t number);
  std::size_t under_way() const { return lookups_.size(); }

 private:
  class Lookup;

  Loop& loop_;
  const std::vector<GateConfigure::Server> servers_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Lookup>> lookups_;
  std::uint64_t last_ = 0;
};

}  // namespace caisson::egress::gate
