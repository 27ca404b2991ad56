// SPDX-License-Identifier: Apache-2.0
// What a machine is made from, checked, and in the form that records and the helper's protocol
// share.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "egress/policy.h"
#include "json/value.h"
#include "machine/driver.h"

namespace caisson::machine {

// Its rules. PolicyFromJson fails with machine.invalid, and as egress::Policy::Parse; it takes
// rules by name: whether they are enforced is the driver's to say.
json::Value ToJson(const egress::Policy& policy);
Result<egress::Policy> PolicyFromJson(const json::Value& value);

// What a machine is made from, in the form that the record and the helper's protocol share.
json::Value ToJson(const MachineSpec& spec);
// Fails with machine.invalid (naming the field) and as egress::Policy::Parse.
Result<MachineSpec> SpecFromJson(const json::Value& value);

// null: no cap. Fails with machine.invalid.
json::Value ToJson(const SentCap& cap);
Result<SentCap> SentCapFromJson(const json::Value& value);

// Their ids, sorted. SharedNetworksFromJson and CheckSharedNetworks fail with machine.invalid.
json::Value ToJson(const std::set<std::string>& networks);
Result<std::set<std::string>> SharedNetworksFromJson(const json::Value& value);
Result<void> CheckSharedNetworks(const std::set<std::string>& networks);

// [a-z0-9-]{1,40}
bool IsValidId(std::string_view id);
// Everything that MachineSpec promises; a host name that is empty becomes the id.
Result<void> CheckSpec(MachineSpec& spec);

}  // namespace caisson::machine
