// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/rows.h"

#include "errors/store.h"
#include "store/sqlite/query.h"

namespace caisson::store::sqlite {
namespace {

constexpr char kLive[] = "state NOT IN ('destroyed', 'failed')";

// What the filter asks for, as SQL and the values in it.
struct Condition {
  std::string sql = "WHERE ";
  std::vector<std::string> values;

  explicit Condition(const SandboxFilter& filter) {
    sql += filter.states.empty() ? "state NOT IN ('destroying', 'destroyed')" : "state IN (";
    for (std::size_t i = 0; i < filter.states.size(); ++i) {
      sql += i == 0 ? "?" : ", ?";
      values.emplace_back(ToText(filter.states[i]));
    }
    if (!filter.states.empty()) sql += ")";
    if (filter.tenant) Add(" AND tenant = ?", {*filter.tenant});
    if (filter.host) Add(" AND host = ?", {*filter.host});
    if (filter.only_pooled) {
      Add(" AND place <> 'none'", {});
    } else if (!filter.with_pooled) {
      Add(" AND place = 'none'", {});
    }
    if (filter.pool_id) Add(" AND pool_id = ?", {*filter.pool_id});
    // json_each, since a key may hold what a JSON path takes for syntax.
    for (const auto& [key, value] : filter.labels) {
      Add(" AND EXISTS (SELECT 1 FROM json_each(labels) AS l WHERE l.key = ? AND l.value = ?)",
          {key, value});
    }
  }
  void Add(const char* text, const std::vector<std::string>& with) {
    sql += text;
    values.insert(values.end(), with.begin(), with.end());
  }
};

Result<std::unique_ptr<Statement>> AskWith(Database& database, const std::string& sql,
                                           const std::vector<std::string>& values) {
  CAISSON_ASSIGN(auto statement, database.Prepare(sql));
  int index = 0;
  for (const std::string& value : values) statement->Bind(index++, value);
  return statement;
}

}  // namespace

Result<void> SqliteRows::PutTenant(const Tenant& tenant) {
  // Not REPLACE, which would delete the row that others refer to.
  CAISSON_ASSIGN(const auto known, FindTenant(tenant.id));
  return known ? UpdateRow(database_, tenant, "WHERE id = ?", tenant.id)
               : InsertRow(database_, tenant);
}
Result<std::optional<Tenant>> SqliteRows::FindTenant(const std::string& id) {
  return SelectOne<Tenant>(database_, "WHERE id = ?", id);
}
Result<std::vector<Tenant>> SqliteRows::Tenants() {
  return Select<Tenant>(database_, "ORDER BY id");
}

Result<void> SqliteRows::InsertKey(const Key& key) { return InsertRow(database_, key); }
Result<std::optional<Key>> SqliteRows::FindKeyByHash(const std::string& hash) {
  return SelectOne<Key>(database_, "WHERE hash = ?", hash);
}
Result<std::vector<Key>> SqliteRows::Keys() {
  return Select<Key>(database_, "ORDER BY created_at, id");
}
Result<bool> SqliteRows::RevokeKey(const std::string& id, Milliseconds at) {
  CAISSON_TRY(
      Do(database_, "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", at, id));
  return database_.changes() > 0;
}

Result<void> SqliteRows::PutToken(const AccessToken& token) {
  return InsertRow(database_, token, "INSERT OR REPLACE");
}
Result<std::optional<AccessToken>> SqliteRows::FindToken(const std::string& sandbox) {
  return SelectOne<AccessToken>(database_, "WHERE sandbox = ?", sandbox);
}
Result<std::optional<AccessToken>> SqliteRows::FindTokenByHash(const std::string& hash) {
  return SelectOne<AccessToken>(database_, "WHERE hash = ?", hash);
}
Result<bool> SqliteRows::DeleteToken(const std::string& sandbox) {
  CAISSON_TRY(Do(database_, "DELETE FROM access_tokens WHERE sandbox = ?", sandbox));
  return database_.changes() > 0;
}

Result<void> SqliteRows::InsertSandbox(const Sandbox& sandbox) {
  return InsertRow(database_, sandbox);
}
Result<std::optional<Sandbox>> SqliteRows::FindSandbox(const std::string& id) {
  return SelectOne<Sandbox>(database_, "WHERE id = ?", id);
}
Result<std::optional<Sandbox>> SqliteRows::FindSandboxByIp(const std::string& tenant,
                                                           const std::string& ip) {
  return SelectOne<Sandbox>(
      database_, std::string("WHERE tenant = ? AND ip = ? AND ip <> '' AND ") + kLive, tenant, ip);
}

Result<std::optional<Sandbox>> SqliteRows::FindSandboxByName(const std::string& tenant,
                                                             const std::string& name) {
  return SelectOne<Sandbox>(
      database_,
      std::string("WHERE tenant = ? AND name = ? AND state <> 'destroying' AND ") + kLive, tenant,
      name);
}

Result<std::vector<Sandbox>> SqliteRows::Sandboxes(const SandboxFilter& filter) {
  const Condition condition(filter);
  CAISSON_ASSIGN(
      auto statement,
      AskWith(database_,
              SelectFrom<Sandbox>() + condition.sql +
                  " ORDER BY state NOT IN ('running', 'paused'), created_at DESC, id DESC LIMIT " +
                  std::to_string(filter.limit) + " OFFSET " + std::to_string(filter.offset),
              condition.values));
  return TakeAll<Sandbox>(*statement);
}

Result<std::int64_t> SqliteRows::CountSandboxes(const SandboxFilter& filter) {
  const Condition condition(filter);
  CAISSON_ASSIGN(
      auto statement,
      AskWith(database_, "SELECT count(*) FROM sandboxes " + condition.sql, condition.values));
  CAISSON_TRY(statement->Step());
  return statement->Integer(0);
}

Result<void> SqliteRows::UpdateSandbox(Sandbox& sandbox) {
  const std::int64_t before = sandbox.revision;
  sandbox.revision = before + 1;
  auto updated = UpdateRow(database_, sandbox, "WHERE id = ? AND revision = ?", sandbox.id, before);
  if (updated && database_.changes() == 1) return {};
  sandbox.revision = before;
  CAISSON_TRY(updated);
  return Fail(errors::kStoreStale, "sandbox " + sandbox.id + " has changed since it was read");
}

Result<void> SqliteRows::HandOver(Sandbox& sandbox) {
  CAISSON_TRY(UpdateSandbox(sandbox));
  return Do(database_, "UPDATE sandboxes SET created_by = ?, created_at = ? WHERE id = ?",
            sandbox.created_by, sandbox.created_at, sandbox.id);
}

Result<void> SqliteRows::RemoveSandbox(const std::string& id) {
  return Do(database_, "DELETE FROM sandboxes WHERE id = ?", id);
}

Result<std::map<std::string, Usage>> SqliteRows::UsageByTenant(const std::string& host) {
  CAISSON_ASSIGN(auto statement,
                 Ask(database_,
                     std::string("SELECT tenant, count(*), sum(vcpus), sum(memory_mib), "
                                 "sum(disk_mib + saved_mib) FROM sandboxes WHERE host = ? AND ") +
                         kLive + " GROUP BY tenant",
                     host));
  std::map<std::string, Usage> usage;
  while (true) {
    CAISSON_ASSIGN(const bool more, statement->Step());
    if (!more) return usage;
    usage[statement->Text(0)] = {.sandboxes = statement->Integer(1),
                                 .vcpus = statement->Integer(2),
                                 .memory_mib = statement->Integer(3),
                                 .disk_mib = statement->Integer(4)};
  }
}

Result<std::int64_t> SqliteRows::PurgeSandboxes(const std::string& host, Milliseconds before) {
  CAISSON_TRY(Do(database_,
                 "DELETE FROM sandboxes WHERE host = ? AND state IN ('destroyed', 'failed') AND "
                 "destroyed_at < ?",
                 host, before));
  return database_.changes();
}

Result<void> SqliteRows::PutPool(const Pool& pool) {
  return InsertRow(database_, pool, "INSERT OR REPLACE");
}
Result<std::optional<Pool>> SqliteRows::FindPool(const std::string& tenant,
                                                 const std::string& name) {
  return SelectOne<Pool>(database_, "WHERE tenant = ? AND name = ?", tenant, name);
}
Result<std::vector<Pool>> SqliteRows::Pools(const std::optional<std::string>& tenant) {
  if (!tenant) return Select<Pool>(database_, "ORDER BY tenant, name");
  return Select<Pool>(database_, "WHERE tenant = ? ORDER BY name", *tenant);
}
Result<bool> SqliteRows::DeletePool(const std::string& tenant, const std::string& name) {
  CAISSON_TRY(Do(database_, "DELETE FROM pools WHERE tenant = ? AND name = ?", tenant, name));
  return database_.changes() > 0;
}
Result<bool> SqliteRows::CountPoolUse(const std::string& id, bool was_ready, Milliseconds at) {
  CAISSON_TRY(Do(database_,
                 "UPDATE pools SET handed_out = handed_out + ?, missed = missed + ?, used_at = ? "
                 "WHERE id = ?",
                 std::int64_t{was_ready}, std::int64_t{!was_ready}, at, id));
  return database_.changes() > 0;
}

Result<void> SqliteRows::InsertNetwork(const Network& network) {
  return InsertRow(database_, network);
}
Result<std::optional<Network>> SqliteRows::FindNetwork(const std::string& tenant,
                                                       const std::string& id_or_name) {
  return SelectOne<Network>(database_, "WHERE tenant = ? AND (id = ? OR name = ?) ORDER BY id <> ?",
                            tenant, id_or_name, id_or_name, id_or_name);
}
Result<std::vector<Network>> SqliteRows::Networks(const std::string& tenant) {
  return Select<Network>(database_, "WHERE tenant = ? ORDER BY created_at, id", tenant);
}
Result<void> SqliteRows::DeleteNetwork(const std::string& id) {
  return Do(database_, "DELETE FROM networks WHERE id = ?", id);
}
Result<void> SqliteRows::AddMember(const std::string& network, const std::string& sandbox) {
  return Do(database_, "INSERT OR IGNORE INTO members (network, sandbox) VALUES (?, ?)", network,
            sandbox);
}
Result<bool> SqliteRows::RemoveMember(const std::string& network, const std::string& sandbox) {
  CAISSON_TRY(
      Do(database_, "DELETE FROM members WHERE network = ? AND sandbox = ?", network, sandbox));
  return database_.changes() > 0;
}
Result<std::vector<Sandbox>> SqliteRows::Members(const std::string& network) {
  return Select<Sandbox>(
      database_,
      std::string("WHERE id IN (SELECT sandbox FROM members WHERE network = ?) AND "
                  "state <> 'destroying' AND ") +
          kLive + " ORDER BY created_at, id",
      network);
}
Result<std::vector<Network>> SqliteRows::NetworksOf(const std::string& sandbox) {
  return Select<Network>(
      database_,
      "WHERE id IN (SELECT network FROM members WHERE sandbox = ?) ORDER BY created_at, id",
      sandbox);
}

Result<void> SqliteRows::InsertTemplate(const Template& row) { return InsertRow(database_, row); }
Result<void> SqliteRows::UpdateTemplate(const Template& row) {
  return UpdateRow(database_, row, "WHERE id = ?", row.id);
}
Result<std::optional<Template>> SqliteRows::FindTemplate(const std::string& tenant,
                                                         const std::string& id_or_name) {
  return SelectOne<Template>(database_,
                             "WHERE tenant = ? AND (id = ? OR name = ?) ORDER BY id <> ?", tenant,
                             id_or_name, id_or_name, id_or_name);
}
Result<std::vector<Template>> SqliteRows::Templates(const std::optional<std::string>& tenant) {
  if (tenant) {
    return Select<Template>(database_, "WHERE tenant = ? ORDER BY created_at DESC, id DESC",
                            *tenant);
  }
  return Select<Template>(database_, "ORDER BY created_at DESC, id DESC");
}
Result<void> SqliteRows::DeleteTemplate(const std::string& id) {
  return Do(database_, "DELETE FROM templates WHERE id = ?", id);
}
Result<void> SqliteRows::AppendTemplateLine(const TemplateLine& line) {
  return InsertRow(database_, line);
}
Result<std::vector<TemplateLine>> SqliteRows::TemplateLines(const std::string& id,
                                                            std::optional<std::int64_t> attempt,
                                                            std::int64_t after) {
  if (attempt) {
    return Select<TemplateLine>(database_,
                                "WHERE template_id = ? AND seq > ? AND attempt = ? ORDER BY seq",
                                id, after, *attempt);
  }
  return Select<TemplateLine>(database_, "WHERE template_id = ? AND seq > ? ORDER BY seq", id,
                              after);
}

Result<std::int64_t> SqliteRows::AppendEvent(const Event& event) {
  CAISSON_TRY(InsertRow(database_, event));
  return database_.last_row();
}
Result<std::vector<Event>> SqliteRows::EventsAfter(const std::string& tenant, std::int64_t seq,
                                                   std::int64_t limit) {
  return Select<Event>(database_, "WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?", tenant, seq,
                       limit);
}
Result<std::int64_t> SqliteRows::NewestEvent() {
  CAISSON_ASSIGN(auto statement, Ask(database_, "SELECT max(seq) FROM events"));
  CAISSON_TRY(statement->Step());
  return statement->Integer(0);
}
Result<void> SqliteRows::PurgeEvents(Milliseconds before) {
  return Do(database_, "DELETE FROM events WHERE at < ?", before);
}

Result<void> SqliteRows::AppendAudit(const AuditEntry& entry) {
  return InsertRow(database_, entry);
}
Result<std::vector<AuditEntry>> SqliteRows::AuditAfter(std::int64_t seq, std::int64_t limit) {
  return Select<AuditEntry>(database_, "WHERE seq > ? ORDER BY seq LIMIT ?", seq, limit);
}

Result<void> SqliteRows::PurgeAudit(Milliseconds before) {
  return Do(database_, "DELETE FROM audit WHERE at < ?", before);
}

Result<void> SqliteRows::PutIdempotency(const Idempotency& row) {
  return InsertRow(database_, row, "INSERT OR REPLACE");
}
Result<std::optional<Idempotency>> SqliteRows::FindIdempotency(const std::string& tenant,
                                                               const std::string& key) {
  return SelectOne<Idempotency>(database_, "WHERE tenant = ? AND key = ?", tenant, key);
}
Result<void> SqliteRows::PurgeIdempotency(Milliseconds before) {
  return Do(database_, "DELETE FROM idempotency WHERE created_at < ?", before);
}

}  // namespace caisson::store::sqlite
