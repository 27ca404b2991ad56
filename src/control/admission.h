// SPDX-License-Identifier: Apache-2.0
// Whether another sandbox fits: the tenant's quota, then the host, which tenants share fairly. Pure
// arithmetic over what the store says is in use; called inside the transaction that makes the row,
// so that two requests cannot both take the last place.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace caisson::control {

// What the host gives to sandboxes; store::kUnlimited where it does not matter.
struct HostCapacity {
  std::int64_t sandboxes = 1000;
  std::int64_t memory_mib = store::kUnlimited;  // sum of what sandboxes may use at most
  std::int64_t disk_mib = store::kUnlimited;
  std::int64_t least_free_memory_mib = 0;  // must be free now, beside what is committed
  std::int64_t least_free_disk_mib = 0;
};

struct HostNow {
  std::int64_t free_memory_mib = 0;
  std::int64_t free_disk_mib = 0;
};

// Fails with control.quota or control.full; the message says what is used up. Of several tenants
// each may take the host as long as one equal share stays free; what is left then goes only to
// those who have less than their share.
Result<void> Admit(const std::string& tenant, const store::Usage& wanted, const store::Quota& quota,
                   const std::map<std::string, store::Usage>& in_use, std::size_t tenants,
                   const HostCapacity& capacity, const HostNow& now);

}  // namespace caisson::control
