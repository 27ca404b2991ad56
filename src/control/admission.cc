// SPDX-License-Identifier: Apache-2.0
#include "control/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "errors/control.h"

namespace caisson::control {
namespace {

using store::kUnlimited;
using store::Usage;

struct Resource {
  const char* name;
  std::int64_t Usage::* of;
  std::int64_t store::Quota::* quota;
  std::int64_t HostCapacity::* capacity;  // nullptr: the host shares it by time
};

constexpr std::array<Resource, 4> kResources{{
    {"sandboxes", &Usage::sandboxes, &store::Quota::sandboxes, &HostCapacity::sandboxes},
    {"vCPUs", &Usage::vcpus, &store::Quota::vcpus, nullptr},
    {"MiB of memory", &Usage::memory_mib, &store::Quota::memory_mib, &HostCapacity::memory_mib},
    {"MiB of disk", &Usage::disk_mib, &store::Quota::disk_mib, &HostCapacity::disk_mib},
}};

Result<void> FitsQuota(const Resource& resource, std::int64_t used, std::int64_t wanted,
                       const store::Quota& quota) {
  const std::int64_t most = quota.*resource.quota;
  if (most == kUnlimited || used + wanted <= most) return {};
  return Fail(errors::kControlQuota,
              fmt::format("the tenant's quota is {} {}; {} are in use and {} more are asked for",
                          most, resource.name, used, wanted));
}

Result<void> FitsHost(const Resource& resource, std::int64_t own, std::int64_t all,
                      std::int64_t wanted, std::size_t tenants, std::int64_t most) {
  if (most == kUnlimited) return {};
  if (all + wanted > most) {
    return Fail(errors::kControlFull,
                fmt::format("the host is full: of {} {} {} are in use and {} more are asked for",
                            most, resource.name, all, wanted));
  }
  const std::int64_t share = most / static_cast<std::int64_t>(std::max<std::size_t>(tenants, 1));
  if (tenants < 2 || own + wanted <= share || all + wanted <= most - share) return {};
  return Fail(
      errors::kControlFull,
      fmt::format("the host is nearly full and what is left is kept for other tenants: this "
                  "one has {} {}, its share is {}",
                  own, resource.name, share));
}

}  // namespace

Result<void> Admit(const std::string& tenant, const Usage& wanted, const store::Quota& quota,
                   const std::map<std::string, Usage>& in_use, std::size_t tenants,
                   const HostCapacity& capacity, const HostNow& now) {
  const auto own = in_use.find(tenant);
  for (const Resource& resource : kResources) {
    const std::int64_t used = own == in_use.end() ? 0 : own->second.*resource.of;
    CAISSON_TRY(FitsQuota(resource, used, wanted.*resource.of, quota));
    if (resource.capacity == nullptr) continue;
    std::int64_t all = 0;
    for (const auto& [name, usage] : in_use) all += usage.*resource.of;
    CAISSON_TRY(
        FitsHost(resource, used, all, wanted.*resource.of, tenants, capacity.*resource.capacity));
  }
  if (now.free_memory_mib < capacity.least_free_memory_mib) {
    return Fail(errors::kControlFull,
                fmt::format("the host is full: {} MiB of memory are free, {} "
                            "are kept for what runs",
                            now.free_memory_mib, capacity.least_free_memory_mib));
  }
  if (now.free_disk_mib < capacity.least_free_disk_mib) {
    return Fail(errors::kControlFull,
                fmt::format("the host is full: {} MiB of disk are free, {} are kept for what runs",
                            now.free_disk_mib, capacity.least_free_disk_mib));
  }
  return {};
}

}  // namespace caisson::control
