// SPDX-License-Identifier: Apache-2.0
// A provider whose nodes run in a process of its own: `PYTHON -m caisson_orcheo`, say. The process
// is started once to learn what it serves, and again for the next call when it has ended, but not
// more than a few times a minute.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "host/connection.h"
#include "host/provider.h"

namespace caisson::host {

struct NodeHostOptions {
  ConnectionOptions connection;
  // What it may serve; with `all_types` everything but the restricted types that it has.
  std::vector<std::string> types;
  bool all_types = false;
  std::size_t max_starts = 5;  // within `start_window`
  std::chrono::milliseconds start_window{60'000};
};

class NodeHost final : public Provider {
 public:
  // Starts the process and compares what it has with what it is to serve. Fails as
  // Connection::Start does, with host.unknown_type or host.restricted_type.
  static Result<std::unique_ptr<NodeHost>> Start(NodeHostOptions options);

  const std::string& package() const { return package_; }
  std::vector<std::string> types() const;

  const ServedType* Find(std::string_view type) const override;
  Result<void> Check(const std::string& type, const std::string& node,
                     const json::Value& config) override;
  std::expected<json::Value, Failure> Run(const Call& call, Waiter& waiter) override;

 private:
  explicit NodeHost(NodeHostOptions options) : options_(std::move(options)) {}
  Result<void> Learn(Hello hello);
  // One that has not ended, started if need be.
  Result<std::shared_ptr<Connection>> Connected();
  Result<std::pair<std::shared_ptr<Connection>, Hello>> Open();

  const NodeHostOptions options_;
  std::string package_;
  std::map<std::string, ServedType, std::less<>> served_;
  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  std::deque<std::chrono::steady_clock::time_point> starts_;
};

}  // namespace caisson::host
