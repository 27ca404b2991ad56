// SPDX-License-Identifier: Apache-2.0
#include "control/templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "control/plan.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "control/template_build.h"
#include "errors/control.h"
#include "errors/store.h"
#include "json/writer.h"

namespace caisson::control {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTemplatePrefix = "tpl-";
constexpr std::size_t kMaxName = 63;
constexpr auto kLook = 5s;
// What the peer calls its bases.
constexpr const char* kDebianBase = "nodeops/sandbox:debian";

bool IsTemplateName(std::string_view name) {
  auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxName && is_inner(name.front()) &&
         name.front() != '-' && name.front() != '.' && std::ranges::all_of(name, is_inner);
}

machine::MachineSpec BuilderSpec(const std::string& id, const std::string& image) {
  machine::MachineSpec spec;
  spec.id = id;
  spec.host_name = "builder";
  spec.image = image;
  spec.cpus = 2;
  spec.memory_bytes = 2ull << 30;
  spec.disk_bytes = static_cast<std::uint64_t>(kTemplateDiskMib) << 20;
  spec.pids = 4096;
  spec.network = egress::Policy::PublicOnly();
  return spec;
}

}  // namespace

Templates::Templates(Sandboxes& sandboxes) : sandboxes_(sandboxes), store_(sandboxes.store()) {
  Tidy();
  for (int i = 0; i < kBuilders; ++i) {
    builders_.emplace_back([this](const std::stop_token& stop) { Build(stop); });
  }
}

// Snapshots of templates that were deleted, or whose build was broken off.
void Templates::Tidy() {
  const auto rows = store_.Read([](store::Rows& all) { return all.Templates(std::nullopt); });
  if (!rows) return;
  for (const std::string& name : sandboxes_.drivers().names()) {
    machine::Driver& driver = sandboxes_.drivers().Of(name);
    if (driver.capabilities().snapshot == machine::Extent::kNone) continue;
    const auto snapshots = driver.ListSnapshots();
    if (!snapshots) continue;
    for (const machine::Snapshot& snapshot : *snapshots) {
      const bool is_known = std::ranges::any_of(*rows, [&](const store::Template& row) {
        return row.id == snapshot.id && row.driver == name;
      });
      if (snapshot.id.starts_with(kTemplatePrefix) && !is_known) {
        static_cast<void>(driver.RemoveSnapshot(snapshot.id));
      }
    }
  }
}

Templates::~Templates() {
  for (std::jthread& builder : builders_) builder.request_stop();
}

void Templates::Changed() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Templates::AwaitChange(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait);
}

Result<images::Dockerfile> Templates::Parse(const std::string& dockerfile) {
  images::DockerfileOptions options;
  CAISSON_ASSIGN(const auto catalogue, sandboxes_.Catalogue());
  for (const RootImage& image : catalogue) {
    options.images[image.name] = image.image;
    if (image.name == sandboxes_.options().default_rootfs)
      options.images[kDebianBase] = image.image;
  }
  return images::ParseDockerfile(dockerfile, options);
}

Result<store::Template> Templates::Create(const Caller& caller, const TemplateRequest& request) {
  const auto& [name, dockerfile, base, driver] = request;
  if (!IsTemplateName(name)) {
    return FailAt("name", errors::kControlBadTemplate,
                  "a name has 1 to 63 characters of a-z, 0-9 and ._-, the first a letter or digit");
  }
  auto parsed = Parse(dockerfile);
  if (!parsed) {
    std::string message = parsed.error().message;
    if (!parsed.error().details.empty()) message += "\n" + parsed.error().details;
    return FailAt("dockerfile", errors::kControlBadTemplate, std::move(message));
  }
  if (!base.empty() && base != parsed->from) {
    return FailAt("base", errors::kControlBadTemplate,
                  fmt::format("the Dockerfile says FROM {}", parsed->from));
  }
  const Drivers& drivers = sandboxes_.drivers();
  if (!driver.empty() && !drivers.Has(driver)) {
    return FailAt("driver", errors::kControlUnknownDriver,
                  fmt::format("there is no driver '{}' here; this server has {}",
                              driver.substr(0, 64), fmt::join(drivers.names(), ", ")));
  }
  const Milliseconds now = sandboxes_.options().now();
  store::Template row{.id = kTemplatePrefix + MakeUlid(now),
                      .tenant = caller.tenant,
                      .name = name,
                      .base = parsed->from,
                      .driver = driver.empty() ? drivers.standard() : driver,
                      .dockerfile = dockerfile,
                      .created_at = now};
  CAISSON_TRY(store_.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto tenant, rows.FindTenant(caller.tenant));
    CAISSON_ASSIGN(const auto all, rows.Templates(caller.tenant));
    const std::int64_t most = tenant ? tenant->quota.templates : 0;
    if (most != store::kUnlimited && static_cast<std::int64_t>(all.size()) >= most) {
      return Fail(errors::kControlQuota, fmt::format("the tenant's quota is {} templates", most));
    }
    auto inserted = rows.InsertTemplate(row);
    if (!inserted && inserted.error().code == errors::kStoreConflict) {
      return Fail(errors::kControlNameTaken,
                  fmt::format("there is a template {} already; delete it first", name));
    }
    return inserted;
  }));
  Changed();
  return row;
}

Result<std::vector<store::Template>> Templates::List(const Caller& caller) {
  return store_.Read([&](store::Rows& rows) { return rows.Templates(caller.tenant); });
}

Result<store::Template> Templates::Get(const Caller& caller, const std::string& id_or_name) {
  CAISSON_ASSIGN(auto row, store_.Read([&](store::Rows& rows) {
    return rows.FindTemplate(caller.tenant, id_or_name);
  }));
  if (row) return *std::move(row);
  return Fail(errors::kControlNotFound, "there is no template " + id_or_name.substr(0, 64));
}

Result<void> Templates::Delete(const Caller& caller, const std::string& id_or_name) {
  CAISSON_ASSIGN(const store::Template row, Get(caller, id_or_name));
  // A build that is under way finds no row at its end and removes what it made.
  CAISSON_TRY(store_.Write([&](store::Rows& rows) { return rows.DeleteTemplate(row.id); }));
  if (row.state == store::TemplateState::kReady) {
    static_cast<void>(sandboxes_.drivers().Of(row.driver).RemoveSnapshot(row.id));
  }
  Changed();
  return {};
}

void Templates::Say(const store::Template& row, const std::string& level, std::string_view line) {
  static_cast<void>(store_.Write([&](store::Rows& rows) {
    return rows.AppendTemplateLine({.template_id = row.id,
                                    .attempt = row.attempt,
                                    .at = sandboxes_.options().now(),
                                    .level = level,
                                    .line = std::string(line)});
  }));
  Changed();
}

// The oldest one that waits, or that a process which is gone was building.
std::optional<store::Template> Templates::Take() {
  auto all = store_.Read([](store::Rows& rows) { return rows.Templates(std::nullopt); });
  if (!all) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::ranges::reverse(*all);
  for (store::Template& row : *all) {
    const bool is_due =
        row.state == store::TemplateState::kPending || row.state == store::TemplateState::kBuilding;
    if (!is_due || !taken_.insert(row.id).second) continue;
    if (row.state == store::TemplateState::kBuilding) ++row.attempt;
    return std::move(row);
  }
  return std::nullopt;
}

Result<void> Templates::BuildOne(store::Template& row, const std::stop_token& stop) {
  CAISSON_ASSIGN(const images::Dockerfile file, Parse(row.dockerfile));
  const std::string machine = "build-" + row.id;
  machine::Driver& driver = sandboxes_.drivers().Of(row.driver);
  // Of an earlier attempt.
  CAISSON_TRY(driver.Destroy(machine));
  CAISSON_TRY(driver.RemoveSnapshot(row.id));
  CAISSON_ASSIGN(
      const machine::Snapshot snapshot,
      BuildTemplate(
          driver, {.machine = BuilderSpec(machine, file.image), .snapshot = row.id, .file = file},
          [&](const TemplateLog& line) {
            Say(row, line.level == TemplateLog::Level::kError ? "error" : "info", line.line);
          },
          stop));
  row.bytes = static_cast<std::int64_t>(snapshot.stored_bytes);
  row.image = kSnapshotPrefix + row.id;
  row.environment = file.environment;
  row.directory = file.directory;
  return {};
}

void Templates::Finish(const store::Template& row) {
  const bool is_ready = row.state == store::TemplateState::kReady;
  if (is_ready) Say(row, "info", "ready");
  auto kept = store_.Write([&](store::Rows& rows) -> Result<bool> {
    CAISSON_ASSIGN(const auto there, rows.FindTemplate(row.tenant, row.id));
    if (!there) return false;
    CAISSON_TRY(rows.UpdateTemplate(row));
    return true;
  });
  // Deleted meanwhile.
  if (!kept || !*kept) {
    static_cast<void>(sandboxes_.drivers().Of(row.driver).RemoveSnapshot(row.id));
  }
  const json::Object data{{"id", row.id}, {"name", row.name}, {"status", ToText(row.state)}};
  sandboxes_.Publish(row.tenant, "", "template." + std::string(ToText(row.state)),
                     json::Write(json::Value(data)).value_or("{}"));
}

void Templates::Build(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto row = Take();
    if (!row) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kLook, [] { return false; });
      continue;
    }
    row->state = store::TemplateState::kBuilding;
    static_cast<void>(store_.Write([&](store::Rows& rows) { return rows.UpdateTemplate(*row); }));
    const auto reserved = sandboxes_.Reserve("build-" + row->id);
    auto built = BuildOne(*row, stop);
    // Begun anew by the next service.
    if (!built && stop.stop_requested()) return;
    row->state = built ? store::TemplateState::kReady : store::TemplateState::kFailed;
    row->built_at = sandboxes_.options().now();
    if (!built) row->failure = built.error().message;
    // A step that failed has been told already.
    if (!built && built.error().code != errors::kControlTemplateFailed) {
      Say(*row, "error", row->failure);
    }
    Finish(*row);
    {
      const std::lock_guard lock(mutex_);
      taken_.erase(row->id);
    }
    Changed();
  }
}

}  // namespace caisson::control
