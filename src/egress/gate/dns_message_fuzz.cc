// SPDX-License-Identifier: Apache-2.0
// Any bytes as a guest's question and as a resolver's answer: no crash, and what is taken keeps its
// promises.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/gate/dns_message.h"
#include "egress/gate_protocol.h"

namespace {

using namespace caisson::egress;
using namespace caisson::egress::gate;

void Require(bool holds) {
  if (!holds) std::abort();
}

void AsQuestion(std::string_view message) {
  const auto decoded = DecodeQuery(message);
  if (!decoded) return;
  const Query& query = decoded->query;
  Require(query.name.size() <= kMaxGateName);
  for (const std::size_t most : {RoomFor(query), kMaxTcpMessage}) {
    const std::string answer =
        EncodeAnswer(query, decoded->rcode, {0xcb00710a, 0xcb007114}, 60, most);
    Require(answer.size() <= most);
  }
  if (decoded->rcode != Rcode::kNoError || !query.is_plain || query.type != kTypeA) return;
  Require(!WireName(query.name).empty());
}

// The first bytes choose the question, so that answers to it can be found.
void AsAnswer(std::string_view bytes) {
  const std::string wire = WireName("a.test");
  const auto answer = DecodeAnswer(bytes, 0x4141, wire);
  if (!answer) return;
  Require(answer->addresses.size() <= kMaxPinned);
  Require(answer->addresses.empty() || !answer->last_name.empty());
  Require(answer->truncated || !answer->last_name.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  AsQuestion(bytes);
  AsAnswer(bytes);
  // The same bytes as the records of an answer whose beginning fits.
  std::string whole("\x41\x41\x81\x80\0\1\0\3\0\1\0\1", 12);
  whole += WireName("a.test");
  whole += std::string_view("\0\1\0\1", 4);
  whole += bytes;
  AsAnswer(whole);
  return 0;
}
