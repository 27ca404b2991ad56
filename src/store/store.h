// SPDX-License-Identifier: Apache-2.0
// What the control plane remembers: tenants, API keys (hashes only), sandboxes and their
// tombstones, access tokens, networks, templates with their logs, pools, events, the audit log.
// Plain rows, no policy: which transition is allowed, who may do what and what fits is decided
// above. Several processes may use one store at a time. A Store is thread-safe; Rows belong to the
// call that they were given to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/transactions.h"

namespace caisson::store {

using Milliseconds = std::int64_t;  // since 1970, UTC

// The states of sandbox-api; how they follow one another is control/states.h.
enum class SandboxState : std::uint8_t {
  kCreating,
  kRunning,
  kPausing,
  kPaused,
  kResuming,
  kForking,
  kError,
  kDestroying,
  kDestroyed,
  kFailed,
};
std::string_view ToText(SandboxState state);
std::optional<SandboxState> ParseSandboxState(std::string_view text);
// Nothing of the machine is left, and its name is free again.
bool IsTerminal(SandboxState state);

inline constexpr std::int64_t kUnlimited = -1;

// What a sandbox is to the pool that it was made for.
enum class PoolPlace : std::uint8_t {
  kNone,     // it was handed out, or was made for nobody's pool: a sandbox like any other
  kWaiting,  // it is ready for whoever takes it, once it runs
  kParent,   // the others are forked from it; it is never handed out
};
std::string_view ToText(PoolPlace place);
std::optional<PoolPlace> ParsePoolPlace(std::string_view text);

struct Quota {  // kUnlimited: no limit
  std::int64_t sandboxes = 100;
  std::int64_t vcpus = kUnlimited;
  std::int64_t memory_mib = kUnlimited;
  std::int64_t disk_mib = kUnlimited;
  std::int64_t templates = 50;
  std::int64_t networks = 20;
  std::int64_t bandwidth_bytes = std::int64_t{5} << 30;  // of each sandbox
  bool operator==(const Quota&) const = default;
};

struct Tenant {
  std::string id;
  Milliseconds created_at = 0;
  Quota quota;
};

struct Key {
  std::string id;
  std::string tenant;
  std::string label;
  std::string hash;  // of the secret; the secret itself is nowhere
  std::string hint;  // its first characters
  bool is_admin = false;
  Milliseconds created_at = 0;
  std::optional<Milliseconds> revoked_at;
};

// The delegated token of one sandbox.
struct AccessToken {
  std::string sandbox;
  std::string hash;
  std::string hint;
  Milliseconds created_at = 0;
  std::optional<Milliseconds> rotated_at;
};

struct Sandbox {
  std::string id;
  std::string tenant;
  std::string name;
  SandboxState state = SandboxState::kCreating;
  std::string host;        // whose machine it is
  std::string driver;      // that its machine has
  std::string created_by;  // id of the key
  std::string shape;
  std::string rootfs;  // as asked for
  std::string image;   // id in the image store, or a snapshot (control/plan.h)
  std::map<std::string, std::string> environment;  // of its template
  std::string directory;                           // that commands start in; empty: /root
  std::int64_t vcpus = 0;
  double cpus = 0;  // of a host's processor time
  std::int64_t memory_mib = 0;
  std::int64_t disk_mib = 0;
  std::int64_t saved_mib = 0;  // of the host's disk, at most, for memory that is saved there
  std::string ip;              // empty: none yet
  std::vector<std::string> egress;
  std::map<std::string, std::string> envs;
  std::vector<std::string> ssh_pubkeys;
  std::map<std::string, std::string> labels;
  bool ingress_enabled = false;
  std::string ingress_token_hash;  // empty: none is asked for
  bool ingress_wakes = false;      // a preview request resumes it
  std::optional<std::int64_t> auto_pause_seconds;
  std::int64_t bandwidth_quota = kUnlimited;
  std::int64_t bytes_out = 0;  // in its whole life, as last seen
  std::int64_t bytes_in = 0;
  std::int64_t counter_out = 0;  // the machine's own counters then; they may begin anew
  std::int64_t counter_in = 0;
  bool is_capped = false;  // the quota is used up and the network closed for that
  std::optional<std::string> forked_from;
  std::optional<double> spawn_ms;
  Milliseconds created_at = 0;
  std::optional<Milliseconds> running_at;
  std::optional<Milliseconds> paused_at;
  std::optional<Milliseconds> last_resumed_at;
  std::optional<Milliseconds> destroyed_at;  // also set for failed
  std::optional<Milliseconds> delete_at;     // the owner's wish
  std::string failure;                       // why it is failed or error
  std::string pool;                          // name of the pool that it comes from; empty: none
  std::string pool_id;                       // of that pool's definition
  PoolPlace place = PoolPlace::kNone;
  std::string warm_process;   // that the pool has started in it; empty: none
  std::int64_t revision = 0;  // counted by UpdateSandbox
};

struct SandboxFilter {
  std::optional<std::string> tenant;
  std::optional<std::string> host;
  std::vector<SandboxState> states;           // empty: all but destroying and destroyed
  bool with_pooled = false;                   // also those whose place in a pool is not kNone
  bool only_pooled = false;                   // none but those
  std::optional<std::string> pool_id;         // only those of that definition
  std::map<std::string, std::string> labels;  // all of them
  std::int64_t limit = kUnlimited;
  std::int64_t offset = 0;
};

struct Usage {
  std::int64_t sandboxes = 0;
  std::int64_t vcpus = 0;
  std::int64_t memory_mib = 0;
  std::int64_t disk_mib = 0;
};

struct Network {
  std::string id;
  std::string tenant;
  std::string name;
  Milliseconds created_at = 0;
};

// Sandboxes that are made before somebody asks for them.
struct Pool {
  std::string id;  // of this definition: another one under the same name has another
  std::string tenant;
  std::string name;
  std::string host;        // that fills it
  std::string created_by;  // id of the key
  std::string definition;  // a JSON object (control/pool_definition.h)
  std::int64_t size = 0;
  std::int64_t idle_seconds = 0;
  Milliseconds created_at = 0;
  Milliseconds used_at = 0;  // when somebody took from it, or defined it
  std::int64_t handed_out = 0;
  std::int64_t missed = 0;  // so many had to be made when they were asked for
};

enum class TemplateState : std::uint8_t { kPending, kBuilding, kReady, kFailed };
std::string_view ToText(TemplateState state);
std::optional<TemplateState> ParseTemplateState(std::string_view text);

struct Template {
  std::string id;
  std::string tenant;
  std::string name;
  std::string base;
  std::string driver;  // that it is built with, and that its sandboxes have
  std::string dockerfile;
  TemplateState state = TemplateState::kPending;
  std::string image;                               // what sandboxes are made from, once ready
  std::map<std::string, std::string> environment;  // of all commands in them
  std::string directory;                           // that they start in
  std::int64_t bytes = 0;
  std::int64_t attempt = 1;
  Milliseconds created_at = 0;
  std::optional<Milliseconds> built_at;
  std::string failure;
};

struct TemplateLine {
  std::int64_t seq = 0;  // given by the store
  std::string template_id;
  std::int64_t attempt = 1;
  Milliseconds at = 0;
  std::string level;  // "info", "error"
  std::string line;
};

struct Event {
  std::int64_t seq = 0;  // given by the store, rising
  Milliseconds at = 0;
  std::string tenant;
  std::string sandbox;  // may be empty
  std::string type;     // "sandbox.running", "template.ready"
  std::string data;     // a JSON object
};

struct AuditEntry {
  std::int64_t seq = 0;  // given by the store
  Milliseconds at = 0;
  std::string tenant;
  std::string actor;  // id of the key, "token of <sandbox>", "auto-pause"
  std::string peer;
  std::string request_id;
  std::string action;  // "POST /v1/sandboxes"
  std::string target;  // id of the sandbox, template …, may be empty
  std::int64_t status = 0;
};

// One Idempotency-Key that a tenant has used.
struct Idempotency {
  std::string tenant;
  std::string key;
  std::string fingerprint;  // of the request
  std::string sandbox;
  Milliseconds created_at = 0;
};

// Finders give an empty optional when there is no such row. Inserting what exists already fails
// with store.conflict, everything else that goes wrong with store.failed.
class Rows {
 public:
  virtual ~Rows() = default;

  virtual Result<void> PutTenant(const Tenant& tenant) = 0;  // inserts or replaces
  virtual Result<std::optional<Tenant>> FindTenant(const std::string& id) = 0;
  virtual Result<std::vector<Tenant>> Tenants() = 0;

  virtual Result<void> InsertKey(const Key& key) = 0;
  virtual Result<std::optional<Key>> FindKeyByHash(const std::string& hash) = 0;
  virtual Result<std::vector<Key>> Keys() = 0;
  // False when there is none, or it is revoked already.
  virtual Result<bool> RevokeKey(const std::string& id, Milliseconds at) = 0;

  virtual Result<void> PutToken(const AccessToken& token) = 0;  // inserts or replaces
  virtual Result<std::optional<AccessToken>> FindToken(const std::string& sandbox) = 0;
  virtual Result<std::optional<AccessToken>> FindTokenByHash(const std::string& hash) = 0;
  virtual Result<bool> DeleteToken(const std::string& sandbox) = 0;

  // A name that another sandbox of the tenant has, which is neither terminal nor being destroyed,
  // is a conflict.
  virtual Result<void> InsertSandbox(const Sandbox& sandbox) = 0;
  virtual Result<std::optional<Sandbox>> FindSandbox(const std::string& id) = 0;
  virtual Result<std::optional<Sandbox>> FindSandboxByIp(const std::string& tenant,
                                                         const std::string& ip) = 0;
  // The one that is neither terminal nor being destroyed.
  virtual Result<std::optional<Sandbox>> FindSandboxByName(const std::string& tenant,
                                                           const std::string& name) = 0;
  // Running and paused ones first, then the newest.
  virtual Result<std::vector<Sandbox>> Sandboxes(const SandboxFilter& filter) = 0;
  virtual Result<std::int64_t> CountSandboxes(const SandboxFilter& filter) = 0;
  // Writes the row, but for what it has for its life (id, tenant, host, who created it and when),
  // when the stored revision is still that of `sandbox`, and counts it up in both; else fails with
  // store.stale.
  virtual Result<void> UpdateSandbox(Sandbox& sandbox) = 0;
  // As UpdateSandbox, and writes also who created it and when: it is somebody else's from now on.
  virtual Result<void> HandOver(Sandbox& sandbox) = 0;
  // Forgets it with all that hangs on it, as if it had never been.
  virtual Result<void> RemoveSandbox(const std::string& id) = 0;
  // By tenant, of what is not terminal.
  virtual Result<std::map<std::string, Usage>> UsageByTenant(const std::string& host) = 0;
  // Removes terminal rows whose end lies before `before`, with all that hangs on them.
  virtual Result<std::int64_t> PurgeSandboxes(const std::string& host, Milliseconds before) = 0;

  virtual Result<void> InsertNetwork(const Network& network) = 0;
  // By id or name.
  virtual Result<std::optional<Network>> FindNetwork(const std::string& tenant,
                                                     const std::string& id_or_name) = 0;
  virtual Result<std::vector<Network>> Networks(const std::string& tenant) = 0;
  virtual Result<void> DeleteNetwork(const std::string& id) = 0;
  virtual Result<void> AddMember(const std::string& network, const std::string& sandbox) = 0;
  virtual Result<bool> RemoveMember(const std::string& network, const std::string& sandbox) = 0;
  // Only those that are not terminal and not being destroyed.
  virtual Result<std::vector<Sandbox>> Members(const std::string& network) = 0;
  virtual Result<std::vector<Network>> NetworksOf(const std::string& sandbox) = 0;

  virtual Result<void> InsertTemplate(const Template& row) = 0;
  virtual Result<void> UpdateTemplate(const Template& row) = 0;
  virtual Result<std::optional<Template>> FindTemplate(const std::string& tenant,
                                                       const std::string& id_or_name) = 0;
  virtual Result<std::vector<Template>> Templates(const std::optional<std::string>& tenant) = 0;
  virtual Result<void> DeleteTemplate(const std::string& id) = 0;
  virtual Result<void> AppendTemplateLine(const TemplateLine& line) = 0;
  virtual Result<std::vector<TemplateLine>> TemplateLines(const std::string& id,
                                                          std::optional<std::int64_t> attempt,
                                                          std::int64_t after) = 0;

  // Inserts it, or replaces what the tenant has under that name.
  virtual Result<void> PutPool(const Pool& pool) = 0;
  virtual Result<std::optional<Pool>> FindPool(const std::string& tenant,
                                               const std::string& name) = 0;
  virtual Result<std::vector<Pool>> Pools(const std::optional<std::string>& tenant) = 0;
  virtual Result<bool> DeletePool(const std::string& tenant, const std::string& name) = 0;
  // False when there is no such definition any more.
  virtual Result<bool> CountPoolUse(const std::string& id, bool was_ready, Milliseconds at) = 0;

  virtual Result<std::int64_t> AppendEvent(const Event& event) = 0;
  virtual Result<std::vector<Event>> EventsAfter(const std::string& tenant, std::int64_t seq,
                                                 std::int64_t limit) = 0;
  virtual Result<std::int64_t> NewestEvent() = 0;
  virtual Result<void> PurgeEvents(Milliseconds before) = 0;

  virtual Result<void> AppendAudit(const AuditEntry& entry) = 0;
  virtual Result<std::vector<AuditEntry>> AuditAfter(std::int64_t seq, std::int64_t limit) = 0;
  virtual Result<void> PurgeAudit(Milliseconds before) = 0;

  virtual Result<void> PutIdempotency(const Idempotency& row) = 0;  // inserts or replaces
  virtual Result<std::optional<Idempotency>> FindIdempotency(const std::string& tenant,
                                                             const std::string& key) = 0;
  virtual Result<void> PurgeIdempotency(Milliseconds before) = 0;
};

using Store = Transactions<Rows>;

}  // namespace caisson::store
