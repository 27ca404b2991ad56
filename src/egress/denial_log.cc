// SPDX-License-Identifier: Apache-2.0
#include "egress/denial_log.h"

#include <chrono>
#include <tuple>
#include <utility>

#include "egress/policy.h"

namespace caisson::egress {
namespace {

constexpr std::int64_t kInARow = 1000;  // milliseconds
constexpr std::uint64_t kNumbersPerMillisecond = 1000;

std::int64_t Now() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             system_clock::now().time_since_epoch())
      .count();
}

auto WhatOf(const Denial& denial) {
  return std::tie(denial.kind, denial.protocol, denial.address, denial.port, denial.name,
                  denial.rule, denial.why);
}

}  // namespace

// Beyond all that the processes before it can have given out; below 2^53, for readers of JSON.
DenialLog::DenialLog() : next_(static_cast<std::uint64_t>(Now()) * kNumbersPerMillisecond) {}

void DenialLog::Add(std::uint32_t machine, Denial denial, std::uint64_t suppressed) {
  const std::lock_guard lock(mutex_);
  Entries& entries = machines_[machine];
  entries.lost += suppressed;
  denial.time = Now();
  if (!entries.denials.empty()) {
    Denial& last = entries.denials.back();
    if (WhatOf(last) == WhatOf(denial) && denial.time - last.time < kInARow) {
      ++last.count;
      return;
    }
  }
  denial.number = ++next_;
  entries.denials.push_back(std::move(denial));
  if (entries.denials.size() <= kMaxDenials) return;
  entries.lost += entries.denials.front().count;
  entries.denials.pop_front();
}

void DenialLog::CountDenials(std::uint32_t machine, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  machines_[machine].by_gate += count;
}

void DenialLog::CountUse(std::uint32_t machine, const std::string& rule, std::uint64_t answers,
                         std::uint64_t connections) {
  const std::lock_guard lock(mutex_);
  auto& uses = machines_[machine].uses;
  if (uses.size() >= 2 * kMaxRules && !uses.contains(rule)) uses.clear();  // of policies long gone
  RuleUse& use = uses[rule];
  use.rule = rule;
  use.answers += answers;
  use.connections += connections;
}

NetworkLog DenialLog::Read(std::uint32_t machine, std::uint64_t after) const {
  const std::lock_guard lock(mutex_);
  NetworkLog log{.denials = {}, .last = next_, .rules = {}};
  const auto found = machines_.find(machine);
  if (found == machines_.end()) return log;
  const Entries& entries = found->second;
  for (const Denial& denial : entries.denials) {
    if (denial.number > after) log.denials.push_back(denial);
  }
  log.lost = entries.lost;
  log.refused_by_gate = entries.by_gate;
  for (const auto& [text, use] : entries.uses) log.rules.push_back(use);
  return log;
}

void DenialLog::Forget(std::uint32_t machine) {
  const std::lock_guard lock(mutex_);
  machines_.erase(machine);
}

}  // namespace caisson::egress
