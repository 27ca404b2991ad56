// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/serve.h"
#include "api/text.h"
#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/service.h"
#include "cli/service_store.h"
#include "control/identity.h"
#include "errors/control.h"

namespace caisson::cli {
namespace {

json::Object ToJson(const store::Key& key) {
  json::Object out{{"id", key.id},          {"tenant", key.tenant},
                   {"label", key.label},    {"hint", key.hint},
                   {"admin", key.is_admin}, {"created_at", api::Timestamp(key.created_at)}};
  if (key.revoked_at) out.Set("revoked_at", api::Timestamp(*key.revoked_at));
  return out;
}

std::string ToTable(const std::vector<store::Key>& keys) {
  std::string text = fmt::format("{:<30} {:<16} {:<12} {:<6} {:<25} {}\n", "ID", "TENANT", "BEGINS",
                                 "ADMIN", "CREATED", "LABEL");
  for (const store::Key& key : keys) {
    text += fmt::format("{:<30} {:<16} {:<12} {:<6} {:<25} {}{}\n", key.id, key.tenant, key.hint,
                        key.is_admin ? "yes" : "no", api::Timestamp(key.created_at),
                        ShowForeignLine(key.label), key.revoked_at ? " (revoked)" : "");
  }
  return text;
}

ExitCode Create(store::Store& store, const KeysArguments& arguments, Console& console) {
  auto made = control::CreateKey(store, arguments.tenant, arguments.label, arguments.is_admin,
                                 api::NowMilliseconds());
  if (!made) return console.Complain(made.error());
  console.Info("the key is shown this once; only its hash is kept");
  json::Object out = ToJson(made->key);
  out.Set("key", made->secret);
  return PrintJson(std::move(out), console);
}

ExitCode List(store::Store& store, const KeysArguments& arguments, Console& console) {
  auto keys = store.Read([](store::Rows& rows) { return rows.Keys(); });
  if (!keys) return console.Complain(keys.error());
  if (!arguments.json) return PrintText(ToTable(*keys), console);
  json::Array list;
  for (const store::Key& key : *keys) list.emplace_back(ToJson(key));
  return PrintJson(json::Object{{"keys", std::move(list)}}, console);
}

ExitCode Revoke(store::Store& store, const KeysArguments& arguments, Console& console) {
  auto revoked = store.Write(
      [&](store::Rows& rows) { return rows.RevokeKey(arguments.id, api::NowMilliseconds()); });
  if (!revoked) return console.Complain(revoked.error());
  if (!*revoked) {
    return console.Complain({.code = errors::kControlNotFound,
                             .message = "there is no key " + ShowForeignLine(arguments.id) +
                                        " that is not revoked; caisson keys ls shows all"});
  }
  return PrintJson(json::Object{{"id", arguments.id}, {"revoked", true}}, console);
}

}  // namespace

ExitCode Keys(const KeysArguments& arguments, Console& console) {
  auto store = OpenServiceStore(StateDirectory(arguments.state) + "/service");
  if (!store) return console.Complain(store.error());
  switch (arguments.action) {
    case KeysArguments::Action::kCreate:
      return Create(**store, arguments, console);
    case KeysArguments::Action::kList:
      return List(**store, arguments, console);
    case KeysArguments::Action::kRevoke:
      return Revoke(**store, arguments, console);
  }
  std::abort();
}

}  // namespace caisson::cli
