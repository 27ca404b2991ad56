// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/limits.h"

#include <gtest/gtest.h>

#include "egress/gate/proxy.h"
#include "egress/gate/resolver.h"

namespace caisson::egress::gate {
namespace {

const Limits kWished = {.flows = ProxyOptions().max_flows,
                        .flows_of_machine = ProxyOptions().max_flows_of_machine,
                        .lookups = ResolverOptions().max_lookups,
                        .name_streams = ResolverOptions().max_connections};

TEST(Limits, all_tables_that_are_full_find_their_descriptors) {
  for (const std::size_t descriptors : {0, 100, 256, 1024, 4096, 10000, 16384, 1 << 20}) {
    const Limits limits = LimitsFor(descriptors, kWished);
    const std::size_t used = limits.flows * kDescriptorsOfFlow +
                             limits.lookups * Upstream::kDescriptors + limits.name_streams +
                             2 * Pipes::kKept + kOtherDescriptors;
    EXPECT_LE(used, std::max<std::size_t>(descriptors, 2 * Pipes::kKept + kOtherDescriptors));
    EXPECT_LE(limits.flows_of_machine, limits.flows / 2) << "no machine may have all";
    if (descriptors < 1024) continue;
    EXPECT_GE(limits.lookups, 64u) << descriptors;
    EXPECT_GE(limits.name_streams, 16u) << descriptors;
    EXPECT_GE(limits.flows, 64u) << descriptors;
  }
}

TEST(Limits, are_those_that_are_promised_where_descriptors_suffice) {
  const Limits limits = LimitsFor(16384, kWished);
  EXPECT_EQ(limits.flows, 2048u);
  EXPECT_EQ(limits.flows_of_machine, 512u);
  EXPECT_EQ(limits.lookups, 1024u);
  EXPECT_EQ(limits.name_streams, 512u);
}

}  // namespace
}  // namespace caisson::egress::gate
