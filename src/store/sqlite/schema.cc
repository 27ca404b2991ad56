// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.h"

#include <array>

#include "store/sqlite/migration.h"

namespace caisson::store::sqlite {
namespace {

// Only ever add to the end: files out there have had the first ones.
constexpr std::array<const char*, 4> kSteps{R"(
CREATE TABLE tenants (
  id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, sandboxes INTEGER NOT NULL,
  vcpus INTEGER NOT NULL, memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,
  templates INTEGER NOT NULL, networks INTEGER NOT NULL, bandwidth_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE keys (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenants, label TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE, hint TEXT NOT NULL, is_admin INTEGER NOT NULL,
  created_at INTEGER NOT NULL, revoked_at INTEGER
) STRICT;
CREATE TABLE sandboxes (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenants, name TEXT NOT NULL,
  state TEXT NOT NULL, host TEXT NOT NULL, created_by TEXT NOT NULL, shape TEXT NOT NULL,
  rootfs TEXT NOT NULL, image TEXT NOT NULL, environment TEXT NOT NULL,
  directory TEXT NOT NULL, vcpus INTEGER NOT NULL, cpus REAL NOT NULL,
  memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL, ip TEXT NOT NULL, egress TEXT NOT NULL,
  envs TEXT NOT NULL, ssh_pubkeys TEXT NOT NULL, labels TEXT NOT NULL,
  ingress_enabled INTEGER NOT NULL, ingress_token_hash TEXT NOT NULL, auto_pause_seconds INTEGER,
  bandwidth_quota INTEGER NOT NULL, bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL,
  counter_out INTEGER NOT NULL, counter_in INTEGER NOT NULL, is_capped INTEGER NOT NULL, forked_from TEXT, spawn_ms REAL, created_at INTEGER NOT NULL,
  running_at INTEGER, paused_at INTEGER, last_resumed_at INTEGER, destroyed_at INTEGER,
  delete_at INTEGER, failure TEXT NOT NULL, revision INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sandbox_names ON sandboxes (tenant, name)
  WHERE state NOT IN ('destroyed', 'failed');
CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant, created_at);
CREATE INDEX sandboxes_by_ip ON sandboxes (ip) WHERE ip <> '';
CREATE INDEX live_sandboxes ON sandboxes (host) WHERE state NOT IN ('destroyed', 'failed');
CREATE TABLE access_tokens (
  sandbox TEXT PRIMARY KEY REFERENCES sandboxes ON DELETE CASCADE, hash TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL, created_at INTEGER NOT NULL, rotated_at INTEGER
) STRICT;
CREATE TABLE networks (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenants, name TEXT NOT NULL,
  created_at INTEGER NOT NULL, UNIQUE (tenant, name)
) STRICT;
CREATE TABLE members (
  network TEXT NOT NULL REFERENCES networks ON DELETE CASCADE,
  sandbox TEXT NOT NULL REFERENCES sandboxes ON DELETE CASCADE, PRIMARY KEY (network, sandbox)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships ON members (sandbox);
CREATE TABLE templates (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenants, name TEXT NOT NULL,
  base TEXT NOT NULL, dockerfile TEXT NOT NULL, state TEXT NOT NULL, image TEXT NOT NULL,
  environment TEXT NOT NULL, directory TEXT NOT NULL, bytes INTEGER NOT NULL, attempt INTEGER NOT NULL, created_at INTEGER NOT NULL, built_at INTEGER,
  failure TEXT NOT NULL, UNIQUE (tenant, name)
) STRICT;
CREATE TABLE template_lines (
  seq INTEGER PRIMARY KEY, template_id TEXT NOT NULL REFERENCES templates ON DELETE CASCADE,
  attempt INTEGER NOT NULL, at INTEGER NOT NULL, level TEXT NOT NULL, line TEXT NOT NULL
) STRICT;
CREATE INDEX lines_by_template ON template_lines (template_id, seq);
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, tenant TEXT NOT NULL,
  sandbox TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_tenant ON events (tenant, seq);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, tenant TEXT NOT NULL,
  actor TEXT NOT NULL, peer TEXT NOT NULL, request_id TEXT NOT NULL, action TEXT NOT NULL,
  target TEXT NOT NULL, status INTEGER NOT NULL
) STRICT;
CREATE TABLE idempotency (
  tenant TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, sandbox TEXT NOT NULL,
  created_at INTEGER NOT NULL, PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
)",
                                            // There was only the jail before.
                                            R"(
ALTER TABLE sandboxes ADD COLUMN driver TEXT NOT NULL DEFAULT 'jail';
ALTER TABLE sandboxes ADD COLUMN ingress_wakes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE templates ADD COLUMN driver TEXT NOT NULL DEFAULT 'jail';
)",
                                            // Memory of virtual machines was on no account.
                                            R"(
ALTER TABLE sandboxes ADD COLUMN saved_mib INTEGER NOT NULL DEFAULT 0;
UPDATE sandboxes SET saved_mib = 2 * memory_mib WHERE driver = 'microvm';
)",
                                            // What is being destroyed keeps no name from others.
                                            R"(
CREATE TABLE pools (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenants, name TEXT NOT NULL,
  host TEXT NOT NULL, created_by TEXT NOT NULL, definition TEXT NOT NULL, size INTEGER NOT NULL,
  idle_seconds INTEGER NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER NOT NULL,
  handed_out INTEGER NOT NULL, missed INTEGER NOT NULL, UNIQUE (tenant, name)
) STRICT;
ALTER TABLE sandboxes ADD COLUMN pool TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN pool_id TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN place TEXT NOT NULL DEFAULT 'none';
ALTER TABLE sandboxes ADD COLUMN warm_process TEXT NOT NULL DEFAULT '';
CREATE INDEX pooled_sandboxes ON sandboxes (pool_id) WHERE place <> 'none';
DROP INDEX sandbox_names;
CREATE UNIQUE INDEX sandbox_names ON sandboxes (tenant, name)
  WHERE state NOT IN ('destroying', 'destroyed', 'failed');
)"};

}  // namespace

Result<void> Migrate(Database& database) { return TakeSteps(database, kSteps); }

}  // namespace caisson::store::sqlite
