// SPDX-License-Identifier: Apache-2.0
// What can be asked of sandboxes (control/sandboxes.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "machine/driver.h"

namespace caisson::control {

struct CreateRequest {
  std::string shape;
  std::string rootfs;  // empty: the default
  std::string driver;  // empty: that of the template, else the standard one
  std::string name;    // empty: one is made
  std::int64_t disk_mib = 0;
  std::vector<std::string> egress;
  std::map<std::string, std::string> envs;
  std::vector<std::string> networks;  // ids or names
  std::map<std::string, std::string> labels;
  bool ingress_enabled = false;
  bool ingress_token = false;
  bool ingress_wakes = false;  // a preview request resumes it
  std::optional<std::int64_t> auto_pause_seconds;
  std::optional<std::int64_t> delete_after_seconds;
  std::int64_t bandwidth_quota = 0;
  std::string region;
  std::string host;
  std::string pool;  // take it from this pool of the tenant's, which says all but name, labels,
                     // auto-pause and the time of deletion; empty: none
};

struct ForkRequest {  // absent: as the parent
  bool start_paused = false;
  std::string name;
  std::string driver;                             // empty, or the parent's
  machine::Extent most = machine::Extent::kFull;  // of the parent; as far as the driver can
  std::optional<std::vector<std::string>> egress;
  std::optional<std::map<std::string, std::string>> envs;
  std::optional<std::map<std::string, std::string>> labels;
  std::optional<bool> ingress_enabled;
  std::optional<std::int64_t> bandwidth_quota;
};

struct PatchRequest {
  std::optional<bool> ingress_enabled;
  std::optional<bool> ingress_token;  // true: a new one, false: none
  std::optional<bool> ingress_wakes;
  std::optional<std::int64_t> auto_pause_seconds;
  bool disable_auto_pause = false;
  std::optional<std::map<std::string, std::string>> labels;
  std::optional<std::int64_t> delete_after_seconds;  // from now; 0: never
};

// A request that may come twice; an empty key means that it may not.
struct Repeatable {
  std::string key;
  std::string fingerprint;
};

}  // namespace caisson::control
