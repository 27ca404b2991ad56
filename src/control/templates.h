// SPDX-License-Identifier: Apache-2.0
// Templates: root file systems that tenants make with the restricted Dockerfile grammar. Each is
// built inside a machine of its own, with public addresses only, and kept as a snapshot of its
// disk, which sandboxes are then restored from. Two builds at a time. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "control/identity.h"
#include "control/sandboxes.h"
#include "images/dockerfile.h"
#include "store/store.h"

namespace caisson::control {

struct TemplateRequest {
  std::string name;
  std::string dockerfile;
  std::string base;    // empty, or what the Dockerfile says
  std::string driver;  // empty: the standard one
};

class Templates {
 public:
  explicit Templates(Sandboxes& sandboxes);
  // Builds that are under way are broken off; they begin anew with the next Templates.
  ~Templates();

  // Fails with control.unknown_driver, control.bad_template, images.dockerfile, control.quota,
  // control.name_taken.
  Result<store::Template> Create(const Caller& caller, const TemplateRequest& request);
  Result<std::vector<store::Template>> List(const Caller& caller);
  // By id or name.
  Result<store::Template> Get(const Caller& caller, const std::string& id_or_name);
  // Sandboxes that were made from it stay as they are.
  Result<void> Delete(const Caller& caller, const std::string& id_or_name);

  // Blocks until something of it may have changed, or `wait` is over.
  void AwaitChange(std::chrono::milliseconds wait);

 private:
  static constexpr int kBuilders = 2;

  void Tidy();
  void Build(const std::stop_token& stop);
  std::optional<store::Template> Take();
  Result<void> BuildOne(store::Template& row, const std::stop_token& stop);
  void Say(const store::Template& row, const std::string& level, std::string_view line);
  void Finish(const store::Template& row);
  Result<images::Dockerfile> Parse(const std::string& dockerfile);
  void Changed();

  Sandboxes& sandboxes_;
  store::Store& store_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::string> taken_;  // that a builder has
  std::vector<std::jthread> builders_;
};

}  // namespace caisson::control
