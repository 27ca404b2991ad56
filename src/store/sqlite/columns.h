// SPDX-License-Identifier: Apache-2.0
// Which column holds which member: the one place that says it, for writing and reading alike.
#pragma once

#include <array>
#include <string_view>

#include "store/store.h"

namespace caisson::store::sqlite {

// kName; Columns(row, visit), which calls visit(column, member) for each; and, where there are
// such, kFixed: the columns that a row has for its life.
template <typename Row>
struct Table;

template <>
struct Table<Tenant> {
  static constexpr const char* kName = "tenants";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("created_at", row.created_at);
    visit("sandboxes", row.quota.sandboxes);
    visit("vcpus", row.quota.vcpus);
    visit("memory_mib", row.quota.memory_mib);
    visit("disk_mib", row.quota.disk_mib);
    visit("templates", row.quota.templates);
    visit("networks", row.quota.networks);
    visit("bandwidth_bytes", row.quota.bandwidth_bytes);
  }
};

template <>
struct Table<Key> {
  static constexpr const char* kName = "keys";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("tenant", row.tenant);
    visit("label", row.label);
    visit("hash", row.hash);
    visit("hint", row.hint);
    visit("is_admin", row.is_admin);
    visit("created_at", row.created_at);
    visit("revoked_at", row.revoked_at);
  }
};

template <>
struct Table<AccessToken> {
  static constexpr const char* kName = "access_tokens";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("sandbox", row.sandbox);
    visit("hash", row.hash);
    visit("hint", row.hint);
    visit("created_at", row.created_at);
    visit("rotated_at", row.rotated_at);
  }
};

template <>
struct Table<Sandbox> {
  static constexpr const char* kName = "sandboxes";
  static constexpr std::array<std::string_view, 5> kFixed = {"id", "tenant", "host", "created_by",
                                                             "created_at"};
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("tenant", row.tenant);
    visit("name", row.name);
    visit("state", row.state);
    visit("host", row.host);
    visit("driver", row.driver);
    visit("created_by", row.created_by);
    visit("shape", row.shape);
    visit("rootfs", row.rootfs);
    visit("image", row.image);
    visit("environment", row.environment);
    visit("directory", row.directory);
    visit("vcpus", row.vcpus);
    visit("cpus", row.cpus);
    visit("memory_mib", row.memory_mib);
    visit("disk_mib", row.disk_mib);
    visit("saved_mib", row.saved_mib);
    visit("ip", row.ip);
    visit("egress", row.egress);
    visit("envs", row.envs);
    visit("ssh_pubkeys", row.ssh_pubkeys);
    visit("labels", row.labels);
    visit("ingress_enabled", row.ingress_enabled);
    visit("ingress_token_hash", row.ingress_token_hash);
    visit("ingress_wakes", row.ingress_wakes);
    visit("auto_pause_seconds", row.auto_pause_seconds);
    visit("bandwidth_quota", row.bandwidth_quota);
    visit("bytes_out", row.bytes_out);
    visit("bytes_in", row.bytes_in);
    visit("counter_out", row.counter_out);
    visit("counter_in", row.counter_in);
    visit("is_capped", row.is_capped);
    visit("forked_from", row.forked_from);
    visit("spawn_ms", row.spawn_ms);
    visit("created_at", row.created_at);
    visit("running_at", row.running_at);
    visit("paused_at", row.paused_at);
    visit("last_resumed_at", row.last_resumed_at);
    visit("destroyed_at", row.destroyed_at);
    visit("delete_at", row.delete_at);
    visit("failure", row.failure);
    visit("pool", row.pool);
    visit("pool_id", row.pool_id);
    visit("place", row.place);
    visit("warm_process", row.warm_process);
    visit("revision", row.revision);
  }
};

template <>
struct Table<Network> {
  static constexpr const char* kName = "networks";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("tenant", row.tenant);
    visit("name", row.name);
    visit("created_at", row.created_at);
  }
};

template <>
struct Table<Pool> {
  static constexpr const char* kName = "pools";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("tenant", row.tenant);
    visit("name", row.name);
    visit("host", row.host);
    visit("created_by", row.created_by);
    visit("definition", row.definition);
    visit("size", row.size);
    visit("idle_seconds", row.idle_seconds);
    visit("created_at", row.created_at);
    visit("used_at", row.used_at);
    visit("handed_out", row.handed_out);
    visit("missed", row.missed);
  }
};

template <>
struct Table<Template> {
  static constexpr const char* kName = "templates";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("tenant", row.tenant);
    visit("name", row.name);
    visit("base", row.base);
    visit("driver", row.driver);
    visit("dockerfile", row.dockerfile);
    visit("state", row.state);
    visit("image", row.image);
    visit("environment", row.environment);
    visit("directory", row.directory);
    visit("bytes", row.bytes);
    visit("attempt", row.attempt);
    visit("created_at", row.created_at);
    visit("built_at", row.built_at);
    visit("failure", row.failure);
  }
};

// In these three the store gives `seq`, unless a reader asks for it.
template <>
struct Table<TemplateLine> {
  static constexpr const char* kName = "template_lines";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("seq", row.seq);
    visit("template_id", row.template_id);
    visit("attempt", row.attempt);
    visit("at", row.at);
    visit("level", row.level);
    visit("line", row.line);
  }
};

template <>
struct Table<Event> {
  static constexpr const char* kName = "events";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("seq", row.seq);
    visit("at", row.at);
    visit("tenant", row.tenant);
    visit("sandbox", row.sandbox);
    visit("type", row.type);
    visit("data", row.data);
  }
};

template <>
struct Table<AuditEntry> {
  static constexpr const char* kName = "audit";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("seq", row.seq);
    visit("at", row.at);
    visit("tenant", row.tenant);
    visit("actor", row.actor);
    visit("peer", row.peer);
    visit("request_id", row.request_id);
    visit("action", row.action);
    visit("target", row.target);
    visit("status", row.status);
  }
};

template <>
struct Table<Idempotency> {
  static constexpr const char* kName = "idempotency";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("tenant", row.tenant);
    visit("key", row.key);
    visit("fingerprint", row.fingerprint);
    visit("sandbox", row.sandbox);
    visit("created_at", row.created_at);
  }
};

}  // namespace caisson::store::sqlite
