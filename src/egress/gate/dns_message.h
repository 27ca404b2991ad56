// SPDX-License-Identifier: Apache-2.0
// DNS messages (RFC 1035, 6891): questions of guests and answers of resolvers, as far as the gate
// needs them. Strict: what is not plain is refused, never mended. Our own and no library, because
// what is taken as an answer *for a name* is the policy; no input or output here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress::gate {

enum DnsType : std::uint16_t {
  kTypeA = 1,
  kTypeCname = 5,
  kTypePtr = 12,
  kTypeAaaa = 28,
  kTypeOpt = 41,
  kTypeSvcb = 64,
  kTypeHttps = 65,
};
enum class Rcode : std::uint8_t {
  kNoError = 0,
  kFormat = 1,
  kServerFailure = 2,
  kNoName = 3,
  kNotImplemented = 4,
  kRefused = 5,
  kBadVersion = 16,
};

inline constexpr std::size_t kMaxPlainMessage = 512;  // by UDP, without EDNS
inline constexpr std::size_t kMaxUdpMessage = 1232;   // fits into any path unfragmented
inline constexpr std::size_t kMaxTcpMessage = 65535;

// --- a guest's question ---

struct Query {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  std::string question;  // as it came, for the answer: name, type, class; empty if none was read
  std::string name;      // lower case, without a dot at the end; unprintable bytes are "?"
  bool is_plain =
      false;  // nothing but letters, digits, - and _ in labels: `name` is the whole truth
  std::uint16_t type = 0;
  std::uint16_t record_class = 0;
  std::optional<std::size_t> udp_size;  // what the guest takes, when it speaks EDNS
};
struct DecodedQuery {
  Query query;
  Rcode rcode = Rcode::kNoError;  // else the answer that it gets for its form
};
// Empty: no answer, since it is none of a question (an answer, or shorter than a header).
std::optional<DecodedQuery> DecodeQuery(std::string_view message);

// The answer to `query`, of at most `most` bytes; addresses that find no room are left out, and the
// number of those told is their order in `addresses`.
std::string EncodeAnswer(const Query& query, Rcode rcode,
                         const std::vector<std::uint32_t>& addresses, std::uint32_t ttl_seconds,
                         std::size_t most);
// What the guest takes by UDP.
std::size_t RoomFor(const Query& query);

// --- a resolver's answer ---

// A name as it stands in a message, in lower case: lengths and labels, with the empty one at its
// end. Empty when `name` (dotted) is none.
std::string WireName(std::string_view name);

// A question for the A records of `wire_name`, its letters in whatever case, with recursion.
std::string EncodeQuestion(std::uint16_t id, std::string_view wire_name, bool with_edns);

struct Answer {
  Rcode rcode = Rcode::kNoError;
  bool truncated = false;
  std::vector<std::uint32_t> addresses;  // each once, at most kMaxPinned
  std::uint32_t ttl_seconds = 0;         // the least of those on the way
  std::string last_name;                 // on the wire: where the chain of CNAMEs ends
};
// The answer to EncodeQuestion(id, wire_name): A records of the name that the chain of CNAMEs from
// `wire_name` leads to; records of other names are nothing to us. Empty when it is none to that
// question (another id, question, letters in another case) or is malformed anywhere.
std::optional<Answer> DecodeAnswer(std::string_view message, std::uint16_t id,
                                   std::string_view wire_name);

}  // namespace caisson::egress::gate
