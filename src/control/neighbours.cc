// SPDX-License-Identifier: Apache-2.0
#include "control/neighbours.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "agent/client.h"
#include "errors/agent.h"

namespace caisson::control {
namespace {

constexpr std::size_t kTellers = 4;
constexpr std::size_t kMostOfFile = 256u << 10;
constexpr std::string_view kBegin = "# caisson: networks\n";
constexpr std::string_view kEnd = "# caisson: end\n";
constexpr std::string_view kDomain = "fc.local";

Result<std::string> ReadHosts(machine::Driver& driver, const std::string& id,
                              const std::string& file) {
  CAISSON_ASSIGN(os::UniqueFd connection, driver.Connect(id));
  auto download = agent::Download::Start(std::move(connection), file);
  if (!download && download.error().code == errors::kAgentNotFound) return std::string();
  if (!download) return Fail(std::move(download).error());
  std::string text;
  while (true) {
    CAISSON_ASSIGN(const std::string_view piece, download->Next());
    if (piece.empty()) return text;
    if (text.size() + piece.size() > kMostOfFile) {
      return Fail(errors::kAgentProtocol, file + " of the machine is too large for more lines");
    }
    text += piece;
  }
}

Result<void> WriteHosts(machine::Driver& driver, const std::string& id, const std::string& file,
                        const std::string& text) {
  CAISSON_ASSIGN(os::UniqueFd connection, driver.Connect(id));
  CAISSON_ASSIGN(agent::Upload upload,
                 agent::Upload::Start(std::move(connection), {.path = file, .mode = {}}));
  CAISSON_TRY(upload.Write(text));
  CAISSON_TRY(upload.Commit());
  return {};
}

Result<void> WriteNeighbours(machine::Driver& driver, const std::string& id,
                             const std::string& file, const std::string& lines) {
  CAISSON_ASSIGN(const std::string before, ReadHosts(driver, id, file));
  const std::string after = WithNeighbours(before, lines);
  if (after == before) return {};
  return WriteHosts(driver, id, file, after);
}

}  // namespace

Result<NeighbourLines> ReadNeighbours(store::Rows& rows, const std::optional<std::string>& tenant) {
  std::vector<std::string> tenants;
  if (tenant) {
    tenants.push_back(*tenant);
  } else {
    CAISSON_ASSIGN(const auto all, rows.Tenants());
    for (const store::Tenant& each : all) tenants.push_back(each.id);
  }
  // Of each member: by address, the names that stand for it.
  std::map<std::string, std::map<std::string, std::set<std::string>>> known;
  for (const std::string& each : tenants) {
    CAISSON_ASSIGN(const auto networks, rows.Networks(each));
    for (const store::Network& network : networks) {
      CAISSON_ASSIGN(const auto members, rows.Members(network.id));
      for (const store::Sandbox& member : members) {
        if (member.ip.empty()) continue;
        auto& names_of = known[member.id];
        for (const store::Sandbox& other : members) {
          if (other.ip.empty()) continue;
          names_of[other.ip].insert({fmt::format("{}.{}", other.name, kDomain),
                                     fmt::format("{}.{}.{}", other.name, network.name, kDomain),
                                     fmt::format("{}.{}", other.id, kDomain)});
        }
      }
    }
  }
  NeighbourLines lines;
  for (const auto& [id, names_of] : known) {
    std::string& text = lines[id];
    for (const auto& [address, names] : names_of) {
      text += address;
      for (const std::string& name : names) text += " " + name;
      text += "\n";
    }
  }
  return lines;
}

std::string WithNeighbours(std::string_view file, std::string_view lines) {
  std::string text(file);
  for (std::size_t begin = text.find(kBegin); begin != std::string::npos;
       begin = text.find(kBegin, begin)) {
    const std::size_t end = text.find(kEnd, begin);
    // Without its end, which somebody has taken away, it is one line.
    text.erase(begin, end == std::string::npos ? kBegin.size() : end + kEnd.size() - begin);
  }
  if (lines.empty()) return text;
  if (!text.empty() && !text.ends_with('\n')) text += "\n";
  return text.append(kBegin).append(lines).append(kEnd);
}

Neighbours::Neighbours(store::Store& store, const Drivers& drivers, std::string host,
                       std::string file)
    : store_(store),
      drivers_(drivers),
      host_(std::move(host)),
      file_(std::move(file)),
      chores_(kTellers) {}

bool Neighbours::Knows(const std::string& id, const std::string& lines) {
  const std::lock_guard lock(mutex_);
  const auto found = told_.find(id);
  return found == told_.end() ? lines.empty() : found->second == lines;
}

void Neighbours::TellOne(const store::Sandbox& sandbox, const std::string& lines) {
  const KeyedLocks::Held held(locks_, sandbox.id);  // what is known is what is in the file
  if (!WriteNeighbours(drivers_.Of(sandbox.driver), sandbox.id, file_, lines)) return;
  const std::lock_guard lock(mutex_);
  if (lines.empty()) {
    told_.erase(sandbox.id);
  } else {
    told_[sandbox.id] = lines;
  }
}

void Neighbours::Begin(const std::optional<std::string>& tenant) {
  NeighbourLines lines;
  auto rows = store_.Read([&](store::Rows& store_rows) -> Result<std::vector<store::Sandbox>> {
    CAISSON_ASSIGN(lines, ReadNeighbours(store_rows, tenant));
    store::SandboxFilter filter{.host = host_, .states = {store::SandboxState::kRunning}};
    if (tenant) filter.tenant = *tenant;
    return store_rows.Sandboxes(filter);
  });
  if (!rows) {
    changed_ = true;
    return;
  }
  for (const store::Sandbox& row : *rows) {
    if (Knows(row.id, lines[row.id])) continue;
    if (!drivers_.Of(row.driver).capabilities().shared_networks) continue;
    chores_.Start(row.id, [this, row, text = lines[row.id]] { TellOne(row, text); });
  }
}

void Neighbours::Tell(bool again) {
  if (!changed_.exchange(false) && !again) return;
  Begin(std::nullopt);
}

void Neighbours::TellTenant(const store::Sandbox& first) {
  auto lines = store_.Read(
      [&](store::Rows& rows) { return ReadNeighbours(rows, std::optional(first.tenant)); });
  if (lines && first.state == store::SandboxState::kRunning) TellOne(first, (*lines)[first.id]);
  Begin(first.tenant);
  changed_ = true;  // whoever was being told something else meanwhile
}

}  // namespace caisson::control
