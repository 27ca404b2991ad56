// SPDX-License-Identifier: Apache-2.0
#include "host/node_host.h"

#include <algorithm>
#include <utility>

#include "errors/host.h"

namespace caisson::host {
namespace {

std::unexpected<Status> UnknownType(const std::string& type, const std::string& package) {
  return Fail(errors::kHostUnknownType, "the node host (" + package + ") has no node type '" +
                                            type +
                                            "'; take it off the list of types, or install "
                                            "what provides it");
}

}  // namespace

Result<std::unique_ptr<NodeHost>> NodeHost::Start(NodeHostOptions options) {
  std::unique_ptr<NodeHost> host(new NodeHost(std::move(options)));
  CAISSON_ASSIGN(auto opened, host->Open());
  host->connection_ = std::move(opened.first);
  CAISSON_TRY(host->Learn(std::move(opened.second)));
  return host;
}

Result<void> NodeHost::Learn(Hello hello) {
  package_ = hello.package;
  std::map<std::string, ServedType, std::less<>> there;
  for (ServedType& type : hello.types) {
    std::string name = type.name;
    there.insert_or_assign(std::move(name), std::move(type));
  }
  if (options_.all_types) {
    std::erase_if(there, [](const auto& entry) { return entry.second.restricted; });
    served_ = std::move(there);
    return {};
  }
  for (const std::string& name : options_.types) {
    const auto found = there.find(name);
    if (found == there.end()) return UnknownType(name, package_);
    if (found->second.restricted) {
      return Fail(errors::kHostRestrictedType,
                  "the node type '" + name +
                      "' is marked restricted for untrusted authors, and "
                      "the node host does not serve it in restricted mode; take it off the list");
    }
    served_.insert_or_assign(name, found->second);
  }
  return {};
}

std::vector<std::string> NodeHost::types() const {
  std::vector<std::string> names;
  names.reserve(served_.size());
  for (const auto& [name, type] : served_) names.push_back(name);
  return names;
}

const ServedType* NodeHost::Find(std::string_view type) const {
  const auto found = served_.find(type);
  return found == served_.end() ? nullptr : &found->second;
}

Result<std::pair<std::shared_ptr<Connection>, Hello>> NodeHost::Open() {
  const auto now = std::chrono::steady_clock::now();
  while (!starts_.empty() && now - starts_.front() > options_.start_window) starts_.pop_front();
  if (starts_.size() >= options_.max_starts) {
    return Fail(errors::kHostGaveUp, "the node host was started " + std::to_string(starts_.size()) +
                                         " times within " +
                                         std::to_string(options_.start_window.count()) +
                                         " ms and ended each time; it is not started again yet");
  }
  starts_.push_back(now);
  auto connection = std::make_shared<Connection>(options_.connection);
  CAISSON_ASSIGN(Hello hello, connection->Start());
  return std::pair{std::move(connection), std::move(hello)};
}

Result<std::shared_ptr<Connection>> NodeHost::Connected() {
  const std::lock_guard lock(mutex_);
  if (connection_ != nullptr && !connection_->ended()) return connection_;
  connection_.reset();
  CAISSON_ASSIGN(auto opened, Open());
  connection_ = std::move(opened.first);
  return connection_;
}

Result<void> NodeHost::Check(const std::string& type, const std::string& node,
                             const json::Value& config) {
  CAISSON_ASSIGN(const std::shared_ptr<Connection> connection, Connected());
  return connection->Check(type, node, config);
}

std::expected<json::Value, Failure> NodeHost::Run(const Call& call, Waiter& waiter) {
  if (Find(call.type) == nullptr) {
    return std::unexpected(Failure{UnknownType(call.type, package_).error()});
  }
  auto connection = Connected();
  if (!connection) return std::unexpected(Failure{std::move(connection).error()});
  return (*connection)->Run(call, waiter);
}

}  // namespace caisson::host
