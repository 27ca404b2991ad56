// SPDX-License-Identifier: Apache-2.0
// Rows over one connection, inside a transaction that somebody else began.
#pragma once

#include "store/sqlite/database.h"
#include "store/store.h"

namespace caisson::store::sqlite {

class SqliteRows final : public Rows {
 public:
  explicit SqliteRows(Database& database) : database_(database) {}

  Result<void> PutTenant(const Tenant& tenant) override;
  Result<std::optional<Tenant>> FindTenant(const std::string& id) override;
  Result<std::vector<Tenant>> Tenants() override;
  Result<void> InsertKey(const Key& key) override;
  Result<std::optional<Key>> FindKeyByHash(const std::string& hash) override;
  Result<std::vector<Key>> Keys() override;
  Result<bool> RevokeKey(const std::string& id, Milliseconds at) override;
  Result<void> PutToken(const AccessToken& token) override;
  Result<std::optional<AccessToken>> FindToken(const std::string& sandbox) override;
  Result<std::optional<AccessToken>> FindTokenByHash(const std::string& hash) override;
  Result<bool> DeleteToken(const std::string& sandbox) override;
  Result<void> InsertSandbox(const Sandbox& sandbox) override;
  Result<std::optional<Sandbox>> FindSandbox(const std::string& id) override;
  Result<std::optional<Sandbox>> FindSandboxByName(const std::string& tenant,
                                                   const std::string& name) override;
  Result<std::optional<Sandbox>> FindSandboxByIp(const std::string& tenant,
                                                 const std::string& ip) override;
  Result<std::vector<Sandbox>> Sandboxes(const SandboxFilter& filter) override;
  Result<std::int64_t> CountSandboxes(const SandboxFilter& filter) override;
  Result<void> UpdateSandbox(Sandbox& sandbox) override;
  Result<void> HandOver(Sandbox& sandbox) override;
  Result<void> RemoveSandbox(const std::string& id) override;
  Result<std::map<std::string, Usage>> UsageByTenant(const std::string& host) override;
  Result<std::int64_t> PurgeSandboxes(const std::string& host, Milliseconds before) override;
  Result<void> InsertNetwork(const Network& network) override;
  Result<std::optional<Network>> FindNetwork(const std::string& tenant,
                                             const std::string& id_or_name) override;
  Result<std::vector<Network>> Networks(const std::string& tenant) override;
  Result<void> DeleteNetwork(const std::string& id) override;
  Result<void> AddMember(const std::string& network, const std::string& sandbox) override;
  Result<bool> RemoveMember(const std::string& network, const std::string& sandbox) override;
  Result<std::vector<Sandbox>> Members(const std::string& network) override;
  Result<std::vector<Network>> NetworksOf(const std::string& sandbox) override;
  Result<void> InsertTemplate(const Template& row) override;
  Result<void> UpdateTemplate(const Template& row) override;
  Result<std::optional<Template>> FindTemplate(const std::string& tenant,
                                               const std::string& id_or_name) override;
  Result<std::vector<Template>> Templates(const std::optional<std::string>& tenant) override;
  Result<void> DeleteTemplate(const std::string& id) override;
  Result<void> AppendTemplateLine(const TemplateLine& line) override;
  Result<std::vector<TemplateLine>> TemplateLines(const std::string& id,
                                                  std::optional<std::int64_t> attempt,
                                                  std::int64_t after) override;
  Result<void> PutPool(const Pool& pool) override;
  Result<std::optional<Pool>> FindPool(const std::string& tenant, const std::string& name) override;
  Result<std::vector<Pool>> Pools(const std::optional<std::string>& tenant) override;
  Result<bool> DeletePool(const std::string& tenant, const std::string& name) override;
  Result<bool> CountPoolUse(const std::string& id, bool was_ready, Milliseconds at) override;
  Result<std::int64_t> AppendEvent(const Event& event) override;
  Result<std::vector<Event>> EventsAfter(const std::string& tenant, std::int64_t seq,
                                         std::int64_t limit) override;
  Result<std::int64_t> NewestEvent() override;
  Result<void> PurgeEvents(Milliseconds before) override;
  Result<void> AppendAudit(const AuditEntry& entry) override;
  Result<std::vector<AuditEntry>> AuditAfter(std::int64_t seq, std::int64_t limit) override;
  Result<void> PurgeAudit(Milliseconds before) override;
  Result<void> PutIdempotency(const Idempotency& row) override;
  Result<std::optional<Idempotency>> FindIdempotency(const std::string& tenant,
                                                     const std::string& key) override;
  Result<void> PurgeIdempotency(Milliseconds before) override;

 private:
  Database& database_;
};

}  // namespace caisson::store::sqlite
