// SPDX-License-Identifier: Apache-2.0
#include "cli/vault_key.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "errors/vault.h"

namespace caisson::cli {
namespace {

// Secrets that a node works with lie in ordinary memory. A limit of 1 byte, not of 0: it also keeps
// the kernel from handing the memory to a program that core_pattern names (core(5)).
Result<void> LeaveNoCoreFile() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(1, limit.rlim_max);
    if (setrlimit(RLIMIT_CORE, &limit) == 0) return {};
  }
  return Fail(errors::kVaultKey, "core files cannot be turned off, and one would hold secrets");
}

std::optional<std::string> Place(const VaultArguments& arguments) {
  if (arguments.key) return arguments.key;
  if (std::getenv("CAISSON_VAULT_KEY") != nullptr) return "env:CAISSON_VAULT_KEY";
  if (const char* file = std::getenv("CAISSON_VAULT_KEY_FILE")) return "@" + std::string(file);
  if (const char* command = std::getenv("CAISSON_VAULT_KEY_COMMAND")) {
    return "cmd:" + std::string(command);
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<vault::Key>> FindVaultKey(const VaultArguments& arguments) {
  const auto place = Place(arguments);
  if (!place) return std::nullopt;
  CAISSON_TRY(LeaveNoCoreFile());
  CAISSON_ASSIGN(vault::Key key, vault::ReadKey(*place));
  return key;
}

Result<vault::Key> NeedVaultKey(const VaultArguments& arguments) {
  CAISSON_ASSIGN(auto key, FindVaultKey(arguments));
  if (key) return *std::move(key);
  return Fail(Status{.code = errors::kVaultKey,
                     .message = "the key of the vault is not given",
                     .details = "name its place with --vault-key, or set CAISSON_VAULT_KEY_FILE; "
                                "caisson secrets new-key FILE makes one"});
}

}  // namespace caisson::cli
