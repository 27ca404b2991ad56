// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "api/text.h"
#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/run_store.h"
#include "cli/vault_key.h"
#include "errors/cli.h"
#include "json/reader.h"
#include "vault/vault.h"

namespace caisson::cli {
namespace {

Result<std::string> ReadValue(const std::string& from) {
  if (from.starts_with("env:")) {
    const std::string name = from.substr(4);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) return value;
    return Fail(errors::kCliCredentialUnreadable,
                "the environment variable " + name + " is not set");
  }
  if (from != "-" && !from.starts_with("@")) {
    // It may be the value itself: it is not repeated.
    return Fail(errors::kCliUsage,
                "--from must be -, env:VARIABLE or @FILE; a secret itself does not belong on a "
                "command line, where others can see it");
  }
  CAISSON_ASSIGN(std::string text,
                 ReadFile(from == "-" ? from : from.substr(1), vault::kMaxSecretBytes + 1));
  if (text.ends_with('\n')) text.pop_back();  // the one that editors and echo add
  return text;
}

Result<void> Set(store::WorkflowStore& store, const SecretsArguments& arguments) {
  CAISSON_ASSIGN(vault::Key key, NeedVaultKey(arguments.vault));
  CAISSON_ASSIGN(const std::string text, ReadValue(arguments.from));
  CAISSON_ASSIGN(vault::Vault vault, vault::Vault::Open(store, std::move(key)));
  if (!arguments.oauth) return vault.Put(arguments.name, "secret", text);
  CAISSON_ASSIGN(const json::Value tokens, json::Read(text));
  return vault.Put(arguments.name, "oauth", tokens);
}

Result<void> RotateKey(store::WorkflowStore& store, const SecretsArguments& arguments) {
  CAISSON_ASSIGN(vault::Key before, NeedVaultKey(arguments.vault));
  CAISSON_ASSIGN(vault::Key after, vault::ReadKey(arguments.new_key));
  CAISSON_ASSIGN(vault::Vault vault, vault::Vault::Open(store, std::move(before)));
  return vault.ChangeKey(std::move(after));
}

ExitCode List(store::WorkflowStore& store, const SecretsArguments& arguments, Console& console) {
  auto secrets = vault::List(store);
  if (!secrets) return console.Complain(secrets.error());
  if (arguments.json) {
    json::Array list;
    for (const store::Secret& secret : *secrets) {
      list.push_back(json::Object{{"name", secret.name},
                                  {"id", secret.id},
                                  {"kind", secret.kind},
                                  {"created_at", api::Timestamp(secret.created_at)},
                                  {"updated_at", api::Timestamp(secret.updated_at)}});
    }
    return PrintJson(json::Object{{"secrets", std::move(list)}}, console);
  }
  std::string text = fmt::format("{:<36} {:<7} {:<25} {}\n", "ID", "KIND", "CHANGED", "NAME");
  for (const store::Secret& secret : *secrets) {
    text += fmt::format("{:<36} {:<7} {:<25} {}\n", secret.id, secret.kind,
                        api::Timestamp(secret.updated_at), ShowForeignLine(secret.name));
  }
  return PrintText(text, console);
}

}  // namespace

ExitCode ManageSecrets(const SecretsArguments& arguments, Console& console) {
  using Action = SecretsArguments::Action;
  Result<void> done;
  if (arguments.action == Action::kNewKey) {
    done = vault::WriteNewKey(arguments.name);
    return done ? ExitCode::kOk : console.Complain(done.error());
  }
  auto store = OpenRunStore(arguments.record);
  if (!store) return console.Complain(store.error());
  switch (arguments.action) {
    case Action::kSet:
      done = Set(**store, arguments);
      break;
    case Action::kRemove:
      done = vault::Remove(**store, arguments.name);
      break;
    case Action::kRotateKey:
      done = RotateKey(**store, arguments);
      break;
    default:
      return List(**store, arguments, console);
  }
  return done ? ExitCode::kOk : console.Complain(done.error());
}

}  // namespace caisson::cli
